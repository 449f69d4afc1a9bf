//! The generated files of a sandbox's `/etc`, and the environment of its commands.

use std::path::{Path, PathBuf};

use super::bubble::LINKS;
use super::identity::INSIDE;

/// The search path that a login shell starts with, after the bound directories.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games";

/// Files that are written, by name.
pub(super) fn files(name: &str, path: &str) -> Vec<(&'static str, String)> {
    vec![
        (
            "passwd",
            format!(
                "root:x:0:0:root:/root:/usr/sbin/nologin\n\
                 sandbox:x:{INSIDE}:{INSIDE}:sandbox:/sandbox:/bin/bash\n\
                 nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
            ),
        ),
        ("group", format!("root:x:0:\nsandbox:x:{INSIDE}:\nnogroup:x:65534:\n")),
        ("hostname", format!("{name}\n")),
        (
            "nsswitch.conf",
            "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\n\
             protocols: files\nservices: files\n"
                .to_owned(),
        ),
        (
            "profile",
            format!(
                "# The login profile of a local sandbox.\nPATH={}\nexport PATH\numask 022\n",
                shell_words::quote(path)
            ),
        ),
    ]
}

/// The search path: the `bin` directories of the bound prefixes, the named programs, the system's.
pub(super) fn search_path(binds: &[PathBuf], links: bool, is_dir: impl Fn(&Path) -> bool) -> String {
    let mut parts: Vec<String> = Vec::new();
    for bind in binds {
        let bin = if bind.ends_with("bin") { bind.clone() } else { bind.join("bin") };
        // A colon cannot be written in a search path.
        if let Some(text) = bin.to_str().filter(|t| !t.contains(':'))
            && is_dir(&bin)
            && !parts.iter().any(|p| p == text)
        {
            parts.push(text.to_owned());
        }
    }
    if links {
        parts.push(LINKS.to_owned());
    }
    parts.push(PATH.to_owned());
    parts.join(":")
}

/// The environment before what the caller and the providers add.
pub(super) fn base_env(path: &str) -> Vec<(String, String)> {
    [
        ("PATH", path),
        ("HOME", "/sandbox"),
        ("USER", "sandbox"),
        ("LOGNAME", "sandbox"),
        ("SHELL", "/bin/bash"),
        ("LANG", "C.UTF-8"),
        ("TERM", "dumb"),
    ]
    .map(|(k, v)| (k.to_owned(), v.to_owned()))
    .into()
}

/// Sets variables; a later value takes the place of an earlier one.
pub(super) fn merge(env: &mut Vec<(String, String)>, more: impl IntoIterator<Item = (String, String)>) {
    for (key, value) in more {
        match env.iter_mut().find(|(k, _)| *k == key) {
            Some(entry) => entry.1 = value,
            None => env.push((key, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_prefixes_come_first_and_once() {
        let binds = ["/opt/agent", "/opt/agent/bin", "/data", "/we:ird"].map(PathBuf::from);
        let path = search_path(&binds, false, |p| p != Path::new("/data/bin"));
        assert_eq!(path, format!("/opt/agent/bin:{PATH}"));
        let path = search_path(&binds[..1], true, |_| true);
        assert_eq!(path, format!("/opt/agent/bin:{LINKS}:{PATH}"));
    }

    #[test]
    fn the_profile_cannot_be_broken_by_a_path() {
        let profile = files("n", "/a b/$(x)'/bin:/usr/bin").pop().unwrap().1;
        let out = std::process::Command::new("sh")
            .args(["-c", &format!("{profile}\nprintf %s \"$PATH\"")])
            .output()
            .unwrap();
        assert_eq!(out.stdout, b"/a b/$(x)'/bin:/usr/bin");
    }

    #[test]
    fn later_values_win() {
        let mut env = base_env("/bin");
        merge(&mut env, [("LANG".to_owned(), "x".to_owned()), ("A".to_owned(), "1".to_owned())]);
        assert_eq!(env.iter().filter(|(k, _)| k == "LANG").count(), 1);
        assert!(env.contains(&("LANG".to_owned(), "x".to_owned())));
        assert_eq!(env.last(), Some(&("A".to_owned(), "1".to_owned())));
    }
}
