//! What the action fetches, keeps, cleans up and hands on: its definition against what its scripts really do.

use std::path::PathBuf;

use serde_json::Value;

use super::action::{definition, job, output, script_of, sources, step, steps_with};
use crate::fleet;
use crate::support::{Done, World, fullsend};

const VERSION: &str = "9.8.7";

/// A job that installs a release from a directory: with the installer of these sources, and no program that could say
/// who built it.
fn installing(inputs: &[(&str, &str)]) -> World {
    let mut world = job(&[&[("VERSION", VERSION)], inputs].concat());
    let action = world.path("source/.github/actions/run");
    std::fs::create_dir_all(&action).unwrap();
    for entry in std::fs::read_dir(sources()).unwrap().map(Result::unwrap) {
        std::fs::copy(entry.path(), action.join(entry.file_name())).unwrap();
    }
    let installer = sources().join("../../install.sh");
    std::fs::copy(installer, world.path("source/.github/install.sh")).unwrap();
    let mut pack = String::from(
        "set -e; mkdir -p release; cd pack; for name in *; do tar -czf ../release/$name.tar.gz $name; done; ",
    );
    pack.push_str("cd ../release; sha256sum *.tar.gz >SHA256SUMS");
    for libc in ["gnu", "musl"] {
        let name = format!("fullsend-{VERSION}-{}-unknown-linux-{libc}", std::env::consts::ARCH);
        world.script(&format!("pack/{name}/fullsend"), "echo fullsend 9.8.7");
    }
    let done = world.finish(world.command("bash", &["-c", &pack], &world.path("")));
    assert_eq!(done.code, 0, "{done:?}");
    let url = format!("file://{}", world.path("release").display());
    let path = std::env::var_os("PATH").unwrap();
    let kept =
        std::env::split_paths(&path).filter(|dir| !["gh", "cosign"].iter().any(|p| dir.join(p).exists()));
    let path = std::env::join_paths(kept).unwrap().into_string().unwrap();
    world.env("FULLSEND_DOWNLOAD_URL", url).env("PATH", path);
    world.env("GITHUB_ACTION_PATH", action.to_str().unwrap()).env("ACTION_REPOSITORY", "o/fullsend");
    world
}

fn install(world: &World) -> Done {
    step(world, &script_of("install"))
}

#[track_caller]
fn not_installed(world: &World, said: &str) {
    let done = install(world);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.stderr.contains(said) && done.stdout.contains("::error"), "no {said:?}: {done:?}");
    assert!(!world.path(format!("runner-temp/fullsend-{VERSION}/fullsend")).exists(), "{done:?}");
    assert!(!output(world).contains_key("program"));
}

#[test]
fn a_release_is_installed_when_its_checksum_is_right() {
    let world = installing(&[]);
    let done = install(&world);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stderr.contains("the checksum is right"), "{done:?}");
    let program = PathBuf::from(&output(&world)["program"]);
    assert!(program.starts_with(world.path("runner-temp")) && program.is_file(), "{}", program.display());
}

#[test]
fn a_release_that_was_tampered_with_or_is_incomplete_is_not_installed() {
    let world = installing(&[]);
    let sums = std::fs::read_to_string(world.path("release/SHA256SUMS")).unwrap();
    let other = |c| if c == '0' { '1' } else { '0' };
    let changed: Vec<_> =
        sums.lines().map(|l| format!("{}{}\n", other(l.chars().next().unwrap()), &l[1..])).collect();
    world.write("release/SHA256SUMS", changed.concat());
    not_installed(&world, "was published: not installed");
    world.write("release/SHA256SUMS", "");
    not_installed(&world, "no line for");
    std::fs::remove_file(world.path("release/SHA256SUMS")).unwrap();
    not_installed(&world, "no list of checksums");
    world.write("release/SHA256SUMS", sums);
    for entry in std::fs::read_dir(world.path("release")).unwrap().map(|e| e.unwrap().path()) {
        if entry.extension().is_some_and(|e| e == "gz") {
            std::fs::remove_file(entry).unwrap();
        }
    }
    not_installed(&world, "has no build for");
}

#[test]
fn who_built_a_release_can_be_insisted_on() {
    let world = installing(&[("ATTESTATION", "required")]);
    not_installed(&world, "neither cosign nor a logged-in gh");
    let world = installing(&[("ATTESTATION", "perhaps")]);
    assert!(install(&world).stdout.contains("attestation is auto or required"));
}

/// The value of an input of the step that uses this action, with the directory of the runner in it.
fn with(uses: &str, key: &str, world: &World) -> PathBuf {
    let steps = steps_with("uses", uses);
    let [step] = steps.as_slice() else { panic!("there is not one step that uses {uses}") };
    let text = step["with"][key].as_str().unwrap();
    text.replace("${{ runner.temp }}", world.path("runner-temp").to_str().unwrap()).into()
}

#[test]
fn what_is_kept_is_where_the_run_leaves_it() {
    let mut world = job(&[]);
    world.env("FULLSEND_PROGRAM", fullsend().to_str().unwrap());
    world.agent("echo x > new");
    let done = step(&world, &script_of("run"));
    assert_eq!(done.code, 0, "{done:?}");
    let kept = with("actions/upload-artifact@", "path", &world);
    let dir = PathBuf::from(&output(&world)["run-dir"]);
    assert!(
        dir.starts_with(&kept) && dir.join("run.json").is_file(),
        "{} not in {}",
        dir.display(),
        kept.display()
    );

    world.script("fake", "printf '%s\\n' \"$@\" > args");
    let fake = world.path("fake").to_str().unwrap().to_owned();
    world.env("FULLSEND_PROGRAM", fake);
    step(&world, &script_of("run"));
    let args = std::fs::read_to_string(world.repo().join("args")).unwrap();
    let cache = with("actions/cache@", "path", &world);
    assert!(args.contains(&format!("--cache-dir\n{}\n", cache.display())), "{args}");
    for (uses, switch) in [("actions/upload-artifact@", "upload"), ("actions/cache@", "cache")] {
        let condition = steps_with("uses", uses)[0]["if"].as_str().unwrap().to_owned();
        assert!(condition.contains(&format!("inputs.{switch} == 'true'")), "{condition}");
        assert_eq!(condition.contains("always()"), switch == "upload", "{condition}");
    }
}

#[test]
fn a_killed_run_is_cleaned_up_by_the_step_that_runs_always() {
    let steps = steps_with("id", "reap");
    assert!(steps[0]["if"].as_str().unwrap().starts_with("always()"));
    let mut world = job(&[]);
    world.agent(fleet::WORKING);
    fleet::dead_run(&world);
    world.env("FULLSEND_PROGRAM", fullsend().to_str().unwrap());
    let done = step(&world, &script_of("reap"));
    assert_eq!(done.code, 0, "{done:?}");
    world.assert_clean();
}

#[test]
fn the_step_that_cleans_up_asks_the_gateway_of_the_run_and_fails_no_job() {
    let mut world = job(&[("OPTIONS", "--model\nx\n--gateway\neast\n--openshell=/o s\n")]);
    world.script("fake", "printf '%s\\n' \"$@\" > args; exit 3");
    let fake = world.path("fake").to_str().unwrap().to_owned();
    world.env("FULLSEND_PROGRAM", fake);
    let done = step(&world, &script_of("reap"));
    assert!(done.code == 0 && done.stdout.contains("::warning"), "{done:?}");
    assert_eq!(
        std::fs::read_to_string(world.repo().join("args")).unwrap(),
        "reap\n--gateway\neast\n--openshell=/o s\n"
    );
}

#[test]
fn every_input_is_used_and_every_output_is_written() {
    let mut world = job(&[]);
    world.env("FULLSEND_PROGRAM", fullsend().to_str().unwrap());
    world.agent(
        "echo '{\"a\":1}' > $FULLSEND_OUTPUT_DIR/agent-result.json\n\
         echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"x\",\"total_cost_usd\":0.5}'",
    );
    let done = step(&world, &script_of("run"));
    assert_eq!(done.code, 0, "{done:?}");
    let written = output(&world);
    let definition = definition();
    let outputs = definition["outputs"].as_object().unwrap();
    for name in ["verdict", "exit-code", "skipped", "skip-reason", "run-dir", "changed", "result", "cost"] {
        assert!(outputs.contains_key(name), "{name}");
    }
    for (name, about) in outputs {
        assert_eq!(about["value"].as_str(), Some(format!("${{{{ steps.run.outputs.{name} }}}}").as_str()));
        assert!(written.contains_key(name), "{name} is not written: {written:?}");
    }
    assert_eq!((written["result"].as_str(), written["cost"].as_str()), ("{\"a\":1}", "0.500000"));

    let guide = std::fs::read_to_string(sources().join("../../../docs/guide/github.md")).unwrap();
    let steps = Value::to_string(&definition["runs"]);
    let inputs = definition["inputs"].as_object().unwrap();
    for name in ["agent", "fullsend-dir", "target-repo", "version", "options", "upload"] {
        assert!(inputs.contains_key(name), "{name}");
    }
    for name in inputs.keys() {
        assert!(steps.contains(&format!("inputs.{name}")), "the input {name} is not used");
        assert!(name == "token" || guide.contains(&format!("`{name}`")), "the guide does not have {name}");
    }
}

#[test]
fn a_large_result_is_no_output() {
    let mut world = job(&[]);
    world.env("FULLSEND_PROGRAM", fullsend().to_str().unwrap());
    for (bytes, small) in [(32 * 1024 - 8, true), (32 * 1024 + 1, false)] {
        world.agent(&format!(
            "{{ printf '{{\"a\":\"'; head -c {} /dev/zero | tr '\\0' x; printf '\"}}'; }} > $FULLSEND_OUTPUT_DIR/agent-result.json",
            bytes - 8
        ));
        world.write("gh/output", "");
        let done = step(&world, &script_of("run"));
        assert_eq!(done.code, 0, "{done:?}");
        let written = output(&world);
        assert_eq!(written["result"].len() > 1000, small, "{bytes}: {} bytes", written["result"].len());
        assert_eq!(written["verdict"], "success");
    }
}
