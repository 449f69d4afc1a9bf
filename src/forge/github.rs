//! The paths and answers of GitHub's REST API, version 2022-11-28. Pure.

use serde::Deserialize;

use super::{Comment, Thread};
use crate::secrets::Secret;

#[derive(Deserialize)]
struct Raw {
    id: u64,
    #[serde(default)]
    body: Option<String>,
    user: Option<User>,
    #[serde(default)]
    updated_at: Option<jiff::Timestamp>,
}

#[derive(Deserialize)]
struct User {
    login: String,
    #[serde(default)]
    r#type: String,
}

/// Headers of every request.
pub(super) fn headers(token: &Secret) -> Vec<(String, Secret)> {
    vec![
        ("accept".into(), "application/vnd.github+json".into()),
        ("x-github-api-version".into(), "2022-11-28".into()),
        ("authorization".into(), Secret::new(format!("Bearer {}", token.expose()))),
    ]
}

/// Where the comments of a thread are.
pub(super) fn comments(thread: &Thread) -> String {
    format!("/repos/{}/issues/{}/comments", thread.repo, thread.number)
}

/// Where one comment is.
pub(super) fn comment(thread: &Thread, id: u64) -> String {
    format!("/repos/{}/issues/comments/{id}", thread.repo)
}

/// One comment of an answer.
pub(super) fn parse(value: serde_json::Value) -> Result<Comment, serde_json::Error> {
    let raw: Raw = serde_json::from_value(value)?;
    // The author of a deleted account is null.
    let (author, bot) = raw.user.map(|u| (u.login, u.r#type == "Bot")).unwrap_or_default();
    Ok(Comment { id: raw.id, body: raw.body.unwrap_or_default(), author, bot, updated: raw.updated_at })
}

/// The number of the last page, from the `Link` header. Only the number is taken; the URL is not followed.
pub(super) fn last_page(link: &str) -> Option<u32> {
    let last = link.split(',').find(|part| part.contains("rel=\"last\""))?;
    let url = last.split_once('<')?.1.split_once('>')?.0;
    let query = url.split_once('?')?.1;
    query.split('&').find_map(|pair| pair.strip_prefix("page="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_page_is_a_number() {
        let link = "<https://api.github.com/x?per_page=100&page=2>; rel=\"next\", \
                    <https://api.github.com/x?per_page=100&page=7>; rel=\"last\"";
        assert_eq!(last_page(link), Some(7));
        for odd in
            ["", "<x>; rel=\"last\"", "<x?page=>; rel=\"last\"", "<x?page=-1>; rel=\"last\"", "rel=\"last\""]
        {
            assert_eq!(last_page(odd), None, "{odd}");
        }
    }

    #[test]
    fn an_author_may_be_gone() {
        let value = serde_json::json!({"id": 5, "user": null, "body": null});
        let comment = parse(value).unwrap();
        assert!(comment.author.is_empty() && !comment.bot && comment.body.is_empty());
        assert!(parse(serde_json::json!({"id": "5"})).is_err());
    }
}
