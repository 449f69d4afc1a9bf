//! What the agent program gets besides its definition: skills and plugins; and the variables that must be set.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};

use super::super::check::{Kind, is_plain_name, normal};
use super::super::environment::DENIED;
use super::super::expand::is_name;
use super::super::model::{Plugin, Skill};
use super::super::raw::{RawPlugin, RawSkill};
use super::super::reader::Text;
use super::Loader;
use crate::error::Code;
use crate::secrets::Secret;

/// Names under the plugins directory that the agent program keeps for itself (Claude Code 2.1).
const TAKEN: [&str; 4] = ["cache", "installed_plugins.json", "known_marketplaces.json", "marketplaces"];

impl Loader<'_> {
    pub(super) fn skills(&mut self, raw: &[RawSkill]) -> Vec<Skill> {
        let mut out: Vec<Skill> = Vec::new();
        for RawSkill { path: text, overrides } in raw {
            let Some(dir) = self.path("skills", Some(text), Kind::Dir) else { continue };
            let Some(name) = dir.file_name().map(str::to_owned) else {
                self.error(&text.span, "a skill needs a directory of its own", "name a directory");
                continue;
            };
            if out.iter().any(|other| other.name == name) || dir == self.files.dir {
                let message = format!("the skill `{name}` is listed twice");
                self.error(
                    &text.span,
                    message,
                    "skills go by the name of their directory; rename or remove one",
                );
                continue;
            }
            let overrides = self.overrides(&dir, overrides);
            let has_file = match overrides.get("SKILL.md") {
                Some(replacement) => replacement.is_some(),
                None => dir.join("SKILL.md").is_file(),
            };
            if !has_file {
                let help = "an agent finds a skill by that file; add it, or remove the entry";
                self.reader().warn(
                    Code::FileMissing,
                    &text.span,
                    format!("the skill `{name}` has no SKILL.md"),
                    help,
                );
            }
            out.push(Skill { name, dir, overrides });
        }
        out
    }

    fn overrides(
        &mut self,
        skill: &Utf8Path,
        raw: &[(Text, Option<Text>)],
    ) -> BTreeMap<String, Option<Utf8PathBuf>> {
        let mut out = BTreeMap::new();
        for (file, replacement) in raw {
            let plain = normal(&file.text).filter(|p| !p.as_str().is_empty());
            let Some(path) = plain.filter(|_| !file.text.chars().any(char::is_control)) else {
                let message =
                    format!("`{}` is not the path of a file in the skill", file.text.escape_debug());
                self.error(&file.span, message, "write it relative to the skill, without `..`");
                continue;
            };
            let there = skill.join(&path);
            let replacement = match replacement {
                Some(text) => match self.path("skills", Some(text), Kind::File) {
                    Some(file) => Some(file),
                    None => continue,
                },
                None => None,
            };
            if there.is_dir() {
                let message = format!("`{path}` is a directory of the skill");
                self.error(&file.span, message, "name its files one by one");
                continue;
            }
            if replacement.is_none() && !there.is_file() {
                let message = format!("the skill has no file `{path}` to leave out");
                self.reader().warn(Code::Value, &file.span, message, "remove the line");
            }
            out.insert(path.into_string(), replacement);
        }
        out
    }

    pub(super) fn plugins(&mut self, raw: &[RawPlugin]) -> Vec<Plugin> {
        let mut out: Vec<Plugin> = Vec::new();
        for RawPlugin { path: text, .. } in raw {
            if ["npm:", "git:", "ssh:"].iter().any(|scheme| text.text.starts_with(scheme)) {
                let help =
                    "give a directory of the harness directory, or the https URL of one in a repository";
                let message = "`plugins` names a package; plugins are fetched from https URLs only";
                self.reader().error(Code::Unsupported, &text.span, message, help);
                continue;
            }
            let Some(dir) = self.path("plugins", Some(text), Kind::Dir) else { continue };
            let name = dir.file_name().unwrap_or_default().to_owned();
            if !is_plain_name(&name) || TAKEN.contains(&name.as_str()) {
                let message = format!("`{name}` is not a usable name for a plugin");
                self.error(&text.span, message, "rename the directory; use letters, digits, `_` and `-`");
                continue;
            }
            if out.iter().any(|other| other.name == name) {
                let help = "plugins go by the name of their directory; rename or remove one";
                self.error(&text.span, format!("the plugin `{name}` is listed twice"), help);
                continue;
            }
            let marked = ["plugin.json", ".claude-plugin/plugin.json"].iter().any(|f| dir.join(f).is_file());
            if !marked {
                let help = "the agent program knows a plugin by that file; add it, or remove the entry";
                let message = format!("the plugin `{name}` has no plugin.json");
                self.reader().warn(Code::FileMissing, &text.span, message, help);
            }
            out.push(Plugin { name, dir });
        }
        out
    }

    /// Variables of plugins are variables of the agent; `env.sandbox` wins over them.
    pub(super) fn plugin_env(&mut self, raw: &[RawPlugin]) -> BTreeMap<String, Secret> {
        let mut out = BTreeMap::new();
        for plugin in raw {
            for (name, value) in &plugin.env {
                let upper = |b: u8| b.is_ascii_uppercase() || b == b'_' || b.is_ascii_digit();
                if !name.text.bytes().all(upper) {
                    let message =
                        format!("`{}` is not a name for a plugin's variable", name.text.escape_debug());
                    self.error(&name.span, message, "use upper-case letters, digits and `_`");
                    continue;
                }
                out.extend(self.env_map(std::slice::from_ref(&(name.clone(), value.clone()))));
            }
        }
        out
    }

    /// Every variable that must be set and is not, at once.
    pub(super) fn required_env(&mut self, names: &[Text]) {
        for name in names {
            if !is_name(&name.text) {
                let message = format!("`{}` is not a variable name", name.text.escape_debug());
                self.error(&name.span, message, "use letters, digits and `_`, no digit first");
            } else if DENIED.contains(&name.text.as_str()) {
                let message = format!("`{}` never reaches a harness", name.text);
                self.error(&name.span, message, "it grants identity tokens; remove it");
            } else if let Some(state) = self.values.missing(&name.text) {
                let message = format!("the harness needs the variable `{}`, which is {state}", name.text);
                let help = format!("export {}, or set it in a file given with --env-file", name.text);
                self.reader().error(Code::EnvUnset, &name.span, message, help);
            }
        }
    }
}
