//! What an image has to show before a sandbox is made of it; `cosign` is a script here.

use crate::fake;
use crate::support::{Run, World};

const PINNED: &str =
    "r.test/team/agent@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// A world whose image is `image` under `policy`, with an OpenShell that never has a sandbox.
fn world(image: &str, policy: &str) -> World {
    let mut world = World::new();
    fake::install(&mut world);
    world.harness(&format!("agent: agents/work\nruntime: script\ntimeout_minutes: 2\nimage: {image}\n"));
    world.write("h/config.yaml", policy);
    world
}

/// Puts a `cosign` on the PATH that notes its arguments and then does `body`.
fn cosign(world: &mut World, body: &str) {
    let log = world.path("cosign.log");
    world.script("bin/cosign", &format!("printf '%s\\n' \"$*\" >>'{}'\n{body}", log.display()));
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", world.path("bin").display());
    world.env("PATH", path);
}

/// Leaves directories with a real cosign out of the PATH.
fn no_cosign(world: &mut World) {
    let path = std::env::var_os("PATH").unwrap();
    let kept = std::env::split_paths(&path).filter(|dir| !dir.join("cosign").exists());
    let path = std::env::join_paths(kept).unwrap().into_string().unwrap();
    world.env("PATH", path);
}

fn asked(world: &World) -> Vec<String> {
    let text = std::fs::read_to_string(world.path("cosign.log")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[track_caller]
fn refused(world: &World, run: Run, code: &str, exit: i32) -> Run {
    let run = run.failure(code, exit);
    assert!(!fake::asked_for_a_sandbox(world), "a sandbox was asked for: {:?}", fake::calls(world));
    run
}

const SIGNERS: &str = "image_policy:\n  signature: required\n  signers:\n    - {identity: 'https://x.test/w.yml@refs/heads/main', \
                       issuer: 'https://issuer.test'}\n    - {identity_regexp: '^https://y\\.test/.*$', issuer: 'https://issuer.test'}\n";

#[test]
fn an_unsigned_image_is_refused_before_anything_is_created() {
    let mut world = world(PINNED, SIGNERS);
    cosign(&mut world, "echo 'Error: no matching signatures' >&2; exit 10");
    let run = refused(&world, world.run(&[]), "FS-IMAGE-UNVERIFIED", 4);
    assert!(run.done.stderr.contains("no matching signatures"), "{}", run.done.stderr);
    assert_eq!(
        asked(&world),
        [
            format!(
                "verify --certificate-identity=https://x.test/w.yml@refs/heads/main \
                 --certificate-oidc-issuer=https://issuer.test {PINNED}"
            ),
            format!(
                "verify --certificate-identity-regexp=^https://y\\.test/.*$ \
                 --certificate-oidc-issuer=https://issuer.test {PINNED}"
            ),
        ]
    );
}

#[test]
fn one_accepted_signer_is_enough() {
    let mut world = world(PINNED, SIGNERS);
    cosign(&mut world, "[[ $* == *identity-regexp=* ]]");
    let run = world.run(&[]);
    assert!(fake::asked_for_a_sandbox(&world), "{}", run.done.stderr);
    let said = format!("{}{}", run.done.stdout, run.done.stderr);
    assert!(said.contains("is signed by ^https://y\\.test/.*$"), "{said}");
    assert_eq!(run.json["image_signer"], "^https://y\\.test/.*$");
    assert_eq!(asked(&world).len(), 2);
}

#[test]
fn a_tag_is_refused_without_asking_anybody() {
    for (policy, flags) in [
        ("image_policy: {digest: required}\n", &[][..]),
        (SIGNERS, &[]),
        ("image_policy: {signers: [{key: 'awskms:///alias/k'}]}\n", &["--verify-image"]),
    ] {
        let mut world = world("r.test/team/agent:1.0", policy);
        cosign(&mut world, "exit 0");
        refused(&world, world.run(flags), "FS-IMAGE-UNPINNED", 2);
        let dry = [flags, &["--dry-run"]].concat();
        refused(&world, world.run(&dry), "FS-IMAGE-UNPINNED", 2);
        assert_eq!(asked(&world), [""; 0], "{policy}");
        // The command line can name a better image.
        world.run(&[flags, &["--image", PINNED]].concat());
        assert!(fake::asked_for_a_sandbox(&world), "{policy}");
    }
}

#[test]
fn without_cosign_a_required_signature_cannot_be_had() {
    let mut world = world(PINNED, SIGNERS);
    no_cosign(&mut world);
    refused(&world, world.run(&[]), "FS-TOOL-MISSING", 2);

    world.write("h/config.yaml", SIGNERS.replace("required", "if-available"));
    let run = world.run(&[]);
    let said = format!("{}{}", run.done.stdout, run.done.stderr);
    assert!(said.contains("cosign is not installed"), "{said}");
    assert!(fake::asked_for_a_sandbox(&world), "{}", run.done.stderr);
}

#[test]
fn the_flag_needs_signers_and_a_dry_run_says_what_is_asked() {
    let world = world(PINNED, "{}\n");
    let run = refused(&world, world.run(&["--verify-image"]), "FS-VALUE", 2);
    assert!(run.done.stderr.contains("image_policy"), "{}", run.done.stderr);

    world.write("h/config.yaml", SIGNERS);
    let dry = world.run(&["--dry-run"]).success();
    assert!(dry.done.stdout.contains("checked with cosign"), "{}", dry.done.stdout);
}
