//! Providers, profiles, and what must never leak.

use super::*;

#[test]
fn the_denied_variables_never_reach_anything() {
    let mut f = Fixture::new();
    for name in DENIED {
        f.env.insert(name.into(), "t0ken".into());
    }
    f.write("env/oidc.env", "A=$ACTIONS_ID_TOKEN_REQUEST_TOKEN\n");
    f.write("env/oidc.txt", "<$FULLSEND_GCP_OIDC_URL>\n");
    f.write("providers/o.yaml", "name: o\ntype: t\ncredentials: {K: x$ACTIONS_ID_TOKEN_REQUEST_TOKEN}\n");
    let harness = f
        .good(
            "agent: agents/hello.md\nproviders: [o]\nrunner_env: {A: $ACTIONS_ID_TOKEN_REQUEST_URL}\nhost_files:\n\
             \x20 - {src: env/oidc.env, dest: /tmp/a, expand: true}\n\
             \x20 - {src: env/oidc.txt, dest: /tmp/b, expand: true}\n\
             \x20 - {src: $FULLSEND_GCP_OIDC_AUTH_FILE, dest: /tmp/c, optional: true}\n",
        )
        .harness;
    assert_eq!(exposed(&harness.runner_env), [("A", "")]);
    let contents: Vec<_> = harness.host_files.iter().map(|h| h.content.as_ref().unwrap().expose()).collect();
    assert_eq!(contents, ["A=$ACTIONS_ID_TOKEN_REQUEST_TOKEN\n", "<>\n"]);
    let ProviderUse::Defined(def) = &harness.providers[0] else { panic!() };
    assert_eq!(exposed(&def.credentials), [("K", "x")]);
}

#[test]
fn provider_files() {
    let f = Fixture::new();
    let use_q = "agent: agents/hello.md\nproviders: [q]\n";
    for (file, code, place, part) in [
        (
            "name: q\ntype: t\ncredentials: {K: '${EMPTY}'}\n",
            Code::CredentialEmpty,
            "providers/q.yaml:3:18",
            "`EMPTY`",
        ),
        (
            "name: q\ntype: t\ncredentials: {K: $NOPE}\n",
            Code::CredentialEmpty,
            "providers/q.yaml:3:18",
            "`NOPE`",
        ),
        (
            "name: q\ntype: t\ncredentials: {K: ' '}\n",
            Code::CredentialEmpty,
            "providers/q.yaml:3:18",
            "blank",
        ),
        ("name: q\ntype: t\ncredentials: {K: '${NOPE}'}\n", Code::EnvUnset, "providers/q.yaml:3:19", "NOPE"),
        ("name: q\ntype: t\ncredentials: {K-1: a}\n", Code::Value, "providers/q.yaml:3:15", "credential"),
        ("name: q\ntype: t\ncredentials: {PATH: a}\n", Code::Value, "providers/q.yaml:3:15", "`PATH`"),
        ("name: q\ntype: t\nconfig: {a=b: a}\n", Code::Value, "providers/q.yaml:3:10", "setting"),
        ("name: q\ntype: t\nscope: gatway\n", Code::Value, "providers/q.yaml:3:8", "`gateway`?"),
        ("name: q\ntype: a b\n", Code::Value, "providers/q.yaml:2:7", "`type`"),
        ("name: q\n", Code::Required, "providers/q.yaml:1:1", "`type`"),
        ("name: q\ntype: t\ncredential: {}\n", Code::YamlKey, "providers/q.yaml:3:1", "`credentials`?"),
        ("type: t\n", Code::Required, "providers/q.yaml:1:1", "`name`"),
        ("name: q\ntype: t\nname: q\n", Code::YamlKey, "providers/q.yaml:3:1", "repeated"),
        ("name: q\ntype: [\n", Code::YamlSyntax, "providers/q.yaml:", ""),
        ("- q\n", Code::YamlType, "providers/q.yaml:1:1", "mapping"),
    ] {
        f.write("providers/q.yaml", file);
        let problems = f.bad(use_q);
        let errors: Vec<_> = problems.iter().filter(|(_, _, p)| p.severity == Severity::Error).collect();
        assert_eq!(errors.len(), 1, "{file}\n{problems:#?}");
        let (got, at, problem) = errors[0];
        assert_eq!(*got, code, "{file}\n{problem:?}");
        assert!(at.starts_with(place), "{file}\n{at}");
        let said = format!("{} {}", problem.message, problem.help.as_deref().unwrap_or_default());
        assert!(said.contains(part), "{file}\n{said}");
        // The same file, unused, is at most a warning.
        f.good("agent: agents/hello.md\nproviders: [p]\n");
    }
}

#[test]
fn providers_by_path_scope_and_name() {
    let f = Fixture::new();
    f.write("shared/own.yml", "name: own\ntype: t2\nscope: gateway\nx-note: 1\n");
    f.write("providers/misnamed.yaml", "name: other\ntype: t\n");
    f.write("profiles/z.yaml", "id: t2\n");
    f.write("profiles/broken.yaml", "id: [\n");
    f.write("profiles/unused.yaml", "id: unused\n");
    let loaded =
        f.good("agent: agents/hello.md\nproviders: [shared/own.yml, providers/p.yaml, p, misnamed]\n");
    let names: Vec<_> = loaded.harness.providers.iter().map(ProviderUse::name).collect();
    assert_eq!(names, ["own", "p", "misnamed"]);
    let ProviderUse::Defined(own) = &loaded.harness.providers[0] else { panic!() };
    assert_eq!((own.scope, own.kind.as_str()), (Scope::Gateway, "t2"));
    let ids: Vec<_> = loaded.harness.profiles.iter().map(|p| p.id.as_str()).collect();
    assert_eq!(ids, ["t", "t2"]);
    let messages: Vec<_> = loaded.warnings.iter().map(|w| w.message.as_str()).collect();
    assert!(messages.iter().any(|m| m.contains("defines `other`, not `misnamed`")), "{messages:?}");
    f.write("shared/p.yaml", "name: p\ntype: t\n");
    let problems = f.bad("agent: agents/hello.md\nproviders: [shared/p.yaml]\n");
    assert!(problems.iter().any(|(_, at, p)| at == "providers/p.yaml:1:7" && p.message.contains("twice")));
}

#[test]
fn excerpts_never_show_values() {
    let f = Fixture::new();
    f.write(
        "providers/q.yaml",
        "name: q\ntype: t\ncredentials:\n  LIT: s3cr3t\n  K: ${EMPTY}\n  M: s3cr3t2\n",
    );
    let error = f
        .load(
            "agent: agents/hello.md\nproviders: [q]\nhost_files:\n\
             \x20 - {src: env/missing.env, dest: /tmp/a, expand: true}\n",
        )
        .unwrap_err();
    let text = crate::report::problem::render(error.problem_list().unwrap(), false, false, 100);
    assert!(text.contains("${EMPTY}") && text.contains("${NOPE}"), "{text}");
    assert!(!text.contains("s3cr3t"), "{text}");
}
