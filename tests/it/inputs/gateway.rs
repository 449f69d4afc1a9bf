//! What OpenShell says no to, in the words that its releases use.

use super::{Case, Found, args, check, none};
use crate::fake;

#[test]
fn programs_that_are_no_usable_openshell() {
    check(
        &[
            Case {
                name: "a program that fails",
                code: "FS-OPENSHELL-VERSION",
                exit: 2,
                says: &["--openshell", "--local"],
                make: |_| args(&["--openshell", "/bin/false"]),
            },
            Case {
                name: "a program that says nothing",
                code: "FS-OPENSHELL-VERSION",
                exit: 2,
                says: &["--name", "0.0.83 or newer"],
                make: |_| args(&["--openshell", "/bin/true"]),
            },
            Case {
                name: "a program that prints something else",
                code: "FS-OPENSHELL-VERSION",
                exit: 2,
                says: &["0.0.83 or newer"],
                make: |w| {
                    fake::answer(w, "printf '\\x1b[31mgarbage \\xff\\x00 everywhere\\n'; exit 0");
                    none()
                },
            },
            Case {
                name: "an old openshell",
                code: "FS-OPENSHELL-VERSION",
                exit: 2,
                says: &["--no-auto-providers", "0.0.83 or newer", "openshell 0.0.20"],
                make: |w| {
                    fake::answer(
                        w,
                        "case \"$*\" in --version) echo openshell 0.0.20; exit;; \
                         'sandbox create --help') echo '--name --from --policy --provider'; exit;; esac",
                    );
                    none()
                },
            },
            Case {
                name: "an openshell that crashes",
                code: "FS-OPENSHELL-VERSION",
                exit: 2,
                says: &["signal 6"],
                make: |w| {
                    fake::answer(w, "ulimit -c 0; kill -ABRT $$");
                    none()
                },
            },
        ],
        Found::BeforeRun,
    );
}

#[test]
fn gateways_that_do_not_live() {
    check(
        &[
            Case {
                name: "no gateway is registered",
                code: "FS-GATEWAY",
                exit: 3,
                says: &["no OpenShell gateway is registered", "openshell gateway add", "--local"],
                make: |w| {
                    fake::answer(w, "[[ $* == 'sandbox list'* ]] && fail 'No active gateway.'");
                    none()
                },
            },
            Case {
                name: "an unknown gateway",
                code: "FS-GATEWAY",
                exit: 3,
                says: &["nosuch", "openshell gateway list"],
                make: |w| {
                    fake::answer(
                        w,
                        "[[ $* == 'sandbox list'* ]] && fail \"Unknown gateway '$OPENSHELL_GATEWAY'.\"",
                    );
                    args(&["--gateway", "nosuch"])
                },
            },
            Case {
                name: "connection refused",
                code: "FS-GATEWAY",
                exit: 3,
                says: &["does not answer", "Connection refused", "start the gateway"],
                make: |w| {
                    fake::answer(
                        w,
                        "[[ $* == 'sandbox list'* ]] && fail $'transport error\\n  ├─▶ tcp connect error\\n  \
                         ├─▶ tcp connect error\\n  ╰─▶ Connection refused (os error 111)'",
                    );
                    none()
                },
            },
            Case {
                name: "something else on the port",
                code: "FS-GATEWAY",
                exit: 3,
                says: &["printed something else"],
                make: |w| {
                    fake::answer(w, "[[ $* == 'sandbox list'* ]] && { echo '<html>'; exit 0; }");
                    none()
                },
            },
            Case {
                name: "no openshell text at all",
                code: "FS-GATEWAY",
                exit: 3,
                says: &["openshell status"],
                make: |w| {
                    fake::answer(w, "[[ $* == 'sandbox list'* ]] && exit 1");
                    none()
                },
            },
        ],
        Found::BeforeRun,
    );
}

/// Bash text with which `sandbox create` fails.
macro_rules! refused {
    ($text:literal) => {
        |w| {
            let text = concat!("[[ $* == 'sandbox create --name'* ]] && fail $'", $text, "'\n");
            fake::answer(w, text);
            none()
        }
    };
}

#[test]
fn what_create_refuses() {
    check(
        &[
            Case {
                name: "an image that cannot be pulled",
                code: "FS-IMAGE",
                exit: 3,
                says: &["ImagePullFailed", "check the image"],
                make: refused!(
                    "sandbox entered error phase while provisioning:\\n  │ ImagePullFailed: pull Docker image failed: \
                     Docker responded with\\n  │ status code 500: dial tcp 127.0.0.1:80: connect: connection refused"
                ),
            },
            Case {
                name: "an image that is not there",
                code: "FS-IMAGE",
                exit: 3,
                says: &["no-such-image"],
                make: refused!(
                    "sandbox entered error phase while provisioning:\\n  │ ImagePullFailed: docker image \
                     \\'localhost/no-such-image:1\\' is not present locally and\\n  │ image_pull_policy=Never"
                ),
            },
            Case {
                name: "a policy that cannot be read",
                code: "FS-POLICY",
                exit: 3,
                says: &["bogus_field", "policy"],
                make: refused!(
                    "failed to parse sandbox policy YAML\\n  ╰─▶ unknown field `bogus_field`, expected one of `version`, \
                     at line 2 column 1"
                ),
            },
            Case {
                name: "a policy that is unsafe",
                code: "FS-POLICY",
                exit: 3,
                says: &["read-write path is overly broad"],
                make: refused!(
                    "code: \\'Client specified an invalid argument\\', message: \"policy contains\\n  │ unsafe content: \
                     read-write path is overly broad: /\""
                ),
            },
            Case {
                name: "a user that is refused",
                code: "FS-POLICY",
                exit: 3,
                says: &["run_as_user"],
                make: refused!(
                    "code: \\'Client specified an invalid argument\\', message: \"run_as_user must be\\n  │ \
                     \\'sandbox\\' or a numeric UID/GID in range [1, 4294967294], got \\'root\\'\""
                ),
            },
            Case {
                name: "a name that is too long",
                code: "FS-CREATE",
                exit: 3,
                says: &["name exceeds maximum length"],
                make: refused!(
                    "code: \\'Client specified an invalid argument\\', message: \"name exceeds\\n  │ maximum length (20 > 19)\""
                ),
            },
            Case {
                name: "a provider that vanished",
                code: "FS-PROVIDER",
                exit: 3,
                says: &["not a recognized provider type"],
                make: refused!(
                    "provider \\'nope\\' not found and \\'nope\\' is not a recognized provider type.\\n  │ Create it first"
                ),
            },
            Case {
                name: "a container that ends at once",
                code: "FS-CREATE",
                exit: 3,
                says: &["ContainerExited", "bash"],
                make: refused!(
                    "sandbox entered error phase while provisioning: ContainerExited:\\n  │ Container exited"
                ),
            },
        ],
        Found::ByCreate,
    );
}

#[test]
fn what_is_refused_before_create() {
    // These show on the gateway, so the run has begun and has a record; a sandbox is not asked for.
    for (code, exit, says, provider) in [
        ("FS-PROVIDER-UNKNOWN", 2, "neither in providers/ nor on the gateway", None),
        (
            "FS-PROFILE-MISSING",
            2,
            "which has no profile",
            Some("name: p\ntype: t\ncredentials: {A: secret-value}\n"),
        ),
    ] {
        let mut world = crate::support::World::new();
        fake::install(&mut world);
        world.harness("agent: agents/work\nruntime: script\nproviders: [p]\n");
        provider.map(|text| world.write("h/providers/p.yaml", text));
        fake::answer(
            &world,
            "[[ $* == 'profile export'* ]] && fail \"code: 'Some requested entity was not found', message: \\\"provider profile not found\\\"\"",
        );
        let run = world.run(&[]).failure(code, exit);
        assert!(run.done.stderr.contains(says), "{}", run.done.stderr);
        assert_eq!(run.json["error"]["code"], code, "{}", run.json);
        assert!(!fake::asked_for_a_sandbox(&world), "{:?}", fake::calls(&world));
        assert_eq!(super::leftovers(&world, Found::BeforeCreate), Vec::<String>::new());
    }
}
