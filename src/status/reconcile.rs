//! The end of comments whose run could not write it.
//!
//! Two ways lead to them: the records of this host, and the comments of a thread. A run that lives here is never
//! touched; one that cannot be judged from here is touched only when its own time is over, or when the caller says
//! that its CI run is, or that it began too long ago. A comment is read again right before it is changed.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::Serialize;

use super::body::lost;
use super::marker::{Marker, State, place};
use super::record::{self, Record};
use super::settings::{Asked, Settings};
use crate::error::{Code, Error, Result};
use crate::forge::{Client, Comment, Platform, Site, Thread};
use crate::harness::{Environment, Forge};
use crate::process::scale;
use crate::run::owner::{Liveness, Owner};

/// The time for one thread.
const THREAD: Duration = Duration::from_mins(2);
/// After how long a record is given up whose comment cannot be found.
const GIVEN_UP: Duration = Duration::from_hours(30 * 24);

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Reconcile {
    /// The thread to look through, the URL of a CI run that is over, and the variable with the token.
    pub asked: Asked,
    /// The forge, when it was given.
    pub forge: Option<Forge>,
    /// Comments that were not changed for so long are over.
    pub older_than: Option<Duration>,
    /// Whether nothing is changed.
    pub dry_run: bool,
}

/// What was done. Version 1.
#[derive(Debug, Serialize)]
pub(crate) struct Reconciled {
    schema: &'static str,
    dry_run: bool,
    comments: Vec<Seen>,
    /// What could not be done.
    pub problems: Vec<crate::fleet::Problem>,
}

/// One comment without an end.
#[derive(Debug, Serialize)]
struct Seen {
    thread: String,
    comment: Option<u64>,
    run: String,
    agent: String,
    /// Whether it has its end now, or would have it.
    ended: bool,
    why: &'static str,
}

/// Why a comment is over, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Judged {
    Over(&'static str),
    Alive(&'static str),
}

/// Looks at the records of this host, and at the thread when one is named. Blocks.
pub(crate) fn reconcile(options: &Reconcile) -> Result<Reconciled> {
    let env = Environment::new(std::env::vars_os(), std::collections::BTreeMap::new());
    let settings = Settings::find(&options.asked, options.forge, None, &env)
        .map_err(|why| Error::new(Code::Usage, why).help("see `fullsend reconcile-status --help`"))?;
    let (records, strange) = record::read_all()?;
    let mut pass = Pass {
        options,
        env,
        here: Owner::this(),
        now: Timestamp::now(),
        out: Reconciled {
            schema: "fullsend.reconcile-status/1",
            dry_run: options.dry_run,
            comments: Vec::new(),
            problems: Vec::new(),
        },
    };
    for (path, why) in strange {
        pass.strange(&path, &why);
    }
    for record in &records {
        pass.record(record);
    }
    if let Some(settings) = settings {
        pass.thread(&settings, &records);
    }
    Ok(pass.out)
}

struct Pass<'o> {
    options: &'o Reconcile,
    env: Environment,
    here: Owner,
    now: Timestamp,
    out: Reconciled,
}

impl Pass<'_> {
    fn strange(&mut self, path: &Path, why: &str) {
        let error = Error::new(Code::Io, why).help(format!("delete it: rm {}", path.display()));
        self.out.problems.push(crate::fleet::Problem::new(&path.display().to_string(), &error));
    }

    /// A comment that a run of this host began.
    fn record(&mut self, record: &Record) {
        let judged = match record.owner.liveness(&self.here) {
            Liveness::Alive => Judged::Alive("its process runs"),
            Liveness::Dead => Judged::Over("its process has ended"),
            Liveness::Elsewhere if record.until <= self.now => Judged::Over("its time is over"),
            Liveness::Elsewhere => {
                Judged::Alive("it belongs to another machine or container, and its time is not over")
            }
        };
        let mut seen = Seen {
            thread: record.thread.to_string(),
            comment: record.comment,
            run: record.run.clone(),
            agent: record.agent.clone(),
            ended: false,
            why: "",
        };
        match judged {
            Judged::Alive(why) => seen.why = why,
            Judged::Over(why) => {
                seen.why = why;
                match self.end_of_record(record, &mut seen) {
                    Ok(()) => seen.ended = true,
                    Err(error) => {
                        self.out.problems.push(crate::fleet::Problem::new(&seen.thread, &error));
                    }
                }
            }
        }
        self.out.comments.push(seen);
    }

    fn end_of_record(&self, record: &Record, seen: &mut Seen) -> Result<()> {
        let client = self.client(record)?;
        let end = Instant::now() + scale::limit(THREAD);
        let found = self.find(&client, record, end)?;
        seen.comment = found.as_ref().map(|comment| comment.id);
        if self.options.dry_run {
            return Ok(());
        }
        let changed = match (found, record.ending.as_deref()) {
            (Some(comment), ending) => match running(&comment).filter(|m| m.run.as_str() == record.run) {
                Some(marker) => match ending {
                    Some("") => client.delete(&record.thread, comment.id, end),
                    Some(text) => client.edit(&record.thread, comment.id, text, end),
                    None => client.edit(&record.thread, comment.id, &self.lost(&marker, &comment), end),
                },
                // It has its end, or a later run of the same job speaks there.
                None => Ok(()),
            },
            // The run could not even write the first.
            (None, Some(text)) if !text.is_empty() => {
                let own = |c: &Comment| Marker::of(&c.body).is_some_and(|m| m.run.as_str() == record.run);
                client.create(&record.thread, text, end, &own).map(|comment| seen.comment = Some(comment.id))
            }
            (None, _) => Ok(()),
        };
        changed.map_err(|t| t.error("cannot write the comment"))?;
        record.remove();
        Ok(())
    }

    /// The comment of a record, or the one of a later run of the same job.
    fn find(&self, client: &Client, record: &Record, end: Instant) -> Result<Option<Comment>> {
        let Some(id) = record.comment else {
            let own = |c: &Comment| {
                Marker::of(&c.body).is_some_and(|m| m.key == record.key) && client.is_own(c, end)
            };
            let all = client.comments(&record.thread, end, &own);
            let last = all.map_err(|t| t.error("cannot read the comments"))?.pop();
            return Ok(last.filter(own));
        };
        match client.comment(&record.thread, id, end) {
            Ok(comment) => Ok(Some(comment)),
            Err(trouble) => {
                let late = Duration::try_from(self.now.duration_since(record.until)).unwrap_or_default();
                // Deleted, or not to be seen with this token.
                if trouble.is_gone() && late >= GIVEN_UP {
                    record.remove();
                }
                Err(trouble.error("cannot read the comment"))
            }
        }
    }

    /// A client for a record. A token goes only to the server that this environment names.
    fn client(&self, record: &Record) -> Result<Client> {
        let token_env = self.options.asked.token_env.as_deref();
        let site = Site::from_env(record.platform, token_env, |name| self.env.0.get(name).cloned());
        let site = site.map_err(|why| {
            Error::new(Code::Forge, why.to_string())
                .help("give this command the token that the runs have; --status-token-env names its variable")
        })?;
        if site.api != record.api {
            let variable = match record.platform {
                Platform::GitHub => "GITHUB_API_URL",
                Platform::GitLab => "CI_API_V4_URL",
            };
            let message = format!("the comment is on {}, and the token is for {}", record.api, site.api);
            return Err(Error::new(Code::Forge, message)
                .help(format!("set {variable}={} and a token for that server", record.api)));
        }
        Client::new(site).map_err(|trouble| trouble.error("cannot reach the forge"))
    }

    /// The comments of a thread.
    fn thread(&mut self, settings: &Settings, records: &[Record]) {
        if let Err(error) = self.look(settings, records) {
            self.out.problems.push(crate::fleet::Problem::new(&settings.thread.to_string(), &error));
        }
    }

    fn look(&mut self, settings: &Settings, records: &[Record]) -> Result<()> {
        let client = Client::new(settings.site.clone()).map_err(|t| t.error("cannot reach the forge"))?;
        let (thread, end) = (&settings.thread, Instant::now() + scale::limit(THREAD));
        let comments = client.comments(thread, end, &|_| false);
        for comment in comments.map_err(|t| t.error("cannot read the comments"))? {
            let Some(marker) = running(&comment) else { continue };
            // The records have been dealt with.
            if records.iter().any(|record| record.run == marker.run.as_str()) || !client.is_own(&comment, end)
            {
                continue;
            }
            let judged = self.judge(&marker, &comment);
            let (ended, why) = match judged {
                Judged::Alive(why) => (false, why),
                Judged::Over(why) => (self.end_of_comment(&client, thread, &comment, end)?, why),
            };
            self.out.comments.push(Seen {
                thread: thread.to_string(),
                comment: Some(comment.id),
                run: marker.run.to_string(),
                agent: marker.agent,
                ended,
                why,
            });
        }
        Ok(())
    }

    fn judge(&self, marker: &Marker, comment: &Comment) -> Judged {
        let asked = self.options.asked.run_url.as_deref().filter(|url| !url.is_empty()).map(place);
        let age = comment.updated.and_then(|at| Duration::try_from(self.now.duration_since(at)).ok());
        if marker.until <= self.now {
            Judged::Over("its time is over")
        } else if asked.is_some() && asked == marker.at {
            Judged::Over("its CI run is said to be over")
        } else if self.options.older_than.zip(age).is_some_and(|(limit, age)| age >= limit) {
            Judged::Over("it has not changed for longer than was asked for")
        } else {
            Judged::Alive("its time is not over")
        }
    }

    /// Writes the end, unless the run has done so meanwhile.
    fn end_of_comment(&self, client: &Client, thread: &Thread, seen: &Comment, end: Instant) -> Result<bool> {
        if self.options.dry_run {
            return Ok(true);
        }
        let now = match client.comment(thread, seen.id, end) {
            Ok(comment) => comment,
            Err(trouble) if trouble.is_gone() => return Ok(false),
            Err(trouble) => return Err(trouble.error("cannot read the comment")),
        };
        let Some(marker) = running(&now).filter(|marker| Some(marker) == running(seen).as_ref()) else {
            return Ok(false);
        };
        let text = self.lost(&marker, &now);
        client.edit(thread, now.id, &text, end).map_err(|t| t.error("cannot change the comment"))?;
        Ok(true)
    }

    fn lost(&self, marker: &Marker, comment: &Comment) -> String {
        let ended = Marker { state: State::Ended, ..marker.clone() };
        format!("{}\n{}", ended.line(), lost(&marker.agent, &comment.body, self.now))
    }
}

fn running(comment: &Comment) -> Option<Marker> {
    Marker::of(&comment.body).filter(|marker| marker.state == State::Running)
}

impl Reconciled {
    /// For people.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        if self.comments.is_empty() {
            out.push_str("no status comment waits for its end\n");
        }
        for seen in &self.comments {
            let verb = match (seen.ended, self.dry_run) {
                (true, true) => "would end",
                (true, false) => "ended",
                (false, _) => "left alone",
            };
            let _ =
                writeln!(out, "{verb} {} of {} (run {}): {}", seen.thread, seen.agent, seen.run, seen.why);
        }
        out
    }
}
