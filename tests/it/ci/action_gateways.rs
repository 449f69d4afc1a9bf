//! The action's input `gateway`: one or several, registered with an `openshell` that is a script here.

use super::action::{job, script_of, step};
use crate::support::{Done, World};

/// A job whose openshell keeps a list of what was registered, and answers for all but `down`.
fn registering(gateway: &str) -> World {
    let mut world = job(&[("GATEWAY", gateway)]);
    let dir = world.path("log").display().to_string();
    std::fs::create_dir_all(&dir).unwrap();
    world.script(
        "bin/openshell",
        &format!(
            "echo \"$*\" >>'{dir}/calls'\n\
             case $* in\n\
             'gateway list')\n\
               if [[ -s '{dir}/list' ]]; then printf '  NAME  ENDPOINT  TYPE\\n'; cat '{dir}/list'; else\n\
               printf 'No gateways found.\\n\\nRegister a gateway with: openshell gateway add <endpoint>\\n'; fi ;;\n\
             'gateway add'*) [[ $3 != *refused* ]] || {{ echo 'no such issuer' >&2; exit 1; }}\n\
               printf '  %s  %s  cloud\\n' \"$5\" \"$3\" >>'{dir}/list' ;;\n\
             'gateway select '*) echo \"$3\" >'{dir}/selected' ;;\n\
             '--gateway '*' sandbox list -o json') [[ $2 != down ]] && echo '[]' ;;\n\
             *) exit 64 ;;\n\
             esac"
        ),
    );
    let path = format!("{}:{}", world.path("bin").display(), std::env::var("PATH").unwrap());
    world.env("PATH", path);
    world
}

fn log(world: &World, name: &str) -> String {
    std::fs::read_to_string(world.path("log").join(name)).unwrap_or_default()
}

fn register(world: &World) -> Done {
    step(world, &script_of("gateway"))
}

#[test]
fn several_gateways_are_registered_and_the_first_is_selected() {
    let mut world = registering(
        "\nhttps://a.test\r\neast  https://b.test:8443 --oidc-issuer https://id.test/$(touch never)\nhttps://c.test\n\
         near http://127.0.0.1:18080\n",
    );
    world.env("INPUT_GATEWAY_OPTIONS", "--oidc-scopes\na b\n");
    let done = register(&world);
    assert_eq!(done.code, 0, "{done:?}");
    let calls = log(&world, "calls");
    for call in [
        "gateway add https://a.test --name fullsend-action --oidc-scopes a b\n",
        "gateway add https://b.test:8443 --name east --oidc-scopes a b --oidc-issuer https://id.test/$(touch never)\n",
        "gateway add https://c.test --name fullsend-action-3 --oidc-scopes a b\n",
        "--gateway near sandbox list -o json\n",
    ] {
        assert!(calls.contains(call), "no {call:?} in\n{calls}");
    }
    assert_eq!(log(&world, "selected"), "fullsend-action\n");
    assert!(!world.repo().join("never").exists());
    // A second run on the same machine finds them.
    std::fs::remove_file(world.path("log/calls")).unwrap();
    let done = register(&world);
    assert!(done.code == 0 && !log(&world, "calls").contains("gateway add"), "{done:?}");
}

#[test]
fn a_gateway_that_cannot_be_used_is_refused_with_its_reason() {
    for (gateway, said) in [
        ("http://gateway.test", "https"),
        ("http://127.0.0.1.evil.test", "https"),
        ("gateway.test", "https"),
        ("--local https://a.test", "begins with a name"),
        ("x https://a.test\nx https://b.test", "names x twice"),
        ("https://refused.test", "no such issuer"),
        ("down https://a.test", "no gateway answers at https://a.test"),
        (" \n", "no address"),
    ] {
        let world = registering(gateway);
        let done = register(&world);
        assert_eq!(done.code, 2, "{gateway}: {done:?}");
        assert!(done.stdout.contains("::error") && done.stdout.contains(said), "{gateway}: {done:?}");
        assert_eq!(log(&world, "selected"), "", "{gateway}");
    }
}

#[test]
fn a_name_that_means_another_gateway_is_not_taken_for_it() {
    let mut world = registering("https://a.test");
    world.write("log/list", "\u{1b}[32m* fullsend-action  https://old.test  cloud\u{1b}[39m\n");
    let done = register(&world);
    assert!(done.code == 2 && done.stdout.contains("https://old.test already"), "{done:?}");
    world.write("log/list", "\u{1b}[32m* fullsend-action  https://a.test/  cloud\u{1b}[39m\n");
    assert_eq!(register(&world).code, 0);

    world.env("OPENSHELL_GATEWAY", "another");
    let done = register(&world);
    assert!(done.code == 2 && done.stdout.contains("OPENSHELL_GATEWAY is another"), "{done:?}");
}

#[test]
fn without_the_command_line_of_openshell_nothing_can_be_registered() {
    let mut world = job(&[("GATEWAY", "https://a.test")]);
    let path = std::env::var_os("PATH").unwrap();
    let kept = std::env::split_paths(&path).filter(|dir| !dir.join("openshell").exists());
    world.env("PATH", std::env::join_paths(kept).unwrap().into_string().unwrap());
    let done = register(&world);
    assert!(done.code == 2 && done.stdout.contains("needs the openshell CLI"), "{done:?}");
}
