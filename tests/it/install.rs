//! A release as it is packed (`.ci/package`) and installed (`install.sh`), from a directory instead of a forge.

use std::path::PathBuf;

use crate::support::{Done, World, fullsend};

const VERSION: &str = "9.8.7";

fn root(below: &str) -> String {
    format!("{}/{below}", env!("CARGO_MANIFEST_DIR"))
}

/// Both builds for this machine, whichever its C library is.
fn names() -> [String; 2] {
    ["gnu", "musl"].map(|libc| format!("fullsend-{VERSION}-{}-unknown-linux-{libc}", std::env::consts::ARCH))
}

/// A release of a program that says a version.
fn release() -> World {
    let world = World::new();
    world.write("release/SHA256SUMS", "");
    for name in names() {
        world.script(&format!("pack/{name}/fullsend"), "echo fullsend 9.8.7");
        pack(&world, &name);
    }
    world
}

/// Packs `pack/NAME` and lists its checksum.
fn pack(world: &World, name: &str) {
    let script = format!(
        "cd pack && tar -czf ../release/{name}.tar.gz {name} && cd ../release && \
         sed -i '/{name}/d' SHA256SUMS && sha256sum {name}.tar.gz >>SHA256SUMS"
    );
    let done = world.finish(world.command("bash", &["-c", &script], &world.path("")));
    assert_eq!(done.code, 0, "{}", done.stderr);
}

fn install(world: &mut World, more: &[&str]) -> Done {
    let url = format!("file://{}", world.path("release").display());
    world.env("FULLSEND_DOWNLOAD_URL", url);
    let dir = world.path("home/bin").display().to_string();
    let script = root(".github/install.sh");
    let args = [&[script.as_str(), "--version", VERSION, "--dir", &dir], more].concat();
    world.finish(world.command("sh", &args, &world.repo()))
}

fn installed(world: &World) -> PathBuf {
    world.path("home/bin/fullsend")
}

/// A stand-in for cosign, before any real one; and no `gh`.
fn cosign(world: &mut World, body: &str) {
    let log = world.path("cosign.log").display().to_string();
    world.script("bin/cosign", &format!("printf '%s\\n' \"$@\" >'{log}'\n{body}"));
    let path = format!("{}:{}", world.path("bin").display(), std::env::var("PATH").unwrap());
    world.env("PATH", path);
}

#[track_caller]
fn refused(world: &World, done: &Done, said: &str) {
    assert_eq!(done.code, 1, "{}", done.stderr);
    assert!(done.stderr.contains(said), "{}", done.stderr);
    assert!(!installed(world).exists(), "something was installed: {}", done.stderr);
    assert_eq!(std::fs::read_dir(world.path("tmp")).unwrap().count(), 0, "temp files are left");
}

#[test]
fn what_is_packed_can_be_installed() {
    let mut world = World::new();
    let program = fullsend().to_str().unwrap();
    let out = world.path("release").display().to_string();
    let version = world.fullsend(&["--version"]).stdout.trim().replace("fullsend ", "");
    for libc in ["gnu", "musl"] {
        let triple = format!("{}-unknown-linux-{libc}", std::env::consts::ARCH);
        let done = world.finish(world.command(root(".ci/package"), &[program, &triple, &out], &world.repo()));
        assert_eq!(done.code, 0, "{}", done.stderr);
    }
    let sums =
        world.finish(world.command("bash", &["-c", "sha256sum *.gz >SHA256SUMS"], &world.path("release")));
    assert_eq!(sums.code, 0, "{}", sums.stderr);
    world.env("FULLSEND_DOWNLOAD_URL", format!("file://{out}"));
    let dir = world.path("home/bin").display().to_string();
    let args = [root(".github/install.sh"), "--version".into(), format!("v{version}"), "--dir".into(), dir];
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let done = world.finish(world.command("sh", &args, &world.repo()));
    assert_eq!(done.code, 0, "{}", done.stderr);
    let said = world.finish(world.command(installed(&world), &["--version"], &world.repo()));
    assert_eq!(said.stdout.trim(), format!("fullsend {version}"));
    // Twice is as good as once, and nothing else is left in the directory.
    let done = world.finish(world.command("sh", &args, &world.repo()));
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(std::fs::read_dir(world.path("home/bin")).unwrap().count(), 1);
}

#[test]
fn an_archive_that_was_changed_is_not_installed() {
    let mut world = release();
    for name in names() {
        world.script(&format!("pack/{name}/fullsend"), "echo evil");
        let sums = std::fs::read(world.path("release/SHA256SUMS")).unwrap();
        pack(&world, &name);
        std::fs::write(world.path("release/SHA256SUMS"), sums).unwrap();
    }
    let done = install(&mut world, &[]);
    refused(&world, &done, "was published");

    world.write("release/SHA256SUMS", "");
    let done = install(&mut world, &[]);
    refused(&world, &done, "no line for");
}

#[test]
fn a_signature_of_another_workflow_is_refused() {
    let mut world = release();
    world.write("release/SHA256SUMS.sigstore.json", "{}");
    cosign(&mut world, "echo 'none of the expected identities matched' >&2; exit 1");
    let done = install(&mut world, &["--repository", "acme/fullsend"]);
    refused(&world, &done, "none of the expected identities matched");

    cosign(&mut world, "exit 0");
    let done = install(&mut world, &["--repository", "acme/fullsend", "--require-signature"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let asked = std::fs::read_to_string(world.path("cosign.log")).unwrap();
    assert!(
        asked.contains("https://github.com/acme/fullsend/.github/workflows/release.yml@refs/tags/v9.8.7\n"),
        "{asked}"
    );

    std::fs::remove_file(world.path("release/SHA256SUMS.sigstore.json")).unwrap();
    std::fs::remove_file(installed(&world)).unwrap();
    let done = install(&mut world, &["--repository", "acme/fullsend"]);
    refused(&world, &done, "signature of the checksums is missing");
}

#[test]
fn an_attestation_has_to_be_that_of_the_release_workflow() {
    let mut world = release();
    let log = world.path("gh.log").display().to_string();
    world.script("bin/gh", &format!("[[ $1 == auth ]] && exit 0\nprintf '%s\\n' \"$@\" >'{log}'\nexit 1"));
    let mut path = std::env::var("PATH").unwrap();
    path.insert_str(0, &format!("{}:", world.path("bin").display()));
    world.env("PATH", path);
    let done = install(&mut world, &["--repository", "acme/fullsend"]);
    refused(&world, &done, "no attestation of the release workflow");
    let asked = std::fs::read_to_string(&log).unwrap();
    for part in [
        "--repo\nacme/fullsend\n",
        "--source-ref\nrefs/tags/v9.8.7\n",
        "--signer-workflow\nacme/fullsend/.github/workflows/release.yml\n",
    ] {
        assert!(asked.contains(part), "{asked}");
    }
}

#[test]
fn a_signature_can_be_insisted_on() {
    let mut world = release();
    // Without a repository nothing says who may have signed.
    let done = install(&mut world, &["--require-signature"]);
    refused(&world, &done, "not installed");
    let done = install(&mut world, &[]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stderr.contains("was not checked"), "{}", done.stderr);
}

#[test]
fn a_program_that_does_not_run_is_not_installed() {
    let mut world = release();
    for name in names() {
        world.script(&format!("pack/{name}/fullsend"), "exit 1");
        pack(&world, &name);
    }
    let done = install(&mut world, &[]);
    refused(&world, &done, "does not run");
}

#[test]
fn what_is_no_version_or_no_repository_is_refused() {
    let mut world = World::new();
    let script = root(".github/install.sh");
    world.env("FULLSEND_DOWNLOAD_URL", "");
    for (args, said) in [
        (&["--version", "../1"][..], "is no version"),
        (&["--version", "1.0; id"], "is no version"),
        (&["--repository", "a/b/c", "--version", "1"], "name the repository"),
        (&["--repository", "a b/c", "--version", "1"], "name the repository"),
    ] {
        let mut all = vec![script.as_str(), "--repository", "acme/fullsend"];
        all.extend(args);
        let done = world.finish(world.command("sh", &all, &world.repo()));
        refused(&world, &done, said);
    }
}
