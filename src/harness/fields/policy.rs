//! What OpenShell owns and this program only passes on: policies and provider profiles, as OpenShell 0.1.10
//! documents them. Other releases know a little more or less, so what differs from this is a warning at most.

use super::harness::ID;
use super::{Effect, Field, Level, Type, field};

fn compatibilities() -> Vec<&'static str> {
    vec!["best_effort", "hard_requirement"]
}

fn protocols() -> Vec<&'static str> {
    vec!["rest", "websocket", "graphql", "mcp", "json-rpc", "tcp"]
}

fn enforcements() -> Vec<&'static str> {
    vec!["enforce", "audit"]
}

fn accesses() -> Vec<&'static str> {
    vec!["read-only", "read-write", "full"]
}

fn skip() -> Vec<&'static str> {
    vec!["skip"]
}

fn signings() -> Vec<&'static str> {
    vec!["sigv4", "sigv4:body", "sigv4:no_body"]
}

fn queries() -> Vec<&'static str> {
    vec!["deny", "allow_registered"]
}

fn styles() -> Vec<&'static str> {
    vec!["bearer", "header", "query", "path"]
}

const IDENTITY: Type = Type::Form("sandbox|[1-9][0-9]{0,9}", "user or group");
const PORT: Type = Type::Int(1, 65535);
const ABSOLUTE: Type = Type::List(&Type::Form("/.*", "absolute path"));

const fn owned(name: &'static str, ty: Type, doc: &'static str) -> Field {
    field(name, ty, doc).effect(Effect::Elsewhere)
}

pub(super) const POLICY: &[Field] = &[
    owned("version", Type::Int(1, 1), "The version of the format.").required().example("1"),
    owned("filesystem_policy", Type::Section(Level::Filesystem), "What may be read and written.")
        .example("{include_workdir: true, read_only: [/usr], read_write: [/tmp]}"),
    owned("landlock", Type::Section(Level::Landlock), "How that is enforced.")
        .example("{compatibility: best_effort}"),
    owned("process", Type::Section(Level::Identity), "Who the agent runs as.")
        .example("{run_as_user: sandbox}"),
    owned("network_policies", Type::Map(&Type::Section(Level::NetworkRule)), "Which programs may go where.")
        .example("{api: {endpoints: [{host: api.example.com, port: 443}], binaries: [{path: '**/curl'}]}}"),
    owned("network_middlewares", Type::Map(&Type::Any), "What looks at allowed traffic.").example("{}"),
];

pub(super) const FILESYSTEM: &[Field] = &[
    owned("include_workdir", Type::Bool, "Whether the working directory may be written.")
        .default("no")
        .example("true"),
    owned("read_only", ABSOLUTE, "Paths that may be read.").default("`[]`").example("[/usr, /lib, /etc]"),
    owned("read_write", ABSOLUTE, "Paths that may be read and written; not `/`.")
        .default("`[]`")
        .example("[/tmp]"),
];

pub(super) const LANDLOCK: &[Field] =
    &[owned("compatibility", Type::Words(compatibilities), "What happens when the rules cannot be applied.")
        .default("`best_effort`")
        .example("hard_requirement")];

pub(super) const IDENTITY_FIELDS: &[Field] = &[
    owned("run_as_user", IDENTITY, "`sandbox` or a numeric user, not root.").example("sandbox"),
    owned("run_as_group", IDENTITY, "`sandbox` or a numeric group, not root.").example("sandbox"),
];

pub(super) const NETWORK_RULE: &[Field] = &[
    owned("name", Type::Text, "Its name in logs.").default("the key").example("api"),
    owned("endpoints", Type::List(&Type::Section(Level::Endpoint)), "Where the programs may go.")
        .example("[{host: api.example.com, port: 443}]"),
    owned("binaries", Type::List(&Type::Section(Level::Binary)), "The programs; none means none.")
        .example("[{path: '**/curl'}]"),
];

pub(super) const BINARY: &[Field] =
    &[owned("path", Type::Text, "Its path, as a pattern.").required().example("'**/curl'")];

pub(super) const ENDPOINT: &[Field] = &[
    owned("host", Type::Text, "The host, or a pattern.").example("api.example.com"),
    owned("port", PORT, "Its port.").example("443"),
    owned("ports", Type::List(&PORT), "Its ports, instead of `port`.").example("[80, 443]"),
    owned("path", Type::Text, "A pattern that selects among inspected endpoints.").example("/graphql"),
    owned("allowed_ips", Type::List(&Type::Text), "Addresses that the host may resolve to.")
        .example("[10.0.0.0/8]"),
    owned("protocol", Type::Words(protocols), "What is inspected.").example("rest"),
    owned("tls", Type::Words(skip), "`skip`: not inspected.").example("skip"),
    owned("enforcement", Type::Words(enforcements), "Whether what breaks the rules is blocked.")
        .default("`audit`")
        .example("enforce"),
    owned("access", Type::Words(accesses), "What may be done, in one word.").example("read-only"),
    owned("rules", Type::List(&Type::Any), "What may be done, instead of `access`.")
        .example("[{allow: {method: GET, path: /v1/**}}]"),
    owned("deny_rules", Type::List(&Type::Any), "What may not be done.")
        .example("[{method: DELETE, path: /**}]"),
    owned("allow_encoded_slash", Type::Bool, "Accept `%2F` in paths.").default("no").example("true"),
    owned("credential_binding", Type::Any, "The provider whose credentials belong here.")
        .example("{provider: work}"),
    owned("request_body_credential_rewrite", Type::Bool, "Replace placeholders in bodies.")
        .default("no")
        .example("true"),
    owned("websocket_credential_rewrite", Type::Bool, "Replace placeholders in messages.")
        .default("no")
        .example("true"),
    owned("allow_uninspected_credentials", Type::Bool, "Credentials without inspection.")
        .default("no")
        .example("true"),
    owned("credential_signing", Type::Words(signings), "Signing of AWS requests.").example("sigv4"),
    owned("signing_service", Type::Text, "The AWS service.").example("s3"),
    owned("signing_region", Type::Text, "The AWS region.").example("us-east-1"),
    owned("persisted_queries", Type::Words(queries), "GraphQL queries by hash.")
        .default("`deny`")
        .example("deny"),
    owned("graphql_persisted_queries", Type::Map(&Type::Any), "Known ones.").example("{}"),
    owned("graphql_max_body_bytes", Type::Int(1, i64::MAX), "The longest body.")
        .default("65536")
        .example("65536"),
    owned("mcp", Type::Map(&Type::Any), "Options of MCP.").example("{strict_tool_names: true}"),
    owned("json_rpc", Type::Map(&Type::Any), "Options of JSON-RPC.").example("{max_body_bytes: 65536}"),
];

pub(super) const PROFILE: &[Field] = &[
    field("id", ID, "What `type` of a provider refers to.").required().example("fullsend-anthropic"),
    owned("display_name", Type::Text, "Its name for people.").example("Anthropic API"),
    owned("description", Type::Text, "What it is for.").example("The Messages API"),
    owned("category", Type::Text, "The kind of service.").example("inference"),
    owned(
        "credentials",
        Type::List(&Type::Section(Level::ProfileCredential)),
        "The credentials that a provider of the type has.",
    )
    .example("[{name: api_key, env_vars: [ANTHROPIC_API_KEY], required: true}]"),
    owned("endpoints", Type::List(&Type::Section(Level::Endpoint)), "Where they may go: as in a policy.")
        .example("[{host: api.anthropic.com, port: 443, protocol: rest, access: read-write}]"),
    owned(
        "binaries",
        Type::List(&Type::Either(&[Type::Text, Type::Section(Level::Binary)])),
        "The programs that may go there, as patterns of paths.",
    )
    .example("['**/claude']"),
    owned("discovery", Type::Any, "Which credentials may be taken from the environment.")
        .example("{credentials: [api_key]}"),
];

pub(super) const PROFILE_CREDENTIAL: &[Field] = &[
    owned("name", Type::Text, "Its name.").required().example("api_key"),
    owned("description", Type::Text, "What it is.").example("A key"),
    owned("env_vars", Type::List(&Type::Text), "The variables that it stands in.")
        .example("[ANTHROPIC_API_KEY]"),
    owned("required", Type::Bool, "Whether a provider must have it.").example("true"),
    owned("auth_style", Type::Words(styles), "Where it goes in a request.").example("header"),
    owned("header_name", Type::Text, "The header.").example("x-api-key"),
    owned("query_param", Type::Text, "The parameter of the query.").example("key"),
    owned("path_template", Type::Text, "The place in the path.").example("'/bot{value}/'"),
];
