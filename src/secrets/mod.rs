//! Values that must not be shown: the [`Secret`] type and the redactor that knows this run's values.

mod secret;

pub use secret::Secret;
