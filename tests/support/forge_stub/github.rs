//! GitHub's REST API (version 2022-11-28): issues, pull requests, comments, labels.

use serde_json::{Value, json};

use crate::http::Request;
use crate::state::{Comment, Item, Reply, State, Token, only, page, parameter, text};

pub(crate) fn answer(state: &mut State, token: &Token, request: &Request, path: &[&str]) -> Option<Reply> {
    if path == ["user"] {
        return Some(if token.app {
            Reply::refused(403, "Resource not accessible by integration")
        } else {
            Reply::new(200, json!({"login": token.login, "type": "User"}))
        });
    }
    let ["repos", owner, name, rest @ ..] = path else { return None };
    if format!("{owner}/{name}") != state.repository {
        return None;
    }
    Some(repository(state, token, request, rest)?.unwrap_or_else(|refused| refused))
}

fn repository(
    state: &mut State,
    token: &Token,
    request: &Request,
    path: &[&str],
) -> Option<Result<Reply, Reply>> {
    let number = |text: &str| text.parse::<u64>().ok();
    Some(match (request.method.as_str(), path) {
        ("GET", []) => Ok(Reply::new(200, json!({"full_name": state.repository, "default_branch": "main"}))),
        ("GET", ["issues"]) => Ok(page(request, state.issues.iter().map(issue).collect())),
        ("GET", ["issues", n]) => {
            let n = number(n)?;
            if let Some(item) = state.issues.iter().find(|i| i.number == n) {
                return Some(Ok(Reply::new(200, issue(item))));
            }
            // A pull request is an issue too.
            let mut value = issue(state.changes.iter().find(|i| i.number == n)?);
            value["pull_request"] = json!({});
            Ok(Reply::new(200, value))
        }
        ("GET", ["issues", n, "comments"]) => {
            let n = number(n)?;
            let of_it = state.comments.iter().filter(|c| c.number == n && c.on != "review");
            Ok(page(request, of_it.map(|c| comment(state, c)).collect()))
        }
        ("POST", ["issues", n, "comments"]) => post_comment(state, token, request, number(n)?),
        ("PATCH", ["issues", "comments", id]) => {
            let id = number(id)?;
            only(request, &["body"]).and_then(|()| text(request, "body")).and_then(|body| {
                let edited = state.edit(id, &token.login, &body)?;
                Ok(Reply::new(200, comment(state, &edited)))
            })
        }
        ("POST", ["issues", n, "labels"]) => add_labels(state, request, number(n)?),
        ("GET", ["pulls"]) => {
            let head = parameter(request, "head");
            let owner = state.repository.split('/').next().unwrap_or_default();
            let open = state.changes.iter().filter(|c| !c.closed);
            let asked = open.filter(|c| head.as_ref().is_none_or(|h| *h == format!("{owner}:{}", c.head)));
            Ok(page(request, asked.map(|c| pull(state, c)).collect()))
        }
        ("POST", ["pulls"]) => open_pull(state, token, request),
        ("GET", ["pulls", n]) => {
            let n = number(n)?;
            let item = state.changes.iter().find(|c| c.number == n)?;
            let diff = request.header("accept") == Some("application/vnd.github.diff");
            let mut reply = Reply::new(200, pull(state, item));
            reply.text = diff.then(|| item.diff.clone());
            Ok(reply)
        }
        ("PATCH", ["pulls", n]) => {
            let n = number(n)?;
            only(request, &["title", "body"]).and_then(|()| {
                let (title, body) = (text(request, "title")?, text(request, "body")?);
                let item = state.changes.iter_mut().find(|c| c.number == n);
                let item = item.ok_or_else(|| Reply::refused(404, "Not Found"))?;
                (item.title, item.body) = (title, body);
                Ok(Reply::new(200, json!({"number": n})))
            })
        }
        ("GET", ["pulls", _, "comments"]) => Ok(page(request, Vec::new())),
        // A review by somebody who may push, with a text, and an approval without one.
        ("GET", ["pulls", n, "reviews"]) => {
            let n = number(n)?;
            state.changes.iter().find(|c| c.number == n)?;
            let review = |body: &str| {
                json!({"id": 900, "body": body, "user": user("ann", false), "author_association": "MEMBER",
                    "submitted_at": "2026-01-02T03:04:06Z", "state": "APPROVED"})
            };
            let texts: Vec<_> = state.comments.iter().filter(|c| c.on == "review" && c.number == n).collect();
            Ok(page(request, texts.iter().map(|c| review(&c.body)).chain([review("")]).collect()))
        }
        _ => return None,
    })
}

fn post_comment(state: &mut State, token: &Token, request: &Request, n: u64) -> Result<Reply, Reply> {
    only(request, &["body"])?;
    let body = text(request, "body")?;
    let on = if state.issues.iter().any(|i| i.number == n) {
        "issue"
    } else if state.changes.iter().any(|i| i.number == n) {
        "change"
    } else {
        return Err(Reply::refused(404, "Not Found"));
    };
    let made = state.comment(on, n, &token.login, &body);
    Ok(Reply::new(201, comment(state, &made)))
}

fn add_labels(state: &mut State, request: &Request, n: u64) -> Result<Reply, Reply> {
    only(request, &["labels"])?;
    let names: Option<Vec<String>> = request.body["labels"]
        .as_array()
        .and_then(|l| l.iter().map(|v| v.as_str().map(str::to_owned)).collect());
    let names = names.ok_or_else(|| Reply::refused(422, "labels must be texts"))?;
    let item = state.issues.iter_mut().find(|i| i.number == n);
    let item = item.ok_or_else(|| Reply::refused(404, "Not Found"))?;
    for name in names {
        if !item.labels.contains(&name) {
            item.labels.push(name);
        }
    }
    Ok(Reply::new(200, issue(item)["labels"].clone()))
}

fn open_pull(state: &mut State, token: &Token, request: &Request) -> Result<Reply, Reply> {
    only(request, &["title", "body", "head", "base"])?;
    let head = text(request, "head")?;
    if state.changes.iter().any(|c| !c.closed && c.head == head) {
        return Err(Reply::refused(422, "A pull request already exists"));
    }
    let item = Item {
        number: state.next_change(),
        title: text(request, "title")?,
        body: text(request, "body")?,
        author: token.login.clone(),
        head,
        base: text(request, "base")?,
        ..Item::default()
    };
    state.changes.push(item.clone());
    Ok(Reply::new(201, pull(state, &item)))
}

fn user(login: &str, bot: bool) -> Value {
    json!({"login": login, "type": if bot { "Bot" } else { "User" }})
}

fn issue(item: &Item) -> Value {
    let labels: Vec<_> = item.labels.iter().map(|name| json!({"name": name})).collect();
    json!({
        "number": item.number, "title": item.title, "labels": labels, "created_at": "2026-01-02T03:04:05Z",
        "body": Some(&item.body).filter(|b| !b.is_empty()), "user": user(&item.author, item.bot),
        "state": if item.closed { "closed" } else { "open" },
    })
}

fn pull(state: &State, item: &Item) -> Value {
    let from = if item.fork { "mallory/widget" } else { state.repository.as_str() };
    let mut value = issue(item);
    value["draft"] = json!(item.draft);
    value["head"] = json!({"ref": item.head, "sha": item.commit, "repo": {"full_name": from}});
    value["base"] = json!({"ref": item.base, "repo": {"full_name": state.repository}});
    value
}

fn comment(state: &State, comment: &Comment) -> Value {
    let trusted = state.trusted(&comment.author);
    json!({
        "id": comment.id, "body": comment.body, "created_at": "2026-01-02T03:04:05Z",
        "user": user(&comment.author, comment.author.ends_with("[bot]")),
        "author_association": if trusted { "MEMBER" } else { "NONE" },
    })
}
