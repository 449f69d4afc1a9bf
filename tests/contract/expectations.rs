//! The expectations.

use super::Call::{Cli, CliEnv, Gone, Phase, ScpRoundTrip, Ssh};
use super::Expect::{Err, Json, NotOut, Out};
use super::Known::{Read, Seen};
use super::Personality::{V0_0_83, V0_0_110, V0_0_116, V0_1};
use super::Shape::{Array, Object, Page};
use super::{Call, Expect, Expectation, Known, Personality, Step};

const EVERY: (Personality, Personality) = (V0_0_83, V0_1);
const OLD: (Personality, Personality) = (V0_0_83, V0_0_116);
const NEW: (Personality, Personality) = (V0_1, V0_1);
const ALL_SEEN: Known = Seen("0.0.83, 0.0.110, HEAD");

const fn step(call: Call, code: i32, expect: &'static [Expect]) -> Step {
    Step { call, code, expect }
}

const CREATE: Step = step(Cli("sandbox create --name {N} {KEEP} --policy {D}/policy.yaml {MAIN}"), 0, &[]);
const READY: Step = step(Phase("Ready"), 0, &[]);
/// Under load `delete` answers while the phase is still Deleting (seen on HEAD).
const GONE: Step = step(Gone, 0, &[]);
const TOKEN: &[(&str, &str)] = &[("FS_CONTRACT_TOKEN", "contract-token-value")];
const PROFILE: Step =
    step(Cli("provider profile import --file {D}/profile.yaml"), 0, &[Out("Imported 1 provider profile")]);
const PROVIDER: Step = step(
    CliEnv("provider create --name {P} --type {T} --credential FS_CONTRACT_TOKEN", TOKEN),
    0,
    &[Out("Created provider {P}")],
);

/// All of them.
pub(crate) const ALL: &[Expectation] = &[
    Expectation {
        name: "the version line names the program and a version",
        on: EVERY,
        known: ALL_SEEN,
        steps: &[step(Cli("--version"), 0, &[Out("openshell 0.")])],
    },
    Expectation {
        name: "help of create is free of a gateway and has no --detach before 0.0.111",
        on: (V0_0_83, V0_0_110),
        known: Seen("0.0.83, 0.0.110"),
        steps: &[step(Cli("sandbox create --help"), 0, &[NotOut("--detach"), Out("--no-tty")])],
    },
    Expectation {
        name: "help of create has --detach from 0.0.111",
        on: (V0_0_116, V0_1),
        known: Seen("HEAD"),
        steps: &[step(Cli("sandbox create --help"), 0, &[Out("--detach"), Out("--no-tty")])],
    },
    Expectation {
        name: "an unknown flag is a usage error",
        on: EVERY,
        known: ALL_SEEN,
        steps: &[step(Cli("sandbox list --no-such-flag"), 2, &[Err("error: unexpected argument")])],
    },
    Expectation {
        name: "--detach is a usage error before 0.0.111",
        on: (V0_0_83, V0_0_110),
        known: Seen("0.0.83, 0.0.110"),
        steps: &[step(
            Cli("sandbox create --name {N} {KEEP} --detach -- sleep infinity"),
            2,
            &[Err("unexpected argument '--detach' found")],
        )],
    },
    Expectation {
        name: "the portable form makes a sandbox that is and stays ready",
        on: EVERY,
        known: ALL_SEEN,
        steps: &[CREATE, READY, step(Ssh("true"), 0, &[]), READY],
    },
    Expectation {
        name: "a command without --detach is the main process from 0.0.111, and its end an error",
        on: (V0_0_116, V0_0_116),
        known: Seen("HEAD"),
        steps: &[
            step(
                Cli("sandbox create --name {N} {KEEP} -- true"),
                1,
                &[Err("sandbox entered error phase while provisioning:")],
            ),
            step(Phase("Error"), 0, &[]),
        ],
    },
    Expectation {
        name: "a detached main process that ends well leaves the phase Completed",
        on: NEW,
        known: Read,
        steps: &[
            step(Cli("sandbox create --name {N} {KEEP} --detach -- true"), 0, &[]),
            step(Phase("Completed"), 0, &[]),
        ],
    },
    Expectation {
        name: "a detached main process that fails leaves the phase Error and its reason",
        on: NEW,
        known: Read,
        steps: &[
            step(Cli("sandbox create --name {N} {KEEP} --detach -- sh -c 'exit 5'"), 0, &[]),
            step(Phase("Error"), 0, &[]),
            step(Cli("sandbox get {N} -o json"), 0, &[Out("MainProcessFailed")]),
            step(Ssh("true"), 255, &[Err("sandbox is not ready")]),
        ],
    },
    Expectation {
        name: "a taken name is refused in the same words everywhere",
        on: EVERY,
        known: ALL_SEEN,
        steps: &[
            CREATE,
            step(
                Cli("sandbox create --name {N} {KEEP} --policy {D}/policy.yaml {MAIN}"),
                1,
                &[Err("Error: sandbox '{N}' already exists"), Err("hint: delete it first with")],
            ),
            READY,
        ],
    },
    Expectation {
        name: "a name of 20 characters is refused from 0.0.88",
        on: (V0_0_110, V0_1),
        known: Seen("0.0.110, HEAD"),
        steps: &[step(
            Cli("sandbox create --name aaaaaaaaaaaaaaaaaaaa {KEEP} {MAIN}"),
            1,
            &[Err("Client specified an invalid argument"), Err("name exceeds maximum length (20 > 19)")],
        )],
    },
    Expectation {
        name: "a name with capitals is refused from 0.0.88",
        on: (V0_0_110, V0_1),
        known: Seen("0.0.110, HEAD"),
        steps: &[step(
            Cli("sandbox create --name Upper {KEEP} {MAIN}"),
            1,
            &[Err("lowercase alphanumeric characters or hyphens")],
        )],
    },
    Expectation {
        name: "an unknown policy field is refused before anything is created",
        on: EVERY,
        known: ALL_SEEN,
        steps: &[
            step(
                Cli("sandbox create --name {N} {KEEP} --policy {D}/unknown-field.yaml {MAIN}"),
                1,
                &[Err("failed to parse sandbox policy YAML"), Err("unknown field `bogus_field`")],
            ),
            step(Cli("sandbox get {N}"), 1, &[Err("sandbox not found")]),
        ],
    },
    Expectation {
        name: "a missing policy file is named",
        on: EVERY,
        known: ALL_SEEN,
        steps: &[step(
            Cli("sandbox create --name {N} {KEEP} --policy {D}/none.yaml {MAIN}"),
            1,
            &[Err("failed to read sandbox policy from"), Err("No such file or directory")],
        )],
    },
    Expectation {
        name: "a policy that opens everything for writing is refused and leaves no record",
        on: EVERY,
        known: ALL_SEEN,
        steps: &[
            step(
                Cli("sandbox create --name {N} {KEEP} --policy {D}/broad.yaml {MAIN}"),
                1,
                &[Err("policy contains unsafe content: read-write path is overly broad: /")],
            ),
            step(Cli("sandbox get {N}"), 1, &[Err("sandbox not found")]),
        ],
    },
    Expectation {
        name: "a policy that runs as root is refused",
        on: EVERY,
        known: ALL_SEEN,
        steps: &[step(
            Cli("sandbox create --name {N} {KEEP} --policy {D}/root.yaml {MAIN}"),
            1,
            &[Err("run_as_user must be 'sandbox' or a numeric UID/GID in range [")],
        )],
    },
    Expectation {
        name: "an unknown provider is named before 0.1.0",
        on: OLD,
        known: ALL_SEEN,
        steps: &[step(
            Cli("sandbox create --name {N} {KEEP} --policy {D}/policy.yaml --provider fsc-nope {MAIN}"),
            1,
            &[Err("provider 'fsc-nope' not found and 'fsc-nope' is not a recognized provider type")],
        )],
    },
    Expectation {
        name: "an unknown provider is named from 0.1.0",
        on: NEW,
        known: Read,
        steps: &[step(
            Cli("sandbox create --name {N} {KEEP} --policy {D}/policy.yaml --provider fsc-nope {MAIN}"),
            1,
            &[Err("provider 'fsc-nope' not found and no provider profile named 'fsc-nope' is available")],
        )],
    },
    Expectation {
        name: "the list is an array before 0.1.0, labels can be selected",
        on: OLD,
        known: ALL_SEEN,
        steps: &[
            step(
                Cli(
                    "sandbox create --name {N} {KEEP} --policy {D}/policy.yaml --label fsc={N} --cpu 1 --memory 1Gi {MAIN}",
                ),
                0,
                &[],
            ),
            step(Cli("sandbox list -o json --selector fsc={N}"), 0, &[Json(Array), Out("\"{N}\"")]),
            step(Cli("sandbox list -o json --selector fsc=other"), 0, &[Json(Array), NotOut("{N}")]),
            step(Cli("sandbox list --names"), 0, &[Out("{N}")]),
        ],
    },
    Expectation {
        name: "the list is an object from 0.1.0, labels can be selected",
        on: NEW,
        known: Read,
        steps: &[
            step(
                Cli(
                    "sandbox create --name {N} {KEEP} --policy {D}/policy.yaml --label fsc={N} --cpu 1 --memory 1Gi {MAIN}",
                ),
                0,
                &[],
            ),
            step(
                Cli("sandbox list -o json --selector fsc={N}"),
                0,
                &[Json(Page("sandboxes")), Out("\"{N}\"")],
            ),
            step(
                Cli("sandbox list -o json --selector fsc=other"),
                0,
                &[Json(Page("sandboxes")), NotOut("{N}")],
            ),
            step(Cli("sandbox list --names"), 0, &[Out("{N}")]),
        ],
    },
    Expectation {
        name: "--limit is gone from 0.1.0",
        on: NEW,
        known: Read,
        steps: &[step(Cli("sandbox list --limit 5"), 2, &[Err("unexpected argument '--limit'")])],
    },
    Expectation {
        name: "get -o json does not exist on 0.0.83",
        on: (V0_0_83, V0_0_83),
        known: Seen("0.0.83"),
        steps: &[CREATE, step(Cli("sandbox get {N} -o json"), 2, &[])],
    },
    Expectation {
        name: "get -o json is an object from 0.0.92",
        on: (V0_0_110, V0_1),
        known: Seen("0.0.110, HEAD"),
        steps: &[CREATE, step(Cli("sandbox get {N} -o json"), 0, &[Json(Object), Out("\"phase\"")])],
    },
    Expectation {
        name: "get prints a Phase field for people",
        on: EVERY,
        known: ALL_SEEN,
        steps: &[
            CREATE,
            READY,
            step(Cli("sandbox get {N}"), 0, &[Out("Phase: Ready"), Out("Policy source: sandbox")]),
        ],
    },
    Expectation {
        name: "get of a missing sandbox is not found",
        on: EVERY,
        known: ALL_SEEN,
        steps: &[step(
            Cli("sandbox get {N}"),
            1,
            &[Err("Error: code: 'Some requested entity was not found', message: \"sandbox not found\"")],
        )],
    },
    Expectation {
        name: "delete of a missing sandbox fails before 0.1.0",
        on: OLD,
        known: ALL_SEEN,
        steps: &[step(Cli("sandbox delete {N}"), 1, &[Err("sandbox not found")])],
    },
    Expectation {
        name: "delete of a missing sandbox succeeds from 0.1.0",
        on: NEW,
        known: Read,
        steps: &[step(Cli("sandbox delete {N}"), 0, &[])],
    },
    Expectation {
        name: "soon after delete the name is free",
        on: EVERY,
        known: ALL_SEEN,
        steps: &[
            CREATE,
            step(Cli("sandbox delete {N}"), 0, &[Out("Deleted sandbox {N}")]),
            GONE,
            step(Cli("sandbox get {N}"), 1, &[Err("sandbox not found")]),
            CREATE,
            READY,
        ],
    },
    Expectation {
        name: "ssh-config is local and has no workspace on 0.0.83",
        on: (V0_0_83, V0_0_83),
        known: Seen("0.0.83"),
        steps: &[step(
            Cli("sandbox ssh-config {N}"),
            0,
            &[Out("Host openshell-{N} User sandbox"), Out("ssh-proxy --gateway-name"), NotOut("--workspace")],
        )],
    },
    Expectation {
        name: "ssh-config is local and has the workspace from 0.0.88",
        on: (V0_0_110, V0_1),
        known: Seen("0.0.110, HEAD"),
        steps: &[step(
            Cli("sandbox ssh-config {N}"),
            0,
            &[
                Out("Host openshell-{N}.default User sandbox"),
                Out("StrictHostKeyChecking no"),
                Out("--name {N} --workspace default"),
            ],
        )],
    },
    Expectation {
        name: "ssh to a missing sandbox fails with 255",
        on: EVERY,
        known: ALL_SEEN,
        steps: &[step(Ssh("true"), 255, &[Err("sandbox not found")])],
    },
    Expectation {
        name: "ssh gives status, both streams, user sandbox, a login shell and the variables of create",
        on: EVERY,
        known: ALL_SEEN,
        steps: &[
            step(
                Cli("sandbox create --name {N} {KEEP} --policy {D}/policy.yaml --env FSC='a b' {MAIN}"),
                0,
                &[],
            ),
            READY,
            step(Ssh("echo out; echo err >&2; exit 7"), 7, &[Out("out"), Err("err"), NotOut("err")]),
            step(
                Ssh("id -un; shopt -q login_shell && echo login; echo \"[$FSC]\""),
                0,
                &[Out("sandbox login [a b]")],
            ),
            step(Ssh("touch /tmp/a /sandbox/a && rm /tmp/a /sandbox/a"), 0, &[]),
            step(Ssh("no-such-command"), 127, &[]),
        ],
    },
    Expectation {
        name: "scp moves bytes both ways",
        on: EVERY,
        known: ALL_SEEN,
        steps: &[CREATE, READY, step(ScpRoundTrip("/sandbox/payload"), 0, &[])],
    },
    Expectation {
        name: "a process in a session of its own survives the connection and can be ended by a later one",
        on: EVERY,
        known: Seen("0.0.83, HEAD"),
        steps: &[
            CREATE,
            READY,
            step(
                Ssh(
                    "setsid sh -c 'echo $$ > /tmp/pid; exec sleep 600' </dev/null >/dev/null 2>&1 & while [ ! -s /tmp/pid ]; do sleep 0.05; done",
                ),
                0,
                &[],
            ),
            step(Ssh("kill -0 $(cat /tmp/pid) && kill -TERM -- -$(cat /tmp/pid)"), 0, &[]),
            step(
                Ssh("while kill -0 $(cat /tmp/pid) 2>/dev/null; do sleep 0.05; done; echo gone"),
                0,
                &[Out("gone")],
            ),
        ],
    },
    Expectation {
        name: "exec passes words and the status",
        on: EVERY,
        known: ALL_SEEN,
        steps: &[
            CREATE,
            READY,
            step(
                Cli("sandbox exec -n {N} --no-tty -- sh -c 'echo \"[$1]\"; exit 3' sh 'a  $b'"),
                3,
                &[Out("[a $b]")],
            ),
        ],
    },
    Expectation {
        name: "a credential comes from the environment under its bare name",
        on: EVERY,
        known: ALL_SEEN,
        steps: &[
            PROFILE,
            PROVIDER,
            step(Cli("provider get {P}"), 0, &[Out("FS_CONTRACT_TOKEN"), NotOut("contract-token-value")]),
            step(
                CliEnv("provider create --name {P} --type {T} --credential FS_CONTRACT_TOKEN", TOKEN),
                1,
                &[
                    Err("Some entity that we attempted to create already exists"),
                    Err("provider already exists"),
                ],
            ),
            step(
                CliEnv("provider update {P} --credential FS_CONTRACT_TOKEN", TOKEN),
                0,
                &[Out("Updated provider {P}")],
            ),
        ],
    },
    Expectation {
        name: "a credential variable that is empty is refused by name",
        on: EVERY,
        known: ALL_SEEN,
        steps: &[
            PROFILE,
            step(
                CliEnv(
                    "provider create --name {P} --type {T} --credential FS_CONTRACT_TOKEN",
                    &[("FS_CONTRACT_TOKEN", "")],
                ),
                1,
                &[Err("requires local env var 'FS_CONTRACT_TOKEN' to be set to a non-empty value")],
            ),
        ],
    },
    Expectation {
        name: "update of a missing provider is not found, delete of one is fine",
        on: EVERY,
        known: ALL_SEEN,
        steps: &[
            step(
                CliEnv("provider update {P} --credential FS_CONTRACT_TOKEN", TOKEN),
                1,
                &[Err("provider not found")],
            ),
            step(Cli("provider delete {P}"), 0, &[Out("not found")]),
        ],
    },
    Expectation {
        name: "a provider that is attached cannot be deleted; after the sandbox it can",
        on: EVERY,
        known: ALL_SEEN,
        steps: &[
            PROFILE,
            PROVIDER,
            step(
                Cli("sandbox create --name {N} {KEEP} --policy {D}/policy.yaml --provider {P} {MAIN}"),
                0,
                &[],
            ),
            step(Cli("provider delete {P}"), 1, &[Err("provider '{P}' is attached to sandbox(es): {N}")]),
            READY,
            step(Ssh("[ -n \"$FS_CONTRACT_TOKEN\" ]"), 0, &[]),
            step(Cli("sandbox delete {N}"), 0, &[]),
            GONE,
            step(Cli("provider delete {P}"), 0, &[Out("Deleted provider {P}")]),
        ],
    },
    Expectation {
        name: "the provider list is an array before 0.1.0",
        on: OLD,
        known: ALL_SEEN,
        steps: &[
            PROFILE,
            PROVIDER,
            step(
                Cli("provider list -o json"),
                0,
                &[Json(Array), Out("\"{P}\""), NotOut("contract-token-value")],
            ),
        ],
    },
    Expectation {
        name: "the provider list is an object from 0.1.0",
        on: NEW,
        known: Read,
        steps: &[
            PROFILE,
            PROVIDER,
            step(
                Cli("provider list -o json"),
                0,
                &[Json(Page("providers")), Out("\"{P}\""), NotOut("contract-token-value")],
            ),
        ],
    },
    Expectation {
        name: "an unknown provider type is refused before 0.1.0",
        on: OLD,
        known: ALL_SEEN,
        steps: &[step(
            CliEnv("provider create --name {P} --type fsc-nosuchtype --credential FS_CONTRACT_TOKEN", TOKEN),
            1,
            &[Err("unsupported provider type or profile: fsc-nosuchtype")],
        )],
    },
    Expectation {
        name: "an unknown provider type is refused from 0.1.0",
        on: NEW,
        known: Read,
        steps: &[step(
            CliEnv("provider create --name {P} --type fsc-nosuchtype --credential FS_CONTRACT_TOKEN", TOKEN),
            1,
            &[Err("provider profile 'fsc-nosuchtype'"), Err("not found")],
        )],
    },
    Expectation {
        name: "a profile that exists is not imported again; a broken one is told by field",
        on: EVERY,
        known: ALL_SEEN,
        steps: &[
            PROFILE,
            step(
                Cli("provider profile import --file {D}/profile.yaml"),
                1,
                &[Err("custom provider profile '{T}' already exists"), Err("provider profile import failed")],
            ),
            step(
                Cli("provider profile import --file {D}/broken-profile.yaml"),
                1,
                &[Err("missing field `display_name`")],
            ),
            step(Cli("provider profile export {T}"), 0, &[Out("{T}")]),
            step(Cli("provider profile delete {T}"), 0, &[Out("Deleted provider profile '{T}'")]),
            step(Cli("provider profile delete {T}"), 1, &[Err("provider profile not found")]),
        ],
    },
    Expectation {
        name: "profile is a subcommand of its own from 0.1.0",
        on: NEW,
        known: Read,
        steps: &[
            step(Cli("profile --help"), 0, &[]),
            step(Cli("profile import -f {D}/profile.yaml"), 0, &[]),
            step(Cli("profile list -o json"), 0, &[Json(Array), Out("\"{T}\"")]),
        ],
    },
    Expectation {
        name: "profile is no subcommand of its own before 0.1.0",
        on: OLD,
        known: Seen("0.0.83, HEAD"),
        steps: &[step(Cli("profile --help"), 2, &[Err("unrecognized subcommand")])],
    },
    Expectation {
        name: "the setting providers_v2_enabled exists before 0.1.0",
        on: OLD,
        known: ALL_SEEN,
        steps: &[step(
            Cli("settings set --key providers_v2_enabled --value true --global --yes"),
            0,
            &[Out("providers_v2_enabled=true")],
        )],
    },
    Expectation {
        name: "the setting providers_v2_enabled is unknown from 0.1.0",
        on: NEW,
        known: Read,
        steps: &[step(
            Cli("settings set --key providers_v2_enabled --value true --global --yes"),
            1,
            &[Err("unknown setting key"), Err("providers_v2_enabled")],
        )],
    },
    Expectation {
        name: "logs of a missing sandbox fail",
        on: EVERY,
        known: ALL_SEEN,
        steps: &[step(Cli("logs {N} -n 0"), 1, &[])],
    },
    Expectation {
        name: "status and the gateway list answer",
        on: EVERY,
        known: ALL_SEEN,
        steps: &[
            step(Cli("status"), 0, &[Out("Connected")]),
            step(Cli("gateway list -o json"), 0, &[Json(Array)]),
        ],
    },
];
