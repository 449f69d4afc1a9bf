//! What the `openshell` at hand can do.

use super::argv;
use super::client::{Openshell, not_run};
use super::dialect::Dialect;
use crate::error::{Code, Error, Result};

/// Options of `sandbox create` without which no run is possible.
const NEEDED: &[&str] =
    &["--name", "--from", "--policy", "--provider", "--no-auto-providers", "--no-tty", "--label"];

impl Openshell {
    /// Asks for the version and the help of `sandbox create` at once; neither needs a gateway. Where the
    /// version says nothing, two more help texts are read.
    ///
    /// # Errors
    /// [`Code::OpenshellUnsupported`] when an option that fullsend needs is missing or the program is something
    /// else, [`Code::OpenshellCall`] when it does not answer.
    pub async fn probe(&self) -> Result<Dialect> {
        let limit = self.deadlines.probe;
        let create = ["sandbox", "create"];
        let (version, help) = tokio::join!(
            self.run("openshell --version", argv::version(), limit),
            self.run("openshell sandbox create --help", argv::help(&create), limit),
        );
        let (version, help) = (version.map_err(not_run)?, help.map_err(not_run)?);
        for answer in [&version, &help] {
            if !answer.success() {
                return Err(answer.error(Code::OpenshellUnsupported).help(
                    "this does not look like a usable openshell; name another one with --openshell, or use --local",
                ));
            }
        }
        let printed = version.output.stdout_text();
        let help = help.output.stdout_text();
        let missing: Vec<_> = NEEDED.iter().filter(|option| !has_option(&help, option)).copied().collect();
        if !missing.is_empty() {
            let missing = missing.join(", ");
            let what = format!("`openshell sandbox create` does not know {missing}");
            return Err(Error::new(Code::OpenshellUnsupported, what)
                .help("install OpenShell 0.0.83 or newer, or use --local")
                .detail(printed));
        }
        let detach = has_option(&help, "--detach");
        let mut dialect = match Dialect::of_version(&printed) {
            Some(dialect) => dialect,
            None => self.probe_helps(&printed, detach).await?,
        };
        dialect.facts.detach = detach;
        for (fact, option) in [
            (&mut dialect.facts.cpu, "--cpu"),
            (&mut dialect.facts.memory, "--memory"),
            (&mut dialect.facts.gpu, "--gpu"),
            (&mut dialect.facts.disk, "--disk"),
        ] {
            *fact = has_option(&help, option);
        }
        tracing::debug!(version = %dialect.version, generation = dialect.facts.generation, detach, "openshell");
        Ok(dialect)
    }

    async fn probe_helps(&self, printed: &str, detach: bool) -> Result<Dialect> {
        let limit = self.deadlines.probe;
        let (get, profile) = tokio::join!(
            self.run("openshell sandbox get --help", argv::help(&["sandbox", "get"]), limit),
            self.run("openshell profile --help", argv::help(&["profile"]), limit),
        );
        let (get, profile) = (get.map_err(not_run)?, profile.map_err(not_run)?);
        let output = get.success() && has_option(&get.output.stdout_text(), "--output");
        Ok(Dialect::of_helps(printed, detach, output, profile.success()))
    }
}

/// Whether a help text offers `option` as a whole word.
fn has_option(help: &str, option: &str) -> bool {
    let help = super::text::strip_escapes(help);
    help.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).any(|word| word == option)
}

#[cfg(test)]
mod tests {
    use super::super::client::tests::scripted;
    use super::*;

    const OPTIONS: &str =
        "--name <N> --from <F> --policy <P> --provider <P> --no-auto-providers --no-tty --label <L>";

    fn script(version: &str, options: &str) -> String {
        format!(
            "case \"$*\" in\n--version) echo 'openshell {version}';;\n'sandbox create --help') echo '{options}';;\n\
             'sandbox get --help') echo '-o, --output <O>';;\n*) exit 2;;\nesac"
        )
    }

    #[tokio::test]
    async fn the_help_decides_detach_and_the_version_the_rest() {
        let dir = tempfile::tempdir().unwrap();
        let openshell = scripted(dir.path(), &script("0.0.112", OPTIONS));
        let dialect = openshell.probe().await.unwrap();
        assert_eq!((dialect.facts.generation, dialect.facts.detach), ("0.0.111", false));
        let openshell = scripted(dir.path(), &script("0.0.0", &format!("{OPTIONS} --detach")));
        let dialect = openshell.probe().await.unwrap();
        assert_eq!(
            (dialect.facts.generation, dialect.facts.detach, dialect.assumed),
            ("0.0.111", true, true)
        );
        let openshell = scripted(dir.path(), &script("0.0.0", OPTIONS));
        assert_eq!(openshell.probe().await.unwrap().facts.generation, "0.0.110");
    }

    #[tokio::test]
    async fn an_old_or_foreign_program_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let openshell = scripted(dir.path(), &script("0.0.20", "--name --detached"));
        let error = openshell.probe().await.unwrap_err();
        assert_eq!(error.code(), Code::OpenshellUnsupported);
        assert!(error.message().contains("--no-auto-providers"), "{}", error.message());
        let error = scripted(dir.path(), "echo no >&2; exit 1").probe().await.unwrap_err();
        assert_eq!(error.code(), Code::OpenshellUnsupported);
    }
}
