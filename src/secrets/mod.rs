//! Values that must not be shown: the [`Secret`] type and the redactor that knows this run's values.

mod redact;
mod secret;

pub use redact::{MIN_LEN, Redactor, Registry, Searcher};
pub(crate) use secret::MASK;
pub use secret::Secret;
