//! What records the spans of one run: the run itself, its phases, calls of other programs, tool calls of the agent.
//!
//! Phases follow one another, so a call belongs to the phase that runs when it starts. Spans are written to the run
//! directory when their phase ends: a run that is killed leaves those of the phases that it had ended.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::id::{Context, SpanId};
use super::span::{Attributes, Kind, Moment, Resource, Span, Status, Value, request};
use crate::error::Result;
use crate::process::Status as Exit;
use crate::process::trace::{End, Tracer};

/// The file in the run directory.
pub(crate) const FILE: &str = "otel.jsonl";
/// Calls and tool calls after that many spans are counted, not kept.
const SPANS: usize = 10_000;
/// When a span has more events than this, every second one goes.
const EVENTS: usize = 1024;

/// The recorder; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Recorder {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug)]
struct Shared {
    context: Context,
    resource: Resource,
    /// The clock of the whole trace: durations add up even when the clock of the machine is set.
    origin: (Instant, u64),
    root: Span,
    phase: Option<Span>,
    calls: BTreeMap<u64, Span>,
    ids: u64,
    done: Vec<Span>,
    written: usize,
    dropped: u64,
    file: Option<fs_err::File>,
}

/// What is left to be sent.
#[derive(Debug)]
pub(crate) struct Trace {
    /// Which trace.
    pub context: Context,
    /// Whose.
    pub resource: Resource,
    /// All of it, the run last.
    pub spans: Vec<Span>,
}

impl Recorder {
    /// A recorder whose run begins now.
    pub(crate) fn start(context: Context, resource: Resource, name: String) -> Result<Self> {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let origin = (Instant::now(), u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX));
        let root = Span {
            id: SpanId::random()?,
            parent: context.parent,
            name,
            kind: Kind::Internal,
            start: origin.1,
            end: origin.1,
            attributes: Vec::new(),
            events: Vec::new(),
            status: Status::Unset,
        };
        let shared = Shared {
            context,
            resource,
            origin,
            root,
            phase: None,
            calls: BTreeMap::new(),
            ids: 0,
            done: Vec::new(),
            written: 0,
            dropped: 0,
            file: None,
        };
        Ok(Self { shared: Arc::new(Mutex::new(shared)) })
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on spans are also written into the run directory.
    pub(crate) fn open(&self, run_dir: &Path, redact: &dyn Fn(&str) -> String) {
        let file = fs_err::File::create(run_dir.join(FILE));
        let mut shared = self.lock();
        match file {
            Ok(file) => shared.file = Some(file),
            Err(error) => tracing::warn!(%error, "spans cannot be written"),
        }
        shared.write(redact);
    }

    /// Begins a phase.
    pub(crate) fn phase(&self, name: &str) {
        let mut shared = self.lock();
        shared.end_phase(Status::Unset);
        let span = shared.span(name.to_owned(), Kind::Internal);
        shared.phase = Some(span);
    }

    /// Ends the phase, and writes it with all that belongs to it.
    pub(crate) fn phase_ended(&self, status: Status, note: &str, redact: &dyn Fn(&str) -> String) {
        if !note.is_empty() {
            self.note("fullsend.note", note);
        }
        let mut shared = self.lock();
        shared.end_phase(status);
        shared.write(redact);
    }

    /// Says more about the phase that runs, else about the run.
    pub(crate) fn note(&self, key: &'static str, value: impl Into<Value>) {
        let mut shared = self.lock();
        let shared = &mut *shared;
        let span = shared.phase.as_mut().unwrap_or(&mut shared.root);
        span.attributes.push((key, value.into()));
    }

    /// Something happened in the phase that runs, else in the run.
    pub(crate) fn moment(&self, name: &'static str, attributes: Attributes) {
        let mut shared = self.lock();
        let at = shared.now();
        let shared = &mut *shared;
        let span = shared.phase.as_mut().unwrap_or(&mut shared.root);
        span.events.push(Moment { at, name, attributes });
        if span.events.len() > EVENTS {
            let mut at = 0;
            span.events.retain(|_| {
                at += 1;
                at % 2 == 0
            });
        }
    }

    /// Begins a span within the phase; its number.
    pub(crate) fn begin(&self, name: String, kind: Kind, attributes: Attributes) -> u64 {
        let mut shared = self.lock();
        let mut span = shared.span(name, kind);
        span.attributes = attributes;
        let number = shared.ids;
        shared.calls.insert(number, span);
        number
    }

    /// Ends it.
    pub(crate) fn end(&self, number: u64, status: Status, more: Attributes) {
        let mut shared = self.lock();
        let now = shared.now();
        let Some(mut span) = shared.calls.remove(&number) else { return };
        span.end = now;
        span.status = status;
        span.attributes.extend(more);
        if shared.done.len() < SPANS {
            shared.done.push(span);
        } else {
            shared.dropped += 1;
        }
    }

    /// The run is over: ends what is open and writes the rest.
    pub(crate) fn conclude(&self, status: Status, about: Attributes, redact: &dyn Fn(&str) -> String) {
        let mut shared = self.lock();
        shared.end_phase(Status::Unset);
        let now = shared.now();
        for (_, mut span) in std::mem::take(&mut shared.calls) {
            span.end = now;
            span.attributes.push(("fullsend.unfinished", true.into()));
            shared.done.push(span);
        }
        let mut root = shared.root.clone();
        root.end = now;
        root.status = status;
        root.attributes.extend(about);
        if shared.dropped > 0 {
            root.attributes.push(("fullsend.dropped_spans", shared.dropped.into()));
        }
        shared.done.push(root);
        shared.write(redact);
    }

    /// The `traceparent` of what the phase calls by other ways than a child.
    pub(crate) fn traceparent(&self) -> String {
        let shared = self.lock();
        shared.context.header(shared.phase.as_ref().unwrap_or(&shared.root).id)
    }

    /// Everything, to be sent.
    pub(crate) fn take(&self) -> Trace {
        let mut shared = self.lock();
        shared.written = 0;
        Trace {
            context: shared.context,
            resource: shared.resource.clone(),
            spans: std::mem::take(&mut shared.done),
        }
    }
}

impl Shared {
    fn now(&self) -> u64 {
        let since = u64::try_from(self.origin.0.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.origin.1.saturating_add(since)
    }

    /// A span that begins now, below the phase that runs.
    fn span(&mut self, name: String, kind: Kind) -> Span {
        self.ids += 1;
        let now = self.now();
        Span {
            id: self.root.id.derived(self.ids),
            parent: Some(self.phase.as_ref().unwrap_or(&self.root).id),
            name,
            kind,
            start: now,
            end: now,
            attributes: Vec::new(),
            events: Vec::new(),
            status: Status::Unset,
        }
    }

    fn end_phase(&mut self, status: Status) {
        if let Some(mut phase) = self.phase.take() {
            phase.end = self.now();
            phase.status = status;
            self.done.push(phase);
        }
    }

    /// Spans only tell of a run, so a full disk does not end it here.
    fn write(&mut self, redact: &dyn Fn(&str) -> String) {
        let Some(file) = &mut self.file else { return };
        let new = &self.done[self.written..];
        if new.is_empty() {
            return;
        }
        let line = request(&self.resource, &self.context, new, redact);
        self.written = self.done.len();
        if let Err(error) = file.write_all(format!("{line}\n").as_bytes()) {
            tracing::warn!(%error, "spans cannot be written");
        }
    }
}

impl Tracer for Recorder {
    fn started(&self, label: &str, program: &Path) -> (u64, String) {
        let program = program.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let about = vec![("process.executable.name", program.into())];
        let number = self.begin(label.to_owned(), Kind::Client, about);
        let shared = self.lock();
        let id = shared.calls.get(&number).map_or(shared.root.id, |span| span.id);
        (number, shared.context.header(id))
    }

    fn ended(&self, call: u64, end: End) {
        let (status, more): (_, Attributes) = match end {
            // Whether that is a failure its phase says: some calls look for what is not there any more.
            End::Status(Exit::Exited(code)) => {
                (Status::Unset, vec![("process.exit.code", u64::from(code.unsigned_abs()).into())])
            }
            End::Status(Exit::Signaled(signal)) => {
                (Status::Unset, vec![("fullsend.signal", u64::from(signal.unsigned_abs()).into())])
            }
            End::NotStarted => {
                (Status::Error("not started".into()), vec![("error.type", "not_started".into())])
            }
            End::Abandoned => (Status::Unset, vec![("fullsend.abandoned", true.into())]),
        };
        self.end(call, status, more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorder() -> Recorder {
        Recorder::start(Context::new().unwrap(), Resource::default(), "run".into()).unwrap()
    }

    fn same(text: &str) -> String {
        text.to_owned()
    }

    #[test]
    fn spans_form_one_tree() {
        let dir = tempfile::tempdir().unwrap();
        let recorder = recorder();
        let early = recorder.started("early", Path::new("/bin/a")).0;
        recorder.phase("one");
        let (call, header) = recorder.started("call", Path::new("/bin/b"));
        recorder.open(dir.path(), &same);
        recorder.ended(call, End::Status(Exit::Exited(3)));
        recorder.phase_ended(Status::Ok, "note", &same);
        recorder.ended(early, End::Abandoned);
        let open = recorder.started("open", Path::new("c")).0;
        recorder.phase("lost");
        recorder.phase("two");
        recorder.phase_ended(Status::Error("x".into()), "", &same);
        recorder.conclude(Status::Ok, Vec::new(), &same);
        recorder.ended(open, End::Status(Exit::Exited(0)));

        let trace = recorder.take();
        let by = |name: &str| trace.spans.iter().find(|s| s.name == name).unwrap();
        let root = trace.spans.last().unwrap();
        assert_eq!((root.name.as_str(), root.parent), ("run", None));
        for name in ["early", "one", "open", "lost", "two"] {
            assert_eq!(by(name).parent, Some(root.id), "{name}");
        }
        assert_eq!(by("call").parent, Some(by("one").id));
        assert_eq!(header, trace.context.header(by("call").id));
        assert!(by("call").attributes.contains(&("process.exit.code", 3_u64.into())));
        assert!(by("open").attributes.contains(&("fullsend.unfinished", true.into())));
        assert!(trace.spans.iter().all(|s| root.start <= s.start && s.start <= s.end && s.end <= root.end));

        let text = std::fs::read_to_string(dir.path().join(FILE)).unwrap();
        let written: usize = text
            .lines()
            .map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap())
            .map(|v| v["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().len())
            .sum();
        assert_eq!(written, trace.spans.len());
    }

    #[test]
    fn what_an_agent_does_without_end_is_bounded() {
        let recorder = recorder();
        recorder.phase("agent");
        for _ in 0..SPANS + 5 {
            let n = recorder.begin("tool".into(), Kind::Internal, Vec::new());
            recorder.end(n, Status::Unset, Vec::new());
            recorder.moment("usage", Vec::new());
        }
        recorder.conclude(Status::Ok, Vec::new(), &same);
        let trace = recorder.take();
        assert_eq!(trace.spans.len(), SPANS + 2);
        assert!(trace.spans.iter().all(|s| s.events.len() <= EVENTS));
        let root = trace.spans.last().unwrap();
        assert!(root.attributes.contains(&("fullsend.dropped_spans", 5_u64.into())));
    }
}
