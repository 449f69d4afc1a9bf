//! The releases whose manners the wrapper knows.

use std::io::{Error, ErrorKind};

/// A release, in order of age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Personality {
    /// The release that most harnesses were written for.
    V0_0_83,
    /// The last one before the command became the main process.
    V0_0_110,
    /// The last 0.0 release: `--detach`, JSON arrays.
    V0_0_116,
    /// 0.1: JSON objects, terminal `Completed`, `profile`.
    V0_1_10,
}

impl Personality {
    /// The one that the environment asks for.
    pub(crate) fn from_env() -> std::io::Result<Self> {
        match std::env::var("FULLSEND_WRAP_PERSONALITY").as_deref() {
            Ok("0.0.83") => Ok(Self::V0_0_83),
            Ok("0.0.110") => Ok(Self::V0_0_110),
            Ok("0.0.116") => Ok(Self::V0_0_116),
            Ok("0.1.10" | "") | Err(_) => Ok(Self::V0_1_10),
            Ok(other) => Err(Error::new(ErrorKind::InvalidInput, format!("unknown personality {other}"))),
        }
    }

    /// The version as `--version` prints it.
    pub(crate) const fn version(self) -> &'static str {
        match self {
            Self::V0_0_83 => "0.0.83",
            Self::V0_0_110 => "0.0.110",
            Self::V0_0_116 => "0.0.116",
            Self::V0_1_10 => "0.1.10",
        }
    }
}
