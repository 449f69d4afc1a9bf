//! The line protocol between a run and its guard, version 1.
//!
//! One message per line; texts that may hold anything are JSON strings. The reader ignores what it does not
//! know, so that a newer run can speak to an older guard during an upgrade.

use std::path::PathBuf;

/// The first line of every conversation.
pub const HELLO: &str = "fullsend-guard 1";

/// A message from the run to its guard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// How to call the openshell CLI: the executable and its leading arguments.
    Openshell(Vec<String>),
    /// The journal entry to close at the end.
    Journal(PathBuf),
    /// A child group was started.
    Child(i32),
    /// A child group has ended.
    Ended(i32),
    /// All children carry this mark (see [`crate::process::mark`]).
    Mark(String),
    /// A sandbox of that name is about to be created.
    Sandbox(String),
    /// A provider of that name is about to be created.
    Provider(String),
    /// A private directory to remove.
    Tmp(PathBuf),
    /// The sandbox and its providers stay.
    Keep,
    /// The sandbox and its providers are known to be gone; a deadline no longer counts.
    Gone,
    /// Act after this many milliseconds unless released before.
    Deadline(u64),
    /// Everything is cleaned up; end without acting.
    Release,
}

impl Message {
    /// The line, with its newline.
    pub fn encode(&self) -> String {
        match self {
            Message::Openshell(argv) => format!("openshell {}\n", json(argv)),
            Message::Journal(path) => format!("journal {}\n", json(path)),
            Message::Child(pgid) => format!("child {pgid}\n"),
            Message::Ended(pgid) => format!("ended {pgid}\n"),
            Message::Mark(mark) => format!("mark {mark}\n"),
            Message::Sandbox(name) => format!("sandbox {name}\n"),
            Message::Provider(name) => format!("provider {name}\n"),
            Message::Tmp(dir) => format!("tmp {}\n", json(dir)),
            Message::Keep => "keep\n".into(),
            Message::Gone => "gone\n".into(),
            Message::Deadline(ms) => format!("deadline {ms}\n"),
            Message::Release => "release\n".into(),
        }
    }

    /// The message of a line without its newline; `None` for what is not known.
    pub fn decode(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        Some(match word {
            "openshell" => Message::Openshell(serde_json::from_str(rest).ok()?),
            "journal" => Message::Journal(serde_json::from_str(rest).ok()?),
            "child" => Message::Child(rest.parse().ok()?),
            "ended" => Message::Ended(rest.parse().ok()?),
            "mark" => Message::Mark(name(rest)?),
            "sandbox" => Message::Sandbox(name(rest)?),
            "provider" => Message::Provider(name(rest)?),
            "tmp" => Message::Tmp(serde_json::from_str(rest).ok()?),
            "keep" => Message::Keep,
            "gone" => Message::Gone,
            "deadline" => Message::Deadline(rest.parse().ok()?),
            "release" => Message::Release,
            _ => return None,
        })
    }
}

fn name(text: &str) -> Option<String> {
    (!text.is_empty() && !text.contains(char::is_whitespace)).then(|| text.to_owned())
}

/// What the guard knows at a moment; a fold over the messages.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Knowledge {
    /// The openshell CLI.
    pub openshell: Vec<String>,
    /// The journal entry.
    pub journal: Option<PathBuf>,
    /// Living child groups.
    pub children: Vec<i32>,
    /// The mark of all children.
    pub mark: Option<String>,
    /// Sandboxes to delete.
    pub sandboxes: Vec<String>,
    /// Providers to delete.
    pub providers: Vec<String>,
    /// Directories to remove.
    pub tmp: Vec<PathBuf>,
    /// Whether sandbox and providers stay.
    pub keep: bool,
    /// Whether nothing is left on the gateway: the rest of the run is the host's, and no deadline ends it.
    pub gone: bool,
    /// When to act, in milliseconds from the message.
    pub deadline: Option<u64>,
    /// Whether there is nothing to do any more.
    pub released: bool,
}

impl Knowledge {
    /// Takes in one message.
    pub fn learn(&mut self, message: Message) {
        match message {
            Message::Openshell(argv) => self.openshell = argv,
            Message::Journal(path) => self.journal = Some(path),
            Message::Child(pgid) => self.children.push(pgid),
            Message::Ended(pgid) => self.children.retain(|p| *p != pgid),
            Message::Mark(mark) => self.mark = Some(mark),
            Message::Sandbox(name) => self.sandboxes.push(name),
            Message::Provider(name) => self.providers.push(name),
            Message::Tmp(dir) => self.tmp.push(dir),
            Message::Keep => self.keep = true,
            Message::Gone => {
                self.sandboxes.clear();
                self.providers.clear();
                self.deadline = None;
                self.gone = true;
            }
            Message::Deadline(ms) => self.deadline = (!self.gone).then_some(ms),
            Message::Release => self.released = true,
        }
    }
}

fn json(value: &impl serde::Serialize) -> String {
    // Paths that are not UTF-8 cannot be said in this protocol; the runner makes none.
    serde_json::to_string(value).unwrap_or_else(|_| "null".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message() -> impl Strategy<Value = Message> {
        prop_oneof![
            prop::collection::vec(any::<String>(), 0..4).prop_map(Message::Openshell),
            any::<String>().prop_map(|s| Message::Journal(s.into())),
            any::<i32>().prop_map(Message::Child),
            any::<i32>().prop_map(Message::Ended),
            "[0-9a-f-]{1,40}".prop_map(Message::Mark),
            "[a-z0-9-]{1,19}".prop_map(Message::Sandbox),
            "[A-Za-z0-9_-]{1,40}".prop_map(Message::Provider),
            any::<String>().prop_map(|s| Message::Tmp(s.into())),
            Just(Message::Keep),
            Just(Message::Gone),
            any::<u64>().prop_map(Message::Deadline),
            Just(Message::Release),
        ]
    }

    proptest! {
        #[test]
        fn every_message_is_one_line_and_comes_back(m in message()) {
            let line = m.encode();
            prop_assert_eq!(line.matches('\n').count(), 1);
            prop_assert_eq!(Message::decode(line.trim_end_matches('\n')), Some(m));
        }

        #[test]
        fn no_line_makes_the_reader_panic(line in ".*") {
            let _ = Message::decode(&line);
        }
    }

    #[test]
    fn a_signal_after_the_end_of_the_sandbox_sets_no_deadline() {
        let mut k = Knowledge::default();
        for m in [Message::Sandbox("a".into()), Message::Deadline(1), Message::Gone, Message::Deadline(6000)]
        {
            k.learn(m);
        }
        assert!(k.deadline.is_none() && k.sandboxes.is_empty());
    }

    #[test]
    fn an_ended_child_is_forgotten() {
        let mut k = Knowledge::default();
        for m in [Message::Child(7), Message::Child(8), Message::Ended(7)] {
            k.learn(m);
        }
        assert_eq!(k.children, [8]);
    }
}
