//! The skills that an agent's own definition names: they come along without being listed in the harness.

use std::collections::BTreeMap;

use camino::Utf8Path;

use super::super::check::{Kind, Named, is_plain_name};
use super::super::model::Skill;
use super::super::problem::Problem;
use super::super::source::Source;
use super::Loader;
use crate::agent::runtime::{Kind as Runtime, entries};
use crate::error::Code;

impl Loader<'_> {
    /// Adds those of `skills/` in the harness directory that the front matter of the definition names, and are not
    /// listed already. A name with a colon is that of a plugin's skill.
    pub(super) fn skills_of_agent(
        &mut self,
        agent: Option<&Utf8Path>,
        runtime: Runtime,
        skills: &mut Vec<Skill>,
    ) {
        let Some(agent) = agent.filter(|_| runtime != Runtime::Script) else { return };
        // A definition that is not text has no front matter.
        let Ok(source) = Source::read(agent, Code::FileMissing) else { return };
        for span in entries(&source.text, "skills") {
            let named = &source.text[span.clone()];
            let name = named.split(" #").next().unwrap_or(named).trim_end();
            if name.contains(':') || skills.iter().any(|skill| skill.name == name) {
                continue;
            }
            let span = span.start..span.start + name.len();
            let refused = |code, message: String, help: &str| {
                Problem::error(code, message).help(help).at(Some(source.place(span.clone())))
            };
            if !is_plain_name(name) {
                let message = format!("`{}` is not the name of a skill", name.escape_debug());
                self.problems.push(refused(Code::Value, message, "name a directory of `skills/`"));
                continue;
            }
            let path = format!("skills/{name}");
            let wanted = Named { key: "skills", path: &path, shown: name, span: span.clone(), free: false };
            let Some(dir) = self.files.check(&wanted, Kind::Dir, &source, self.problems) else { continue };
            if !dir.join("SKILL.md").is_file() {
                let message = format!("the skill `{name}` has no SKILL.md");
                let help = "an agent finds a skill by that file; add it, or remove the name";
                self.problems.push(refused(Code::FileMissing, message, help));
                continue;
            }
            skills.push(Skill { name: name.to_owned(), dir, overrides: BTreeMap::new() });
        }
    }
}
