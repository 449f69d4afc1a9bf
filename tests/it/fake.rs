//! A scripted `openshell` that never has a sandbox: `tests/support/fake-openshell`.

use std::path::{Path, PathBuf};

use crate::support::World;

/// The executable.
pub(crate) fn executable() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/fake-openshell")
}

/// Makes the world's `openshell` the fake one.
pub(crate) fn install(world: &mut World) {
    world.env("FULLSEND_OPENSHELL", executable().to_str().unwrap());
    let dir = world.path("fake").to_str().unwrap().to_owned();
    std::fs::create_dir_all(&dir).unwrap();
    world.env("FAKE_DIR", dir);
}

/// Bash text that may answer a call itself (`$*` are its arguments) before the usual answers.
pub(crate) fn answer(world: &World, body: &str) {
    world.write("fake/answer", body);
}

/// The arguments of each call.
pub(crate) fn calls(world: &World) -> Vec<String> {
    let text = std::fs::read_to_string(world.path("fake/calls")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Whether a sandbox was asked for.
pub(crate) fn asked_for_a_sandbox(world: &World) -> bool {
    calls(world).iter().any(|call| call.starts_with("sandbox create ") && !call.ends_with("--help"))
}
