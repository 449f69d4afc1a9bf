//! The ssh configuration of a sandbox: parsed from untrusted text, written anew.
//!
//! `openshell sandbox ssh-config` prints text that a gateway has a part in, and ssh runs what it finds there. So
//! only known keywords with harmless values are read (everything else is an error, not ignored), and the proxy
//! command is taken apart and rebuilt with the executable that we resolved. Field values once reached `sh -c`
//! unescaped in OpenShell itself.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::error::{Code, Error, Result};

/// The longest text that is looked at, in bytes.
pub const LIMIT: usize = 64 * 1024;

/// Options of `ssh-proxy` in its name mode; the token mode would put a token into argv.
const PROXY_OPTIONS: &[&str] = &["--gateway-name", "--name", "--workspace"];

/// What is taken from the printed configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshConfig {
    /// The name to connect to, from the `Host` line.
    pub alias: String,
    /// The user to log in as.
    pub user: Option<String>,
    /// Seconds between two signs of life, and how many may be missed.
    pub alive: (u32, u32),
    /// The options of `ssh-proxy`, name and value.
    pub proxy: Vec<(String, String)>,
}

fn refused(what: impl std::fmt::Display) -> Error {
    Error::new(
        Code::SshConfig,
        format!("what `openshell sandbox ssh-config` printed is not acceptable: {what}"),
    )
    .help("check that the openshell executable is genuine; a newer one may need a newer fullsend")
}

impl SshConfig {
    /// Reads the printed text.
    ///
    /// # Errors
    /// [`Code::SshConfig`] for anything but one `Host` with known keywords and values.
    pub fn parse(text: &[u8]) -> Result<Self> {
        if text.len() > LIMIT {
            return Err(refused(format!("it is larger than {LIMIT} bytes")));
        }
        let text = std::str::from_utf8(text).map_err(|_| refused("it is not UTF-8"))?;
        if let Some(c) = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
            return Err(refused(format!("it holds the control character U+{:04X}", u32::from(c))));
        }
        let mut parsed = Parsed::default();
        for line in text.lines() {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                let (keyword, value) = split(line).ok_or_else(|| refused("a keyword has no value"))?;
                parsed.take(&keyword, value)?;
            }
        }
        parsed.finish()
    }

    /// The file for the master connection: everything is ours, the proxy command starts with `program`.
    ///
    /// # Errors
    /// [`Code::SshConfig`] when a path cannot be written in an ssh configuration.
    pub fn render_master(&self, program: &[impl AsRef<OsStr>], socket: &Path) -> Result<Vec<u8>> {
        let mut words: Vec<&OsStr> = program.iter().map(AsRef::as_ref).collect();
        words.push(OsStr::new("ssh-proxy"));
        for (option, value) in &self.proxy {
            words.extend([OsStr::new(option), OsStr::new(value)]);
        }
        let mut command = Vec::new();
        for word in words {
            if word.as_bytes().iter().any(|b| matches!(b, b'\n' | b'\r' | 0)) {
                return Err(refused("the path of openshell holds a line break"));
            }
            if !command.is_empty() {
                command.push(b' ');
            }
            command.extend(percent(&shell_quote(word.as_bytes())));
        }
        self.render(&command, socket)
    }

    /// The file for every other ssh, scp and rsync: they use the master's socket, and without it fail at once
    /// instead of making a connection of their own.
    ///
    /// # Errors
    /// As [`SshConfig::render_master`].
    pub fn render_client(&self, socket: &Path) -> Result<Vec<u8>> {
        self.render(b"false", socket)
    }

    fn render(&self, proxy: &[u8], socket: &Path) -> Result<Vec<u8>> {
        let socket = socket.as_os_str().as_bytes();
        if socket.iter().any(|b| matches!(b, b'\n' | b'\r' | b'"' | b'\\' | 0)) {
            return Err(refused("the path of the control socket cannot be quoted"));
        }
        let (interval, count) = self.alive;
        let mut text = format!("Host {}\n", self.alias);
        if let Some(user) = &self.user {
            let _ = writeln!(text, "    User {user}");
        }
        // The transport is authenticated by the gateway; the host key is made anew with each sandbox.
        let _ = write!(
            text,
            "    BatchMode yes\n    StrictHostKeyChecking no\n    UserKnownHostsFile /dev/null\n    \
             GlobalKnownHostsFile /dev/null\n    UpdateHostKeys no\n    LogLevel ERROR\n    ServerAliveInterval \
             {interval}\n    ServerAliveCountMax {count}\n    ConnectTimeout 60\n    IdentitiesOnly yes\n    IdentityFile \
             none\n    IdentityAgent none\n    ForwardAgent no\n    ForwardX11 no\n    ClearAllForwardings yes\n    \
             PermitLocalCommand no\n    CanonicalizeHostname no\n    Compression no\n    RequestTTY no\n    EscapeChar \
             none\n    ControlMaster no\n    ControlPersist no\n"
        );
        let mut bytes = text.into_bytes();
        bytes.extend(b"    ControlPath \"");
        bytes.extend(percent(socket));
        bytes.extend(b"\"\n    ProxyCommand ");
        bytes.extend(proxy);
        bytes.push(b'\n');
        Ok(bytes)
    }
}

/// A word for `/bin/sh`: as it stands when it is plainly harmless, else in single quotes.
pub(super) fn shell_quote(word: &[u8]) -> Vec<u8> {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"/._-+:=@,".contains(b);
    if !word.is_empty() && word.iter().all(plain) {
        return word.to_vec();
    }
    let mut out = vec![b'\''];
    for &b in word {
        match b {
            b'\'' => out.extend(b"'\\''"),
            b => out.push(b),
        }
    }
    out.push(b'\'');
    out
}

/// Doubles `%`, which ssh expands in paths and in the proxy command.
fn percent(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for &b in bytes {
        if b == b'%' {
            out.push(b'%');
        }
        out.push(b);
    }
    out
}

/// Keyword (lower case) and the rest of a line; `Key Value` and `Key=Value` as `ssh_config(5)` has it.
fn split(line: &str) -> Option<(String, &str)> {
    let end = line.find(|c: char| c.is_whitespace() || c == '=')?;
    let rest = line[end..].trim_start();
    let value = rest.strip_prefix('=').unwrap_or(rest).trim();
    (!value.is_empty() && end > 0).then(|| (line[..end].to_ascii_lowercase(), value))
}

#[derive(Default)]
struct Parsed {
    alias: Option<String>,
    user: Option<String>,
    interval: Option<u32>,
    count: Option<u32>,
    proxy: Option<Vec<(String, String)>>,
    seen: Vec<String>,
}

impl Parsed {
    fn take(&mut self, keyword: &str, value: &str) -> Result<()> {
        if self.seen.iter().any(|k| k == keyword) {
            return Err(refused(format!("`{keyword}` is there twice")));
        }
        if self.alias.is_none() && keyword != "host" {
            return Err(refused(format!("`{}` before `Host`", shown(keyword))));
        }
        match keyword {
            "host" => {
                let plain = name(value);
                self.alias = Some(plain.ok_or_else(|| refused("the `Host` line is not one plain name"))?);
            }
            "user" => {
                let plain = name(value).filter(|u| !u.contains('.'));
                self.user = Some(plain.ok_or_else(|| refused("`User` is not a plain name"))?);
            }
            "stricthostkeychecking" => one_of(keyword, value, &["no", "off", "accept-new", "yes", "ask"])?,
            // ssh writes to these files.
            "userknownhostsfile" | "globalknownhostsfile" => one_of(keyword, value, &["/dev/null", "none"])?,
            "loglevel" => {
                let levels =
                    ["quiet", "fatal", "error", "info", "verbose", "debug", "debug1", "debug2", "debug3"];
                one_of(keyword, &value.to_ascii_lowercase(), &levels)?;
            }
            "serveraliveinterval" => self.interval = Some(number(keyword, value)?),
            "serveralivecountmax" => self.count = Some(number(keyword, value)?),
            "proxycommand" => self.proxy = Some(proxy(value)?),
            other => return Err(refused(format!("it sets `{}`", shown(other)))),
        }
        self.seen.push(keyword.to_owned());
        Ok(())
    }

    fn finish(self) -> Result<SshConfig> {
        Ok(SshConfig {
            alias: self.alias.ok_or_else(|| refused("it has no `Host` line"))?,
            user: self.user,
            alive: (self.interval.unwrap_or(15), self.count.unwrap_or(3)),
            proxy: self.proxy.ok_or_else(|| refused("it has no `ProxyCommand`"))?,
        })
    }
}

/// A short printable form of text from outside.
fn shown(text: &str) -> String {
    text.chars().take(40).collect::<String>().escape_debug().to_string()
}

/// A plain name: no pattern, no option, no path.
fn name(value: &str) -> Option<String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let ok = value.len() <= 128
        && value.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && value.chars().all(fine);
    ok.then(|| value.to_owned())
}

fn one_of(keyword: &str, value: &str, known: &[&str]) -> Result<()> {
    if known.contains(&value) {
        Ok(())
    } else {
        Err(refused(format!("`{keyword}` has the value `{}`", shown(value))))
    }
}

fn number(keyword: &str, value: &str) -> Result<u32> {
    let number = value.parse().ok().filter(|n| (1..=3600).contains(n));
    number.ok_or_else(|| refused(format!("`{keyword}` has the value `{}`", shown(value))))
}

/// Takes `<executable> [openshell] ssh-proxy <options>` apart. The executable is not used.
fn proxy(value: &str) -> Result<Vec<(String, String)>> {
    let words = shell_words::split(value).map_err(|_| refused("`ProxyCommand` has an open quote"))?;
    let mut words = words.into_iter().skip(1).peekable();
    words.next_if(|w| w == crate::openshell::dialect::BINARY);
    if words.next().as_deref() != Some("ssh-proxy") {
        return Err(refused("`ProxyCommand` is not `openshell ssh-proxy`"));
    }
    let mut options: Vec<(String, String)> = Vec::new();
    while let Some(word) = words.next() {
        let (option, value) = match word.split_once('=') {
            Some((option, value)) => (option.to_owned(), Some(value.to_owned())),
            None => (word, words.next()),
        };
        let known = PROXY_OPTIONS.contains(&option.as_str()) && !options.iter().any(|(o, _)| *o == option);
        if !known {
            return Err(refused(format!("`ProxyCommand` has the argument `{}`", shown(&option))));
        }
        let value = value.unwrap_or_default();
        if option == "--gateway-name" && (value.is_empty() || value.contains("://")) {
            // Seen on 0.0.83 and 0.0.112 where only an endpoint is set: ssh then fails with `Unknown gateway`.
            return Err(Error::new(
                Code::GatewayDown,
                "ssh needs a registered gateway, but only an address is set",
            )
            .help("register it: `openshell gateway add URL --local --name NAME`, then pass --gateway NAME"));
        }
        let value = name(&value)
            .ok_or_else(|| refused(format!("`{option}` of the proxy has the value `{}`", shown(&value))))?;
        options.push((option, value));
    }
    if !options.iter().any(|(option, _)| option == "--name") {
        return Err(refused("`ProxyCommand` names no sandbox"));
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REAL: &str = "Host openshell-x1.default\n    User sandbox\n    StrictHostKeyChecking no\n    UserKnownHostsFile \
                        /dev/null\n    GlobalKnownHostsFile /dev/null\n    LogLevel ERROR\n    ServerAliveInterval 15\n    \
                        ServerAliveCountMax 3\n    ProxyCommand '/opt/a b/openshell' ssh-proxy --gateway-name local --name x1 \
                        --workspace default\n";

    fn with(line: &str) -> String {
        format!("{REAL}    {line}\n")
    }

    fn with_proxy(command: &str) -> String {
        let lines: Vec<_> = REAL.lines().filter(|l| !l.contains("ProxyCommand")).collect();
        format!("{}\n    ProxyCommand {command}\n", lines.join("\n"))
    }

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn real_texts_of_each_generation_are_read() {
        let config = SshConfig::parse(REAL.as_bytes()).unwrap();
        assert_eq!(config.alias, "openshell-x1.default");
        assert_eq!(config.user.as_deref(), Some("sandbox"));
        assert_eq!(config.alive, (15, 3));
        let proxy: Vec<_> = config.proxy.iter().map(|(o, v)| format!("{o} {v}")).collect();
        assert_eq!(proxy, ["--gateway-name local", "--name x1", "--workspace default"]);
        let old = "Host openshell-x1\n  User sandbox\n  ProxyCommand /usr/bin/openshell ssh-proxy --gateway-name local --name x1\n";
        assert_eq!(SshConfig::parse(old.as_bytes()).unwrap().alias, "openshell-x1");
        let own = with_proxy("/usr/bin/fullsend openshell ssh-proxy --name=x1");
        assert_eq!(SshConfig::parse(own.as_bytes()).unwrap().proxy, [("--name".into(), "x1".into())]);
    }

    #[test]
    fn hostile_texts_are_refused() {
        let cases = [
            with_proxy("touch /tmp/pwn"),
            with_proxy("/bin/sh -c 'touch /tmp/pwn'"),
            with_proxy("openshell ssh-proxy --name x1; touch /tmp/pwn"),
            with_proxy("openshell ssh-proxy --name $(touch /tmp/pwn)"),
            with_proxy("openshell ssh-proxy --name `id`"),
            with_proxy("openshell ssh-proxy --name -oProxyCommand=x"),
            with_proxy("openshell ssh-proxy --name %h"),
            with_proxy("openshell ssh-proxy --token abc --name x1"),
            with_proxy("openshell ssh-proxy --name x1 --name x2"),
            with_proxy("openshell ssh-proxy --name"),
            with_proxy("openshell ssh-proxy --gateway-name local"),
            with_proxy("openshell ssh-proxy --name 'x1"),
            with_proxy("openshell"),
            with("LocalCommand touch /tmp/pwn"),
            with("PermitLocalCommand yes"),
            with("Include /etc/passwd"),
            with("Match exec \"touch /tmp/pwn\""),
            with("Host other"),
            with("host other"),
            with("ProxyJump evil"),
            with("IdentityFile ~/.ssh/id_rsa"),
            with("SendEnv *"),
            with("ForwardAgent=yes"),
            with("User root"),
            with("KnownHostsCommand /bin/sh"),
            REAL.replace("/dev/null", "/home/me/.ssh/known_hosts"),
            REAL.replace("Interval 15", "Interval 0"),
            REAL.replace("Interval 15", "Interval 99999"),
            REAL.replace("Host openshell-x1.default", "Host *"),
            REAL.replace("Host openshell-x1.default", "Host -oProxyCommand=x"),
            REAL.replace("Host openshell-x1.default", "Host a b"),
            REAL.replace("Host openshell-x1.default\n", ""),
            REAL.replace("User sandbox", "User -l"),
            REAL.replace("User sandbox", "User"),
            format!("User root\n{REAL}"),
            format!("{REAL}\u{0}"),
            format!("{REAL}\u{1b}[2J"),
            format!("# {}\n{REAL}", "x".repeat(1024 * 1024)),
            String::new(),
        ];
        for case in cases {
            let error = SshConfig::parse(case.as_bytes()).unwrap_err();
            assert_eq!(error.code(), Code::SshConfig, "{case}");
        }
        assert!(SshConfig::parse(b"Host a\nUser \xff\n").is_err());
    }

    #[test]
    fn an_unregistered_gateway_has_its_own_help() {
        let text = with_proxy("openshell ssh-proxy --gateway-name 'http://127.0.0.1:18080' --name x1");
        let error = SshConfig::parse(text.as_bytes()).unwrap_err();
        assert_eq!(error.code(), Code::GatewayDown);
        assert!(error.help_text().contains("gateway add"));
    }

    #[test]
    fn the_proxy_command_is_rebuilt_with_our_executable() {
        let config = SshConfig::parse(REAL.as_bytes()).unwrap();
        let program = ["/o p/100%/it's/openshell", "openshell"];
        let master = text(config.render_master(&program, Path::new("/run/a%b/s")).unwrap());
        assert!(
            master.ends_with(
                "    ControlPath \"/run/a%%b/s\"\n    ProxyCommand '/o p/100%%/it'\\''s/openshell' openshell ssh-proxy \
                 --gateway-name local --name x1 --workspace default\n"
            ),
            "{master}"
        );
        assert!(!master.contains("/opt/a b"));
        assert!(config.render_master(&["/a\nb"], Path::new("/s")).is_err());
    }

    #[test]
    fn clients_cannot_connect_on_their_own() {
        let config = SshConfig::parse(REAL.as_bytes()).unwrap();
        let client = text(config.render_client(Path::new("/s")).unwrap());
        assert!(client.ends_with("    ProxyCommand false\n"), "{client}");
        assert!(client.contains("\n    BatchMode yes\n") && client.contains("\n    ControlMaster no\n"));
        assert!(config.render_client(Path::new("/a\"b")).is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(bytes in any::<Vec<u8>>()) {
            let _ = SshConfig::parse(&bytes);
        }

        #[test]
        fn whatever_is_accepted_renders_into_plain_lines(
            alias in "[ -~]{1,20}", user in "[ -~]{1,12}", value in "[ -~]{1,20}", extra in "[ -~]{0,30}",
        ) {
            let text = format!("Host {alias}\nUser {user}\nProxyCommand x ssh-proxy --name {value}\n{extra}\n");
            if let Ok(config) = SshConfig::parse(text.as_bytes()) {
                let master = config.render_master(&["/bin/openshell"], Path::new("/s")).unwrap();
                let master = String::from_utf8(master).unwrap();
                let hosts = master.lines().filter(|l| l.starts_with("Host ")).count();
                prop_assert_eq!(hosts, 1);
                let proxy = master.lines().last().unwrap();
                let safe = |c: char| c.is_ascii_alphanumeric() || " /._-".contains(c);
                prop_assert!(proxy.chars().all(safe), "{}", proxy);
            }
        }

        #[test]
        fn quoted_words_reach_the_shell_unchanged(word in "\\PC{0,20}") {
            let quoted = String::from_utf8(shell_quote(word.as_bytes())).unwrap();
            prop_assert_eq!(shell_words::split(&quoted).unwrap(), vec![word]);
        }
    }
}
