//! GitLab's REST API (v4): issues, merge requests, notes, labels.

use serde_json::{Value, json};

use crate::http::Request;
use crate::state::{Comment, Item, Reply, State, Token, only, page, parameter, text};

pub(crate) fn answer(state: &mut State, token: &Token, request: &Request, path: &[&str]) -> Option<Reply> {
    let path = path.strip_prefix(&["api", "v4"])?;
    if path == ["user"] {
        return Some(Reply::new(200, json!({"username": token.login})));
    }
    let ["projects", project, rest @ ..] = path else { return None };
    if *project != state.repository.replace('/', "%2F") {
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
        ("GET", []) => {
            Ok(Reply::new(200, json!({"path_with_namespace": state.repository, "default_branch": "main"})))
        }
        ("GET", ["members", "all"]) => {
            let members = state.members.iter().map(|m| json!({"username": m, "access_level": 30}));
            // A guest, who may not push.
            let all = members.chain([json!({"username": "guest", "access_level": 10})]);
            Ok(page(request, all.collect()))
        }
        ("GET", ["issues"]) => Ok(page(request, state.issues.iter().map(item).collect())),
        ("GET", ["issues", n]) => {
            let n = number(n)?;
            Ok(Reply::new(200, item(state.issues.iter().find(|i| i.number == n)?)))
        }
        ("PUT", ["issues", n]) => add_labels(state, request, number(n)?),
        ("GET", [kind, n, "notes"]) => {
            let (n, on) = (number(n)?, on(kind)?);
            let of_it = state.comments.iter().filter(|c| c.number == n && c.on == on);
            let system = [
                json!({"id": 1, "system": true, "body": "changed the title", "author": {"username": "ann"}}),
            ];
            Ok(page(request, system.into_iter().chain(of_it.map(note)).collect()))
        }
        ("POST", [kind, n, "notes"]) => {
            let (n, on) = (number(n)?, on(kind)?);
            only(request, &["body"]).and_then(|()| text(request, "body")).map(|body| {
                let made = state.comment(on, n, &token.login, &body);
                Reply::new(201, note(&made))
            })
        }
        ("PUT", [kind, _, "notes", id]) => {
            let (id, _) = (number(id)?, on(kind)?);
            only(request, &["body"]).and_then(|()| text(request, "body")).and_then(|body| {
                let edited = state.edit(id, &token.login, &body)?;
                Ok(Reply::new(200, note(&edited)))
            })
        }
        ("GET", ["merge_requests"]) => {
            let branch = parameter(request, "source_branch");
            let open = state.changes.iter().filter(|c| !c.closed);
            let asked = open.filter(|c| branch.as_ref().is_none_or(|b| *b == c.head));
            Ok(page(request, asked.map(item).collect()))
        }
        ("POST", ["merge_requests"]) => open_request(state, token, request),
        ("GET", ["merge_requests", n]) => {
            let n = number(n)?;
            Ok(Reply::new(200, item(state.changes.iter().find(|c| c.number == n)?)))
        }
        ("PUT", ["merge_requests", n]) => {
            let n = number(n)?;
            only(request, &["title", "description"]).and_then(|()| {
                let (title, body) = (text(request, "title")?, text(request, "description")?);
                let found = state.changes.iter_mut().find(|c| c.number == n);
                let found = found.ok_or_else(|| Reply::refused(404, "Not Found"))?;
                (found.title, found.body) = (title, body);
                Ok(Reply::new(200, item(found)))
            })
        }
        ("GET", ["merge_requests", n, "diffs"]) => {
            let n = number(n)?;
            let found = state.changes.iter().find(|c| c.number == n)?;
            let diff = json!({"old_path": "README.md", "new_path": "README.md", "diff": found.diff});
            Ok(page(request, vec![diff]))
        }
        _ => return None,
    })
}

fn on(kind: &str) -> Option<&'static str> {
    match kind {
        "issues" => Some("issue"),
        "merge_requests" => Some("change"),
        _ => None,
    }
}

fn add_labels(state: &mut State, request: &Request, n: u64) -> Result<Reply, Reply> {
    only(request, &["add_labels"])?;
    let names = text(request, "add_labels")?;
    let found = state.issues.iter_mut().find(|i| i.number == n);
    let found = found.ok_or_else(|| Reply::refused(404, "Not Found"))?;
    for name in names.split(',') {
        if !found.labels.iter().any(|l| l == name) {
            found.labels.push(name.to_owned());
        }
    }
    Ok(Reply::new(200, item(found)))
}

fn open_request(state: &mut State, token: &Token, request: &Request) -> Result<Reply, Reply> {
    only(request, &["title", "description", "source_branch", "target_branch", "remove_source_branch"])?;
    let head = text(request, "source_branch")?;
    if state.changes.iter().any(|c| !c.closed && c.head == head) {
        return Err(Reply::refused(409, "Another open merge request already exists for this source branch"));
    }
    let new = Item {
        number: state.next_change(),
        title: text(request, "title")?,
        body: text(request, "description")?,
        author: token.login.clone(),
        head,
        base: text(request, "target_branch")?,
        ..Item::default()
    };
    state.changes.push(new.clone());
    Ok(Reply::new(201, item(&new)))
}

fn item(item: &Item) -> Value {
    json!({
        "iid": item.number, "title": item.title, "description": item.body, "labels": item.labels,
        "state": if item.closed { "closed" } else { "opened" }, "author": {"username": item.author},
        "created_at": "2026-01-02T03:04:05Z", "draft": item.draft, "sha": item.commit,
        "source_branch": item.head, "target_branch": item.base,
        "source_project_id": if item.fork { 2 } else { 1 }, "target_project_id": 1,
    })
}

fn note(comment: &Comment) -> Value {
    json!({
        "id": comment.id, "body": comment.body, "system": false, "author": {"username": comment.author},
        "created_at": "2026-01-02T03:04:05Z",
    })
}
