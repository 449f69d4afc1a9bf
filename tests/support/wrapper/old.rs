//! The differences between the releases and the embedded backend, which speaks 0.1.x.

use std::time::Duration;

use serde_json::{Value, json};

use crate::Result;
use crate::help;
use crate::personality::Personality::{self, V0_0_83, V0_0_110, V0_0_116, V0_1_10};
use crate::target::{become_it, json as ask, pass, repeat, say_err, say_out, take};

/// Provider types that the 0.0 releases brought along.
const BUILT_IN: [&str; 9] =
    ["anthropic", "claude", "claude-code", "codex", "generic", "github", "gitlab", "nvidia", "openai"];

/// Makes the call in the manner of the release.
pub(crate) fn call(personality: Personality, argv: &[String]) -> Result {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    if words.first() == Some(&"--version") {
        say_out(&format!("openshell {}\n", personality.version()));
        return Ok(0);
    }
    let (globals, rest) = split_globals(&words);
    if personality < V0_1_10 && globals.contains(&"--color") {
        return Ok(usage(&help::unexpected("--color")));
    }
    match rest {
        ["sandbox", "create", create @ ..] => create_call(personality, create),
        ["sandbox", "list", ..] => list(personality, rest),
        ["sandbox", "get", ..] => get(personality, rest),
        ["sandbox", "delete", names @ ..] if personality < V0_1_10 => delete(names),
        ["sandbox", "ssh-config", ..] => ssh_config(personality, rest),
        ["sandbox", "exec", ..]
            if personality < V0_1_10 && !rest.iter().any(|a| *a == "-n" || *a == "--name") =>
        {
            Ok(usage("error: the following required arguments were not provided:\n  --name <NAME>\n"))
        }
        ["ssh-proxy", ..] => become_it(rest),
        ["profile", ..] if personality < V0_1_10 => Ok(usage(&help::unrecognized("profile"))),
        ["settings", "set", ..] if personality < V0_1_10 && rest.contains(&"providers_v2_enabled") => {
            say_out("✓ Set global setting providers_v2_enabled=true (revision 1)\n");
            Ok(0)
        }
        ["provider", "create", ..] if personality < V0_1_10 => provider_create(rest),
        ["provider", "list", ..] if personality < V0_1_10 => provider_list(rest),
        ["status", ..] | ["provider", "get", ..] => {
            let output = take(rest)?;
            say_err(&String::from_utf8_lossy(&output.stderr));
            say_out(&coloured(personality, &String::from_utf8_lossy(&output.stdout)));
            Ok(output.status.code().unwrap_or(1))
        }
        _ => pass(rest),
    }
}

/// Options before the subcommand, and the rest.
fn split_globals<'a, 'b>(args: &'b [&'a str]) -> (&'b [&'a str], &'b [&'a str]) {
    let mut at = 0;
    while let Some(flag) = args.get(at)
        && ["-g", "--gateway", "--workspace", "--color"].contains(flag)
    {
        at += 2;
    }
    args.split_at(at.min(args.len()))
}

/// A usage error.
fn usage(text: &str) -> i32 {
    say_err(text);
    2
}

/// Text for people has escapes in the 0.0 releases, also in a pipe.
fn coloured(personality: Personality, text: &str) -> String {
    if personality >= V0_1_10 {
        return text.to_owned();
    }
    let paint = |line: &str| match line.split_once(": ") {
        Some((key, value)) if line.starts_with("  ") => {
            format!("  \x1b[2m{}:\x1b[0m {value}\n", key.trim_start())
        }
        _ if line.ends_with(':') && !line.starts_with(' ') => {
            format!("\x1b[1m\x1b[36m{line}\x1b[39m\x1b[0m\n")
        }
        _ => format!("{line}\n"),
    };
    text.lines().map(paint).collect()
}

fn create_call(personality: Personality, args: &[&str]) -> Result {
    let (options, command) = match args.iter().position(|a| *a == "--") {
        Some(at) => (&args[..at], &args[at + 1..]),
        None => (args, &[][..]),
    };
    if options.iter().any(|a| *a == "--help" || *a == "-h") {
        say_out(&help::create(personality));
        return Ok(0);
    }
    let has = |names: &[&str]| options.iter().any(|a| names.contains(a));
    let detach = has(&["--detach"]);
    let json = has(&["-o", "--output"]);
    if detach && personality < V0_0_116 {
        return Ok(usage(&help::unexpected("--detach")));
    }
    if json && personality == V0_0_83 {
        return Ok(usage(&help::unexpected("-o")));
    }
    if json && !command.is_empty() && personality < V0_1_10 {
        return Ok(usage("error: the argument '--output <OUTPUT>' cannot be used with '[COMMAND]...'\n"));
    }
    if command.is_empty() && !json && personality < V0_0_116 {
        // An interactive shell on a terminal that is not there.
        loop {
            std::thread::sleep(Duration::from_hours(1));
        }
    }
    let main = |command: &[&str]| {
        let mut words = vec!["sandbox", "create"];
        words.extend(without_dead_providers(personality, options));
        if !detach {
            words.push("--detach");
        }
        words.push("--");
        words.extend(if command.is_empty() { &["sleep", "infinity"] } else { command });
        words.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    match command {
        [] => created(personality, &main(&[])),
        _ if detach => created(personality, &main(command)),
        // The command is one of many; the sandbox stays.
        _ if personality < V0_0_116 => {
            let code = created(personality, &main(&[]))?;
            if code != 0 {
                return Ok(code);
            }
            let name = name_of(options);
            let mut exec = vec!["sandbox", "exec", "-n", &name, "--no-tty", "--"];
            exec.extend(command);
            match pass(&exec)? {
                0 => Ok(0),
                n => {
                    say_err(&format!("Error:   × ssh exited with status exit status: {n}\n"));
                    Ok(1)
                }
            }
        }
        // The command is the sandbox, in the foreground.
        _ => {
            let code = created(personality, &main(command))?;
            if code == 0 { attached(personality, &name_of(options)) } else { Ok(code) }
        }
    }
}

fn created(personality: Personality, words: &[String]) -> Result {
    let output = take(words)?;
    let flat = flat(&output.stderr);
    if personality < V0_1_10
        && let Some((name, _)) =
            flat.split_once("provider '").and_then(|(_, t)| t.split_once("' not found and"))
    {
        say_out(&String::from_utf8_lossy(&output.stdout));
        say_err(&format!(
            "Error:   × provider '{name}' not found and '{name}' is not a recognized provider\n  │ type. Create it \
             first with `openshell provider create --type <type> --name\n  │ {name}`\n"
        ));
        return Ok(1);
    }
    let code = repeat(&output);
    if code == 0 && !words.iter().any(|w| w == "-o" || w == "--output") {
        say_out("  [0.0s] Requesting compute...\n[0.0s] Sandbox allocated\n[0.1s] Starting sandbox\n");
    }
    Ok(code)
}

/// A report on one line, without its frame.
fn flat(report: &[u8]) -> String {
    let text = String::from_utf8_lossy(report).replace('│', " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Waits for the main process and ends as the release does.
fn attached(personality: Personality, name: &str) -> Result {
    loop {
        let state = ask(&["sandbox", "get", name, "-o", "json"])?;
        let code = state.get("exit_code").and_then(Value::as_i64).and_then(|c| i32::try_from(c).ok());
        match state.get("phase").and_then(Value::as_str) {
            Some("Ready" | "Provisioning") => std::thread::sleep(Duration::from_millis(20)),
            _ if personality >= V0_1_10 => return Ok(code.unwrap_or(1)),
            _ => {
                say_err(
                    "Error:   × sandbox entered error phase while provisioning: ContainerExited:\n  │ Container \
                     exited\n",
                );
                return Ok(1);
            }
        }
    }
}

fn name_of(options: &[&str]) -> String {
    let at = options.iter().position(|a| *a == "--name");
    at.and_then(|at| options.get(at + 1)).map(|name| (*name).to_owned()).unwrap_or_default()
}

/// From 0.0.103 to 0.0.116 one provider without a real profile takes the credentials of all with it, silently.
fn without_dead_providers<'a>(personality: Personality, options: &[&'a str]) -> Vec<&'a str> {
    let names: Vec<&str> =
        options.windows(2).filter(|pair| pair[0] == "--provider").map(|pair| pair[1]).collect();
    let dead = (V0_0_110..=V0_0_116).contains(&personality)
        && !names.is_empty()
        && ask(&["provider", "list", "-o", "json"]).is_ok_and(|all| {
            let stub = |p: &Value| {
                let text = |key: &str| p.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
                names.contains(&text("name").as_str()) && text("type") == "generic"
            };
            all.get("providers").and_then(Value::as_array).is_some_and(|list| list.iter().any(stub))
        });
    let mut kept = Vec::new();
    let mut options = options.iter();
    while let Some(option) = options.next() {
        if dead && *option == "--provider" {
            options.next();
        } else {
            kept.push(*option);
        }
    }
    kept
}

/// An item of the array that the 0.0 releases print.
fn old_item(personality: Personality, item: &Value) -> Value {
    let mut kept = serde_json::Map::new();
    let recent = ["annotations", "workspace"];
    let all = [
        "created_at",
        "current_policy_version",
        "id",
        "labels",
        "name",
        "phase",
        "resource_version",
        "annotations",
        "workspace",
        "policy",
        "policy_source",
        "revision",
    ];
    for key in all.iter().filter(|k| personality > V0_0_83 || !recent.contains(k)) {
        if let Some(value) = item.get(key) {
            // `Completed` is a phase of 0.1.
            let value = if *key == "phase" && value == "Completed" { json!("Error") } else { value.clone() };
            kept.insert((*key).to_owned(), value);
        }
    }
    Value::Object(kept)
}

fn list(personality: Personality, args: &[&str]) -> Result {
    if personality >= V0_1_10 {
        return pass(args);
    }
    if args.iter().any(|a| *a == "--help" || *a == "-h") {
        say_out(help::LIST);
        return Ok(0);
    }
    if let Some(flag) = args.iter().find(|a| ["--page-size", "--page-token"].contains(a)) {
        return Ok(usage(&help::unexpected(flag)));
    }
    let mut words = Vec::new();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        if ["--limit", "--offset"].contains(arg) {
            rest.next();
        } else {
            words.push(*arg);
        }
    }
    if !words.iter().any(|a| *a == "-o" || *a == "--output") {
        return pass(&words);
    }
    let output = take(&words)?;
    let Ok(value) = serde_json::from_slice::<Value>(&output.stdout) else { return Ok(repeat(&output)) };
    let items = value.get("sandboxes").and_then(Value::as_array).cloned().unwrap_or_default();
    let items: Vec<Value> = items.iter().map(|item| old_item(personality, item)).collect();
    say_out(&format!("{}\n", Value::Array(items)));
    Ok(0)
}

fn get(personality: Personality, args: &[&str]) -> Result {
    let json = args.iter().any(|a| *a == "-o" || *a == "--output");
    if json && personality == V0_0_83 {
        return Ok(usage(&help::unexpected("-o")));
    }
    let output = take(args)?;
    say_err(&String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    match serde_json::from_str::<Value>(&text) {
        Ok(value) if json && personality < V0_1_10 => {
            say_out(&format!("{}\n", old_item(personality, &value)));
        }
        _ if json => say_out(&text),
        _ => say_out(&coloured(personality, &text.replace("Phase: Completed", "Phase: Error"))),
    }
    Ok(output.status.code().unwrap_or(1))
}

/// Stops at the first that is missing.
fn delete(names: &[&str]) -> Result {
    for name in names {
        let output = take(&["sandbox", "delete", name])?;
        if String::from_utf8_lossy(&output.stdout).contains("not found") {
            say_err(
                "Error:   × code: 'Some requested entity was not found', message: \"sandbox not\n  │ found\"\n",
            );
            return Ok(1);
        }
        let code = repeat(&output);
        if code != 0 {
            return Ok(code);
        }
    }
    Ok(0)
}

/// The real one names its own path; so does this one.
fn ssh_config(personality: Personality, args: &[&str]) -> Result {
    let output = take(args)?;
    if !output.status.success() {
        return Ok(repeat(&output));
    }
    let exe = std::env::current_exe()?;
    let mut text = String::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let mut line = match line.split_once("' openshell ssh-proxy ") {
            Some((_, rest)) => {
                let exe = shell_words::quote(&exe.to_string_lossy()).into_owned();
                format!("    ProxyCommand {exe} ssh-proxy {rest}")
            }
            None => line.to_owned(),
        };
        if personality == V0_0_83 {
            line = line.replace(" --workspace default", "");
            if line.starts_with("Host ") {
                line = line.trim_end_matches(".default").to_owned();
            }
        }
        text.push_str(&line);
        text.push('\n');
    }
    say_out(&text);
    Ok(0)
}

/// A type that the release brought along needs a profile in the backend; any other must have been imported.
fn provider_create(args: &[&str]) -> Result {
    let kind = args.windows(2).find(|pair| pair[0] == "--type").map(|pair| pair[1]).unwrap_or_default();
    if BUILT_IN.contains(&kind) && take(&["profile", "export", kind])?.status.code() != Some(0) {
        let path = std::env::temp_dir().join(format!("openshell-wrapper-{}.yaml", std::process::id()));
        std::fs::write(&path, format!("id: {kind}\ndisplay_name: {kind}\n"))?;
        // Another call may be first; that is as good.
        take(&["profile", "import", "--file", &path.to_string_lossy()])?;
        std::fs::remove_file(&path)?;
    }
    let output = take(args)?;
    if flat(&output.stderr).contains("provider profile '") {
        say_err(&format!("Error:   × unsupported provider type or profile: {kind}\n"));
        return Ok(1);
    }
    Ok(repeat(&output))
}

fn provider_list(args: &[&str]) -> Result {
    let output = take(args)?;
    match serde_json::from_slice::<Value>(&output.stdout) {
        Ok(value) => {
            let items = value.get("providers").cloned().unwrap_or(json!([]));
            say_out(&format!("{items}\n"));
            Ok(0)
        }
        Err(_) => Ok(repeat(&output)),
    }
}
