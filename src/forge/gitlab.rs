//! The paths and answers of GitLab's REST API, version 4. Pure.

use serde::Deserialize;

use super::{Comment, Kind, Thread};
use crate::secrets::Secret;

#[derive(Deserialize)]
struct Raw {
    id: u64,
    #[serde(default)]
    body: String,
    author: Author,
    #[serde(default)]
    updated_at: Option<jiff::Timestamp>,
}

#[derive(Deserialize)]
struct Author {
    username: String,
}

/// Headers of every request.
pub(super) fn headers(token: &Secret) -> Vec<(String, Secret)> {
    vec![("accept".into(), "application/json".into()), ("private-token".into(), token.clone())]
}

/// Where the notes of a thread are.
pub(super) fn comments(thread: &Thread) -> String {
    let kind = match thread.kind {
        Kind::Issue => "issues",
        Kind::MergeRequest => "merge_requests",
    };
    // A path of plain names; only its separators need the encoding.
    format!("/projects/{}/{kind}/{}/notes", thread.repo.replace('/', "%2F"), thread.number)
}

/// Where one note is.
pub(super) fn comment(thread: &Thread, id: u64) -> String {
    format!("{}/{id}", comments(thread))
}

/// One note of an answer.
pub(super) fn parse(value: serde_json::Value) -> Result<Comment, serde_json::Error> {
    let raw: Raw = serde_json::from_value(value)?;
    Ok(Comment {
        id: raw.id,
        body: raw.body,
        author: raw.author.username,
        bot: false,
        updated: raw.updated_at,
    })
}
