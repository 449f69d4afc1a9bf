//! Text to [`Harness`](model::Harness): reading, checking and expanding a harness directory. Pure but for
//! reading files; every problem is reported at once.

pub mod problem;
