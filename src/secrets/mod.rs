//! Values that must not be shown: the [`Secret`] type and the redactor that knows this run's values.

mod canary;
mod judge;
mod redact;
mod secret;

pub use judge::{is_credential, is_secret_name, looks_made, of_file, of_variable, within};
pub(crate) use redact::find_tokens;
pub use redact::{MIN_LEN, Redactor, Registry, Searcher};
pub(crate) use secret::MASK;
pub use secret::Secret;
