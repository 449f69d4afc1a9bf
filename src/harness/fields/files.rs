//! The other files of a harness directory.

use super::harness::{ID, RUNTIME};
use super::limits::LABELS;
use super::sections::{ENV_MAP, RESOURCES};
use super::{Field, Level, Type, field};
use crate::harness::model::Forge;

fn forges() -> Vec<&'static str> {
    Forge::ALL.map(Forge::as_str).to_vec()
}

fn scopes() -> Vec<&'static str> {
    vec!["run", "gateway"]
}

fn starts() -> Vec<&'static str> {
    vec!["enabled", "disabled"]
}

fn completions() -> Vec<&'static str> {
    vec!["enabled", "on_failure", "disabled"]
}

const FORGE: Type = Type::Words(forges);

pub(super) const PROVIDER: &[Field] = &[
    field("name", ID, "What `providers` in the harness refers to.").required().example("anthropic"),
    field("type", ID, "The id of an OpenShell provider profile.").required().example("fullsend-anthropic"),
    field("scope", Type::Words(scopes), "`run`: an instance of its own for each run, deleted afterwards. `gateway`: one shared instance that is updated.")
        .default("`run`")
        .example("run"),
    field(
        "credentials",
        ENV_MAP,
        "Values go to the gateway through the environment of a child process, never on a command line. A value that \
         expands to empty is an error; a literal `\"\"` is sent as empty.",
    )
    .default("`{}`")
    .example("{ANTHROPIC_API_KEY: '${ANTHROPIC_API_KEY}'}"),
    field("config", ENV_MAP, "Settings that are not secret.").default("`{}`").example("{region: global}"),
];

pub(super) const CONFIG: &[Field] = &[
    field("version", Type::Text, "Not looked at.").example("'1'"),
    field(
        "agents",
        Type::List(&Type::Either(&[Type::Path, Type::Section(Level::ConfigAgent)])),
        "Entries `PATH` or `{name, source, enabled}`. Of two entries with one name (upper and lower case are the \
         same) the last counts.",
    )
    .default("`[]`")
    .example("[harness/review.yaml, {name: fix, source: team/fix.yaml}]"),
    field("defaults", Type::Section(Level::ConfigDefaults), "Another place for `forge` and `runtime`.")
        .example("{runtime: claude}"),
    field("forge", FORGE, "The forge when neither `--forge` nor CI says one.").example("github"),
    field("runtime", RUNTIME, "The runtime of agent definitions whose harness says none.")
        .default("`claude`")
        .example("claude"),
    field(
        "images",
        ENV_MAP,
        "What short names in `image` stand for: see [images](harness.md#images).",
    )
    .default("`{}`")
    .example("{python: registry.example.com/team/python:3.14}"),
    field(
        "image_policy",
        Type::Section(Level::ImagePolicy),
        "What an image has to show before a sandbox is made of it: see [below](#image_policy). `fullsend run \
         --verify-image` makes digest and signature `required`. With `--local` no image is used, and nothing is \
         checked.",
    )
    .example("{digest: required}"),
    field("image_registry", Type::Text, "Where the images of this program are: see [images](harness.md#images).")
        .example("registry.example.com/team"),
    field("image_tag", Type::Form("[A-Za-z0-9_][A-Za-z0-9_.-]*", "tag"), "Their tag.")
        .default("the version of fullsend")
        .example("nightly"),
    field("private_hosts", Type::List(&Type::Form("[A-Za-z0-9._:\\[\\]-]+", "host")), "Hosts, by name or address and without port, that may have addresses which are not public: see [URLs](harness.md#urls).")
        .default("`[]`")
        .example("[git.internal.example.com]"),
    field("allowed_remote_resources", RESOURCES, "Which URLs harnesses may name, by their beginning: see [URLs](harness.md#urls).")
        .example("[https://example.com/team/]"),
    field("status_notifications", Type::Section(Level::StatusNotifications), "When there are [status comments](../guide/status-comments.md).")
        .example("{comment: {start: disabled}}"),
];

pub(super) const CONFIG_AGENT: &[Field] = &[
    field("name", Type::Form("[A-Za-z0-9_-]+", "name"), "The name that `fullsend run` takes.")
        .default("that of the file, without its extension")
        .example("review"),
    field(
        "source",
        Type::Path,
        "The harness file, inside the harness directory, or a [URL](harness.md#urls).",
    )
    .required()
    .example("harness/review.yaml"),
    field("enabled", Type::Bool, "`false` switches the agent off, also its file in `harness/`.")
        .default("yes")
        .example("false"),
];

pub(super) const CONFIG_DEFAULTS: &[Field] = &[
    field("forge", FORGE, "See `forge`, which wins.").example("github"),
    field("runtime", RUNTIME, "See `runtime`, which wins.").example("claude"),
    field("ttl", Type::Duration, "For every harness that says none.").example("2h"),
    field("labels", LABELS, "For every harness; what it says itself wins, key by key.")
        .default("`{}`")
        .example("{team: core}"),
    field(
        "resources",
        Type::Section(Level::Resources),
        "For every harness; what it says itself wins, key by key.",
    )
    .example("{cpu: 2}"),
];

fn digests() -> Vec<&'static str> {
    vec!["required", "optional"]
}

fn signatures() -> Vec<&'static str> {
    vec!["required", "if-available", "none"]
}

pub(super) const IMAGE_POLICY: &[Field] = &[
    field(
        "digest",
        Type::Words(digests),
        "`required`: an image that is not written `…@sha256:…` stops the run.",
    )
    .default("`optional`")
    .example("required"),
    field(
        "signature",
        Type::Words(signatures),
        "Checked with `cosign verify`; `if-available` warns where cosign is not installed. Asks for the digest too, \
         and for `signers`.",
    )
    .default("`none`")
    .example("none"),
    field(
        "signers",
        Type::List(&Type::Section(Level::ImageSigner)),
        "Whose signature counts, one is enough: `{identity, issuer}`, `{identity_regexp, issuer}` or `{key}`.",
    )
    .default("`[]`")
    .example("[{key: keys/cosign.pub}]"),
];

pub(super) const IMAGE_SIGNER: &[Field] = &[
    field("identity", Type::Text, "The subject of the certificate, exactly. Needs `issuer`.")
        .example("https://ci.example.com/team/images"),
    field(
        "identity_regexp",
        Type::Text,
        "The whole subject, in Go's syntax from `^` to `$`. Needs `issuer`.",
    )
    .example("'^https://ci[.]example[.]com/team/.*$'"),
    field("issuer", Type::Text, "Who issued the identity, by OpenID Connect.")
        .example("https://ci.example.com"),
    field(
        "key",
        Type::Path,
        "The file of a public key in the harness directory, or the URI of a key management service.",
    )
    .example("keys/cosign.pub"),
];

pub(super) const STATUS_NOTIFICATIONS: &[Field] =
    &[field("comment", Type::Section(Level::StatusComment), "When a comment is written.")
        .example("{start: enabled, completion: on_failure}")];

pub(super) const STATUS_COMMENT: &[Field] = &[
    field("start", Type::Words(starts), "Whether one is written when a run begins.")
        .default("`enabled`")
        .example("enabled"),
    field(
        "completion",
        Type::Words(completions),
        "Whether its end is told. With `on_failure` there is a comment only for a run that neither succeeded nor was \
         skipped, with `disabled` the comment of the beginning is deleted.",
    )
    .default("`enabled`")
        .example("on_failure"),
];
