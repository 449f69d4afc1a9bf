//! Comments on issues, pull requests and merge requests, through the REST APIs of GitHub and GitLab.
//!
//! [`Site`] is where and with which token, [`Thread`] is what is commented on, [`Client`] lists, writes and changes.
//! Tokens travel in headers only. Nothing here decides what a comment says.

mod client;
mod github;
mod gitlab;
mod limits;
mod site;
mod trouble;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use client::Client;
pub use site::{Missing, Site};
pub use trouble::Trouble;

/// Whose API is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Platform {
    /// GitHub, also on premises.
    GitHub,
    /// GitLab, also on premises.
    GitLab,
}

/// What is commented on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// An issue; on GitHub also a pull request, whose conversation is that of an issue.
    Issue,
    /// A merge request.
    MergeRequest,
}

/// Where comments are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// `owner/repository`, or the path of a GitLab project.
    pub repo: String,
    /// Which kind of thread.
    pub kind: Kind,
    /// Its number.
    pub number: u64,
}

impl std::fmt::Display for Thread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mark = if self.kind == Kind::MergeRequest { '!' } else { '#' };
        write!(f, "{}{mark}{}", self.repo, self.number)
    }
}

/// Whether a text is the path of a repository: two or more plain names, separated by `/`.
pub fn is_repo(text: &str) -> bool {
    let plain = |part: &str| {
        let chars = part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
        !part.is_empty() && chars && !part.bytes().all(|b| b == b'.')
    };
    text.len() <= 512 && text.contains('/') && text.split('/').all(plain)
}

/// One comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// Its number on the server.
    pub id: u64,
    /// Its text.
    pub body: String,
    /// Who wrote it.
    pub author: String,
    /// Whether the author is an app.
    pub bot: bool,
    /// When it was last changed.
    pub updated: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_has_two_plain_names_at_least() {
        for good in ["o/r", "group/sub/project", "o/.github", "A-b/c_d.e"] {
            assert!(is_repo(good), "{good}");
        }
        for bad in ["", "o", "o/", "/r", "o//r", "o/..", "o/r?x", "o/r#1", "o/r ", "o/ä", "o/%2e"] {
            assert!(!is_repo(bad), "{bad}");
        }
    }
}
