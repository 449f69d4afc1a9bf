//! Who wants to know of every child, for traces: told when one starts and how it ended.

use std::path::Path;
use std::sync::OnceLock;

use super::command::Status;

/// The variable that tells a child which trace it belongs to
/// ([W3C Trace Context](https://www.w3.org/TR/trace-context/), as environment variables carry it).
pub const VARIABLE: &str = "TRACEPARENT";

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The child ended like this.
    Status(Status),
    /// There was no child: its program could not be started.
    NotStarted,
    /// Nobody waited for it any more, and it was killed.
    Abandoned,
}

/// What hears of children.
pub trait Tracer: Send + Sync {
    /// A child is about to start. The number names the call in [`Tracer::ended`], the text is the child's
    /// [`VARIABLE`].
    fn started(&self, label: &str, program: &Path) -> (u64, String);
    /// The call has ended.
    fn ended(&self, call: u64, end: End);
}

static TRACER: OnceLock<Box<dyn Tracer>> = OnceLock::new();

/// Registers the one tracer. Later calls are ignored.
pub fn trace(tracer: impl Tracer + 'static) {
    let _ = TRACER.set(Box::new(tracer));
}

/// A call that has not ended; dropping it tells so.
#[derive(Debug)]
pub(super) struct Traced(Option<u64>);

impl Traced {
    /// Tells of a start. The text is for the child's environment.
    pub(super) fn start(label: &str, program: &Path) -> (Self, Option<String>) {
        match TRACER.get() {
            Some(tracer) => {
                let (call, context) = tracer.started(label, program);
                (Self(Some(call)), Some(context))
            }
            None => (Self(None), None),
        }
    }

    /// Tells of the end, once.
    pub(super) fn end(&mut self, end: End) {
        if let (Some(call), Some(tracer)) = (self.0.take(), TRACER.get()) {
            tracer.ended(call, end);
        }
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        self.end(End::Abandoned);
    }
}
