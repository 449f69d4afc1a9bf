//! Calls of one forge: bounded in time, patient with its limits, never followed to another place.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Comment, Platform, Site, Thread, Trouble, github, gitlab, limits};
use crate::http::{self, Policy, Request, Response};
use crate::process::scale;

/// The time for one request.
const REQUEST: Duration = Duration::from_secs(10);
/// The pause before the second attempt; it doubles.
const PAUSE: Duration = Duration::from_millis(500);
/// How often one call is tried; its end comes before that where it is near.
const ATTEMPTS: u32 = 5;
/// Comments per page: the most that both servers give.
const PAGE: usize = 100;
/// The most pages that are looked through, from the newest comment on.
const PAGES: u32 = 10;
/// The largest answer, in bytes: a page of comments of 64 KiB each, and more.
const ANSWER: u64 = 16 * 1024 * 1024;
/// How much of what a server says about a refusal is shown, in bytes.
const SAID: usize = 200;

/// A client of one site. Every call blocks, and ends at the given moment at the latest.
#[derive(Debug)]
pub struct Client {
    http: http::Client,
    site: Site,
    me: OnceLock<Option<String>>,
}

impl Client {
    /// A client for `site`. Its host may have a private address: whoever set the job's variables names it.
    pub fn new(site: Site) -> Result<Self, Trouble> {
        let policy = Policy {
            private_hosts: vec![site.host().to_owned()],
            plain_http: site.is_plain(),
            redirects: 0,
            max_bytes: ANSWER,
            timeout: REQUEST,
            attempts: 1,
        };
        Ok(Self { http: http::Client::new(policy)?, site, me: OnceLock::new() })
    }

    /// The comments of a thread, the newest first, up to and with the first that `stop` is true for, among the newest
    /// thousand.
    pub fn comments(
        &self,
        thread: &Thread,
        end: Instant,
        stop: &dyn Fn(&Comment) -> bool,
    ) -> Result<Vec<Comment>, Trouble> {
        let mut found = Vec::new();
        // True when there is no need to go on.
        let mut take = |page: Vec<Comment>| {
            for comment in page {
                let last = stop(&comment);
                found.push(comment);
                if last {
                    return true;
                }
            }
            false
        };
        match self.site.platform {
            Platform::GitLab => {
                for number in 1..=PAGES {
                    let (page, _) = self.page(thread, number, end)?;
                    let full = page.len() == PAGE;
                    if take(page) || !full {
                        break;
                    }
                }
            }
            // GitHub sorts the comments of an issue by age, oldest first, and in no other way.
            Platform::GitHub => {
                let (mut first, last) = self.page(thread, 1, end)?;
                first.reverse();
                let oldest = last.saturating_sub(PAGES - 1).max(2);
                for number in (oldest..=last).rev() {
                    let (mut page, _) = self.page(thread, number, end)?;
                    page.reverse();
                    if take(page) {
                        return Ok(found);
                    }
                }
                take(first);
            }
        }
        Ok(found)
    }

    /// One page, and the number of the last one.
    fn page(&self, thread: &Thread, number: u32, end: Instant) -> Result<(Vec<Comment>, u32), Trouble> {
        let path = match self.site.platform {
            Platform::GitHub => format!("{}?per_page={PAGE}&page={number}", github::comments(thread)),
            Platform::GitLab => format!(
                "{}?per_page={PAGE}&page={number}&order_by=created_at&sort=desc",
                gitlab::comments(thread)
            ),
        };
        let response = self.call("GET", &path, None, end)?;
        let link = response.headers.iter().find(|(name, _)| name == "link");
        let last = link.and_then(|(_, link)| github::last_page(link)).unwrap_or(1);
        let values: Vec<Value> = understood(serde_json::from_slice(&response.body))?;
        let comments = values.into_iter().map(|value| self.parse(value)).collect::<Result<_, _>>()?;
        Ok((comments, last))
    }

    /// One comment.
    pub fn comment(&self, thread: &Thread, id: u64, end: Instant) -> Result<Comment, Trouble> {
        let response = self.call("GET", &self.path(thread, id), None, end)?;
        self.parse(understood(serde_json::from_slice(&response.body))?)
    }

    /// Writes a new comment. When it is not known whether an attempt was carried out, the thread is searched for one
    /// that `is_it` before the next, so that there are never two.
    pub fn create(
        &self,
        thread: &Thread,
        body: &str,
        end: Instant,
        is_it: &dyn Fn(&Comment) -> bool,
    ) -> Result<Comment, Trouble> {
        let path = match self.site.platform {
            Platform::GitHub => github::comments(thread),
            Platform::GitLab => gitlab::comments(thread),
        };
        let mut pause = PAUSE;
        for attempt in 1.. {
            let trouble = match self.attempt("POST", &path, Some(body), end) {
                Ok(response) => return self.parse(understood(serde_json::from_slice(&response.body))?),
                Err(trouble) => trouble,
            };
            wait(&trouble, &mut pause, attempt, end)?;
            if trouble.is_open()
                && let Some(there) = self.comments(thread, end, is_it)?.into_iter().find(|c| is_it(c))
            {
                return Ok(there);
            }
        }
        Err(Trouble::Late)
    }

    /// Replaces the text of a comment.
    pub fn edit(&self, thread: &Thread, id: u64, body: &str, end: Instant) -> Result<(), Trouble> {
        let method = match self.site.platform {
            Platform::GitHub => "PATCH",
            Platform::GitLab => "PUT",
        };
        self.call(method, &self.path(thread, id), Some(body), end).map(drop)
    }

    /// Deletes a comment; one that is gone is fine.
    pub fn delete(&self, thread: &Thread, id: u64, end: Instant) -> Result<(), Trouble> {
        match self.call("DELETE", &self.path(thread, id), None, end) {
            Err(trouble) if trouble.is_gone() => Ok(()),
            other => other.map(drop),
        }
    }

    /// Whether a comment was written with this token: its author is the token's user. A token of an app has no user
    /// (GitHub answers 403), and then the author has to be an app, which no stranger on the thread can be.
    pub fn is_own(&self, comment: &Comment, end: Instant) -> bool {
        let me = self.me.get_or_init(|| {
            let response = self.call("GET", "/user", None, end).ok()?;
            let user: Value = serde_json::from_slice(&response.body).ok()?;
            let name = user.get("login").or_else(|| user.get("username"))?;
            name.as_str().map(str::to_owned)
        });
        match me {
            Some(name) => name.eq_ignore_ascii_case(&comment.author),
            None => comment.bot,
        }
    }

    fn path(&self, thread: &Thread, id: u64) -> String {
        match self.site.platform {
            Platform::GitHub => github::comment(thread, id),
            Platform::GitLab => gitlab::comment(thread, id),
        }
    }

    fn parse(&self, value: Value) -> Result<Comment, Trouble> {
        understood(match self.site.platform {
            Platform::GitHub => github::parse(value),
            Platform::GitLab => gitlab::parse(value),
        })
    }

    /// A call that does no harm when it is carried out twice.
    fn call(&self, method: &str, path: &str, body: Option<&str>, end: Instant) -> Result<Response, Trouble> {
        let mut pause = PAUSE;
        for attempt in 1.. {
            match self.attempt(method, path, body, end) {
                Ok(response) => return Ok(response),
                Err(trouble) => wait(&trouble, &mut pause, attempt, end)?,
            }
        }
        Err(Trouble::Late)
    }

    fn attempt(
        &self,
        method: &str,
        path: &str,
        body: Option<&str>,
        end: Instant,
    ) -> Result<Response, Trouble> {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Trouble::Late);
        }
        let mut headers = match self.site.platform {
            Platform::GitHub => github::headers(&self.site.token),
            Platform::GitLab => gitlab::headers(&self.site.token),
        };
        if body.is_some() {
            headers.push(("content-type".into(), "application/json".into()));
        }
        let body = body.map(|text| json!({ "body": text }).to_string().into_bytes());
        let url = format!("{}{path}", self.site.api);
        let request = Request { method: method.into(), url, headers, body: body.unwrap_or_default() };
        let response = self.http.exchange(&request, left.min(scale::limit(REQUEST)))?;
        if (200..300).contains(&response.status) {
            return Ok(response);
        }
        if let Some(wait) = limits::wait(&response, Timestamp::now()) {
            return Err(Trouble::Limited(wait));
        }
        Err(Trouble::Status { status: response.status, said: said(&response.body) })
    }
}

/// Waits for the next attempt; the trouble itself when there is to be none.
fn wait(trouble: &Trouble, pause: &mut Duration, attempt: u32, end: Instant) -> Result<(), Trouble> {
    let this = match trouble {
        Trouble::Limited(wait) => *wait,
        _ => scale::pause(*pause),
    };
    let in_time = Instant::now().checked_add(this).is_some_and(|next| next < end);
    if !trouble.is_transient() || attempt >= ATTEMPTS || !in_time {
        return Err(trouble.clone());
    }
    std::thread::sleep(this);
    *pause *= 2;
    Ok(())
}

fn understood<T>(result: Result<T, serde_json::Error>) -> Result<T, Trouble> {
    result.map_err(|e| Trouble::Answer(e.to_string()))
}

/// The server's own words about a refusal: `message` or `error` of a JSON answer, on one line.
fn said(body: &[u8]) -> String {
    let Ok(value) = serde_json::from_slice::<Value>(body) else { return String::new() };
    let said = ["message", "error"].iter().find_map(|key| value.get(key));
    let text = match said {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => return String::new(),
    };
    let text = crate::report::sanitize::line(&text, crate::report::Ci::None);
    format!(" ({})", crate::report::sanitize::truncate(&text, SAID))
}
