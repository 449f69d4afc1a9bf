//! Why an output was refused: for the report, and for the agent that is to do better. Pure.

use std::fmt::Write as _;

use super::review::Verdict;
use crate::error::{Code, Error};
use crate::harness::model::FeedbackMode;
use crate::output_check::{Fault, all, refusal};
use crate::process::Status;
use crate::report::{Ci, last_lines, sanitize};

/// How many lines of a script an error report shows.
const SHOWN: usize = 20;
/// How much of one text the agent gets, in bytes; the end of it.
const BLOCK: usize = 12 * 1024;
/// How much of one line.
const LINE: usize = 2000;

/// Why an output was refused.
#[derive(Debug)]
pub(super) enum Refusal {
    /// Files that are missing or do not match their schemas.
    Files(Vec<Fault>),
    /// The harness's script.
    Script {
        /// The number of the iteration.
        number: u32,
        /// How it ended.
        status: Status,
        /// What it wrote to standard output, without secrets.
        stdout: String,
        /// What it wrote to standard error, without secrets.
        stderr: String,
    },
    /// The agent that reviews.
    Review {
        /// Its name.
        by: String,
        /// What it said.
        verdict: Verdict,
        /// The number of the iteration.
        number: u32,
    },
}

impl Refusal {
    /// For people.
    pub(super) fn error(&self) -> Error {
        match self {
            Refusal::Files(faults) => refusal(faults),
            Refusal::Script { number, status, stdout, stderr } => {
                Error::new(Code::ValidationFailed, format!("the validation script ended with {status}"))
                    .detail(last_lines(&format!("{stdout}{stderr}"), SHOWN))
                    .help(format!(
                        "its output says what is wrong; the agent's output is in iteration-{number}/output"
                    ))
            }
            Refusal::Review { by, verdict, number } => {
                let what = format!("the reviewer `{by}` rejected the work: {}", verdict.headline());
                Error::new(Code::ValidationFailed, sanitize::line(&what, Ci::None))
                    .detail(verdict.lines())
                    .help(format!("its run is in iteration-{number}/review"))
            }
        }
    }

    /// For the agent; nothing where the harness wants none.
    pub(super) fn feedback(&self, mode: FeedbackMode) -> Option<String> {
        if mode == FeedbackMode::None {
            return None;
        }
        let mut text = String::from("Your output was checked and is not accepted.\n");
        match self {
            Refusal::Files(faults) => block(&mut text, "What is wrong with it", &all(faults)),
            Refusal::Script { status, stdout, stderr, .. } => {
                _ = writeln!(text, "\nThe check ended with {status}.");
                if matches!(mode, FeedbackMode::Append | FeedbackMode::Stdout) {
                    block(&mut text, "What the check printed", stdout);
                }
                if matches!(mode, FeedbackMode::Append | FeedbackMode::Stderr) {
                    block(&mut text, "What the check wrote to standard error", stderr);
                }
            }
            Refusal::Review { verdict, .. } => {
                block(
                    &mut text,
                    "A reviewer rejected your work",
                    &format!("{}\n{}", verdict.headline(), verdict.lines()),
                );
            }
        }
        text.push_str(
            "\nCorrect this. The output directory ($FULLSEND_OUTPUT_DIR) was emptied: write every result to it again, \
             whole, and end.\n",
        );
        Some(text)
    }
}

/// A text with its heading: without control characters, and not more of it than helps.
fn block(out: &mut String, heading: &str, text: &str) {
    let text = text.trim_end();
    if text.trim().is_empty() {
        return;
    }
    let from = text.ceil_char_boundary(text.len().saturating_sub(BLOCK));
    _ = writeln!(out, "\n{heading}:\n");
    if from > 0 {
        _ = writeln!(out, "[{from} bytes before this are left out]");
    }
    for line in text[from..].lines() {
        let line = sanitize::line(line, Ci::None);
        _ = writeln!(out, "{}", sanitize::truncate(&line, LINE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(stdout: &str, stderr: &str) -> Refusal {
        Refusal::Script { number: 1, status: Status::Exited(3), stdout: stdout.into(), stderr: stderr.into() }
    }

    #[test]
    fn the_mode_says_what_of_a_script_is_told() {
        let refusal = script("words of stdout\n", "words of stderr\n");
        for (mode, out, err) in [
            (FeedbackMode::Append, true, true),
            (FeedbackMode::Stdout, true, false),
            (FeedbackMode::Stderr, false, true),
            (FeedbackMode::ExitCode, false, false),
        ] {
            let text = refusal.feedback(mode).unwrap();
            assert_eq!(
                (text.contains("words of stdout"), text.contains("words of stderr")),
                (out, err),
                "{text}"
            );
            assert!(text.contains("exit status 3") && text.contains("was emptied"), "{text}");
        }
        assert_eq!(refusal.feedback(FeedbackMode::None), None);
    }

    #[test]
    fn every_place_of_a_file_is_told() {
        let fault = |file: &str, places: &[&str]| Fault {
            message: format!("{file} does not match"),
            places: places.iter().map(|p| (*p).to_owned()).collect(),
            help: "mend it".into(),
        };
        let refusal = Refusal::Files(vec![fault("a.json", &["/x: 1", "/y: 2"]), fault("b.json", &[])]);
        let text = refusal.feedback(FeedbackMode::ExitCode).unwrap();
        for part in ["a.json does not", "/x: 1\n/y: 2\n", "b.json does not match (mend it)"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(refusal.error().message().starts_with("2 files"), "{}", refusal.error());
    }

    #[test]
    fn it_is_bounded_and_harmless() {
        let text = script(&"line of output\n".repeat(10_000), "\u{1b}[31mred\u{7}\u{202e}x\n")
            .feedback(FeedbackMode::Append);
        let text = text.unwrap();
        assert!(text.len() < 3 * BLOCK && text.contains("are left out]"), "{}", text.len());
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']) && text.contains("red"), "{text}");
        let long = script(&"é".repeat(100_000), "").feedback(FeedbackMode::Append).unwrap();
        assert!(long.len() < 3 * BLOCK);
    }
}
