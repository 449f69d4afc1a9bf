//! How the sandbox reaches the servers, proved from inside before the agent starts.
//!
//! Where the sandbox's ssh server forwards ports (`ssh -R`) the servers are on the sandbox's own loopback and no
//! policy is involved. OpenShell's does not (0.0.83 and 0.0.112, from their sources); there the host has an alias,
//! and the way leads through the sandbox's proxy and its policy.

use std::fmt::Write as _;

use super::Servers;
use crate::error::{Code, Error, Result};
use crate::openshell::dialect::HOST_ALIAS;
use crate::plan::layout::ENV_DIR;
use crate::process::Stdin;
use crate::remote::Session;
use crate::run::context::Cx;
use crate::run::prepare::Prepared;

/// The file in the sandbox that says where the servers are; before others, so that a harness can build on it.
const FILE: &str = "00-fullsend-api.env";
const LOOPBACK: &str = "127.0.0.1";

/// The question from inside. Standard input is the beginning of the environment file; the words are
/// `VARIABLE PORT HOST…` per server, ended by `--`. For each server the first host that answers is added; the answer is
/// a line per server. curl goes first, as a policy is likely to allow it; without it bash asks. The first question
/// through OpenShell's proxy may take seconds: it takes the digest of the program that asks, and of its parents.
const SCRIPT: &str = r#"set -u
umask 077
file=$1
shift
cat >"$file.new" || exit 70
trap 'rm -f "$file.new"' EXIT
ask() {
    url=http://$1:$2/healthz
    if command -v curl >/dev/null 2>&1; then
        status=$(curl -sS -m 20 --noproxy 127.0.0.1 -o /dev/null -w '%{http_code}' "$url" 2>&1)
    else
        to=$1 port=$2 target=/healthz proxy=${http_proxy:-${HTTP_PROXY:-}}
        if [ -n "$proxy" ] && [ "$1" != 127.0.0.1 ]; then
            proxy=${proxy#*://} proxy=${proxy%%/*} target=$url
            to=${proxy%:*} port=${proxy##*:}
        fi
        status=$(timeout 20 bash -c 'exec 3<>"/dev/tcp/$1/$2" && printf "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" "$3" "$4" >&3 &&
            read -r _ code _ <&3 && printf %s "$code"' - "$to" "$port" "$target" "$1:$2" 2>&1)
    fi
    case $status in 2[0-9][0-9]) return 0 ;; esac
    return 1
}
while [ $# -gt 0 ]; do
    variable=$1 port=$2 found='' said=''
    shift 2
    while [ "$1" != -- ]; do
        if [ -z "$found" ]; then
            if ask "$1" "$port"; then found=$1; else said="$said; $1: $(printf %s "$status" | tr '\n' ' ')"; fi
        fi
        shift
    done
    shift
    if [ -n "$found" ]; then
        printf "export %s_URL='http://%s:%s'\n" "$variable" "$found" "$port" >>"$file.new"
        printf 'ok %s\n' "$found"
    else
        printf 'no %s\n' "${said#; }"
    fi
done
mv -f "$file.new" "$file"
"#;

/// Makes the servers reachable and tells the agent where they are.
pub(in crate::run) async fn reach(cx: &Cx, prepared: &Prepared, session: &mut Session) -> Result<()> {
    let Some(servers) = cx.servers.get() else { return Ok(()) };
    cx.phase("reach", async {
        if let Some(error) = servers.dead() {
            return Err(error);
        }
        let mut args = format!("{ENV_DIR}/{FILE}");
        for server in &servers.list {
            let port = server.address.port();
            let forwarded = session.forward(port, server.address).await?;
            let _ = write!(args, " {} {port}", server.variable);
            // A sandbox of the embedded backend that has a network has this machine's.
            if forwarded || prepared.plan.local {
                let _ = write!(args, " {LOOPBACK}");
            }
            if !prepared.plan.local {
                let _ = write!(args, " {HOST_ALIAS}");
            }
            args.push_str(" --");
        }
        let limit = prepared.plan.deadlines.connect;
        // Through a shell of its own, as the login shell may be told other options. No word here is secret: the
        // token travels in the input.
        let script = format!("bash -c {} - {args}", crate::plan::env::quote(SCRIPT));
        let command = session.command("reach", &script).stdin(Stdin::Bytes(beginning(servers, prepared)));
        let output = session.finished("reach", command.deadline(limit).output().await)?;
        if !output.status.success() {
            return Err(Error::new(Code::ApiServer, "the sandbox could not be told where the servers are")
                .detail(output.stderr_text())
                .help("the image needs bash, and /sandbox/workspace must be writable"));
        }
        judge(servers, &output.stdout_text())
    })
    .await
}

/// The part of the environment file that is known before the question.
fn beginning(servers: &Servers, prepared: &Prepared) -> Vec<u8> {
    let token = prepared.world.token.clone().unwrap_or_default();
    let mut text = String::new();
    for server in &servers.list {
        let _ = writeln!(text, "export {}_TOKEN='{}'", server.variable, token.expose());
    }
    text.into_bytes()
}

fn judge(servers: &Servers, answer: &str) -> Result<((), String)> {
    let mut note = Vec::new();
    let mut lines = answer.lines().filter(|line| line.starts_with("ok ") || line.starts_with("no "));
    for server in &servers.list {
        let port = server.address.port();
        match lines.next().and_then(|line| line.split_once(' ')) {
            Some(("ok", host)) => note.push(format!("{} at {host}:{port}", server.name)),
            other => {
                let said = other.map(|(_, said)| said).unwrap_or_default();
                let what = format!("the sandbox does not reach the server {}", server.name);
                return Err(Error::new(Code::ApiServer, what).detail(format!("port {port}; {said}")).help(format!(
                    "give the policy or a provider's profile an endpoint for host {HOST_ALIAS}, port {port} (set `port` \
                     in the harness, so that it is always the same) with curl or bash among the binaries; an endpoint \
                     with `allowed_ips` needs the addresses of this machine there; a firewall of this machine may be in \
                     the way too"
                )));
            }
        }
    }
    Ok(((), note.join(", ")))
}
