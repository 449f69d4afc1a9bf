//! Agents: what is put into the sandbox for one, how it is started, and what its output stream means.
//!
//! ```text
//! bytes ── stream::Decoder ──► Event ─┬─► metrics::Metrics   (what it cost; kept when the agent is killed)
//!                                     ├─► render::Renderer   (lines for people)
//!                                     └─► judge::judge       (with the exit status: how it ended)
//! ```
//! Everything here is pure: no file is read and nothing is spawned.

mod blocks;
mod claude_stream;
mod codex_stream;
pub mod event;
pub mod judge;
pub mod lines;
pub mod metrics;
mod opencode_stream;
mod plain;
mod recent;
pub mod render;
mod repair;
pub mod runtime;
pub mod stream;
mod summary;
mod transient;

pub use event::{Event, ResultEvent, Usage};
pub use judge::{Evidence, Exit, Judgement, judge};
pub use metrics::Metrics;
pub use stream::{Decoder, Format, Stats};
pub use transient::transient;
