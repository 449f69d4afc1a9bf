//! A stand-in `openshell` executable for tests.
//!
//! It passes each call to the embedded backend (`$FULLSEND_WRAP_TARGET openshell …`), lends it the manners of an
//! older release, writes down what it was called with, and fails on demand. So no test code lives in the
//! backend. Configured by the environment:
//!
//! | variable | meaning |
//! |---|---|
//! | `FULLSEND_WRAP_TARGET` | the `fullsend` binary |
//! | `FULLSEND_WRAP_PERSONALITY` | `0.0.83`, `0.0.110`, `0.0.116` or `0.1.10` (default) |
//! | `FULLSEND_WRAP_LOG` | gets one JSON line per call: `argv`, `env` (names only), `stdin_null` |
//! | `FULLSEND_WRAP_FAULT` | faults, `;` separated, see [`fault`]; needs the log, which counts the calls |
//!
//! Not lent: the free names of 0.0.83, deleting a profile that a provider refers to (allowed before 0.1.0), and
//! `exec` reading its standard input to the end first.

#[path = "wrapper/fault.rs"]
mod fault;
#[path = "wrapper/help.rs"]
mod help;
#[path = "wrapper/log.rs"]
mod log;
#[path = "wrapper/old.rs"]
mod old;
#[path = "wrapper/personality.rs"]
mod personality;
#[path = "wrapper/target.rs"]
mod target;

use std::process::ExitCode;

use personality::Personality;

/// What the wrapper did: the exit status of the call.
type Result<T = i32> = std::io::Result<T>;

fn main() -> ExitCode {
    let argv: Vec<String> = std::env::args().skip(1).collect();
    match run(&argv) {
        Ok(code) => ExitCode::from(u8::try_from(code & 0xff).unwrap_or(1)),
        Err(error) => {
            target::say_err(&format!("openshell-wrapper: {error}\n"));
            ExitCode::from(99)
        }
    }
}

fn run(argv: &[String]) -> Result {
    let personality = Personality::from_env()?;
    let earlier = log::record(argv)?;
    let fault = fault::due(argv, &earlier)?;
    if let Some(fault) = &fault
        && !fault.after
        && let Some(code) = fault.strike()?
    {
        return Ok(code);
    }
    let code = old::call(personality, argv)?;
    if let Some(fault) = &fault
        && fault.after
        && let Some(code) = fault.strike()?
    {
        return Ok(code);
    }
    Ok(code)
}
