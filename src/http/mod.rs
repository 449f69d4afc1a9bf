//! The only place that opens an HTTP connection.
//!
//! One blocking client with the limits that every call needs: TLS against the machine's certificate authorities
//! (`SSL_CERT_FILE` names others), no redirects unless asked for, addresses checked after the name was resolved,
//! a size and a time for the whole answer, a few attempts for what passes by itself. Why this library:
//! `docs/design/http.md`.

mod address;
mod client;
mod failure;
mod trust;

pub use address::{check_host, is_public};
pub use client::{Client, Policy, Request, Response, host, resolve};
pub use failure::Failure;
pub use trust::custom_authorities;
