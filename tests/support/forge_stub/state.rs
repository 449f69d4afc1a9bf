//! What the forge holds, whichever it plays.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::http::Request;

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct State {
    /// `github` or `gitlab`.
    pub(crate) kind: String,
    /// `acme/widget`.
    pub(crate) repository: String,
    pub(crate) tokens: BTreeMap<String, Token>,
    #[serde(default)]
    pub(crate) issues: Vec<Item>,
    #[serde(default)]
    pub(crate) changes: Vec<Item>,
    #[serde(default)]
    pub(crate) comments: Vec<Comment>,
    /// Names of those who may push.
    #[serde(default)]
    pub(crate) members: Vec<String>,
    /// What goes wrong, before anything else is looked at.
    #[serde(default)]
    faults: Vec<Fault>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
pub(crate) struct Token {
    pub(crate) login: String,
    #[serde(default)]
    pub(crate) write: bool,
    /// The token of an app, which has no `/user`.
    #[serde(default)]
    pub(crate) app: bool,
}

/// An issue, or a pull or merge request.
#[derive(Debug, Default, Clone, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "as the forges have them")]
pub(crate) struct Item {
    pub(crate) number: u64,
    pub(crate) title: String,
    pub(crate) body: String,
    pub(crate) closed: bool,
    pub(crate) author: String,
    pub(crate) bot: bool,
    pub(crate) labels: Vec<String>,
    pub(crate) draft: bool,
    pub(crate) fork: bool,
    pub(crate) head: String,
    pub(crate) base: String,
    pub(crate) commit: String,
    pub(crate) diff: String,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
pub(crate) struct Comment {
    pub(crate) id: u64,
    /// `issue` or `change`, or `review` for the text of a review on GitHub.
    pub(crate) on: String,
    pub(crate) number: u64,
    pub(crate) author: String,
    pub(crate) body: String,
}

#[derive(Debug, Deserialize, Serialize)]
struct Fault {
    method: String,
    /// What the path ends with.
    path: String,
    status: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    times: u32,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Value,
    /// Instead of the body, when it is no JSON.
    pub(crate) text: Option<String>,
    pub(crate) headers: Vec<(String, String)>,
}

impl Reply {
    pub(crate) fn new(status: u16, body: Value) -> Self {
        Self { status, body, text: None, headers: Vec::new() }
    }

    pub(crate) fn refused(status: u16, message: &str) -> Self {
        Self::new(status, json!({ "message": message }))
    }
}

impl State {
    pub(crate) fn fault(&mut self, method: &str, path: &str) -> Option<Reply> {
        let fault = self
            .faults
            .iter_mut()
            .find(|f| f.times > 0 && f.method == method && path.ends_with(f.path.as_str()))?;
        fault.times -= 1;
        let mut reply = Reply::refused(fault.status, "scripted fault");
        reply.headers = fault.headers.clone().into_iter().collect();
        Some(reply)
    }

    /// Whether somebody may push.
    pub(crate) fn trusted(&self, login: &str) -> bool {
        self.members.iter().any(|m| m == login)
    }

    /// Adds a comment and returns it.
    pub(crate) fn comment(&mut self, on: &str, number: u64, author: &str, body: &str) -> Comment {
        let id = self.comments.iter().map(|c| c.id).max().unwrap_or(100) + 1;
        let comment = Comment { id, on: on.into(), number, author: author.into(), body: body.into() };
        self.comments.push(comment.clone());
        comment
    }

    /// Changes a comment of one's own.
    pub(crate) fn edit(&mut self, id: u64, author: &str, body: &str) -> Result<Comment, Reply> {
        let comment = self.comments.iter_mut().find(|c| c.id == id);
        let comment = comment.ok_or_else(|| Reply::refused(404, "Not Found"))?;
        if comment.author != author {
            return Err(Reply::refused(403, "not your comment"));
        }
        comment.body = body.into();
        Ok(comment.clone())
    }

    /// The next number of a change.
    pub(crate) fn next_change(&self) -> u64 {
        let all = self.issues.iter().chain(&self.changes);
        all.map(|item| item.number).max().unwrap_or(0) + 1
    }
}

/// A text of the body, which must be there and not be empty.
pub(crate) fn text(request: &Request, key: &str) -> Result<String, Reply> {
    let value = request.body[key].as_str().filter(|text| !text.is_empty());
    value.map(str::to_owned).ok_or_else(|| Reply::refused(422, &format!("{key} is missing")))
}

/// Only these fields may be in the body.
pub(crate) fn only(request: &Request, keys: &[&str]) -> Result<(), Reply> {
    let fields = request.body.as_object().into_iter().flatten();
    match fields.map(|(key, _)| key).find(|key| !keys.contains(&key.as_str())) {
        Some(key) => Err(Reply::refused(422, &format!("unknown field {key}"))),
        None => Ok(()),
    }
}

/// A parameter of the query.
pub(crate) fn parameter(request: &Request, key: &str) -> Option<String> {
    let (_, query) = request.target.split_once('?')?;
    query
        .split('&')
        .find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))
        .map(|value| value.replace("%3A", ":").replace("%2F", "/"))
}

/// The page of a list that was asked for.
pub(crate) fn page(request: &Request, all: Vec<Value>) -> Reply {
    let number = |key, default| parameter(request, key).and_then(|v| v.parse().ok()).unwrap_or(default);
    let (size, page): (usize, usize) = (number("per_page", 30).min(100), number("page", 1).max(1));
    Reply::new(200, all.into_iter().skip((page - 1) * size).take(size).collect())
}
