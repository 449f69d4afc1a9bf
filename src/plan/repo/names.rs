//! Paths inside a repository: byte strings that no one has promised anything about.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The longest path that is taken, in bytes (`PATH_MAX` of Linux less room for the directory before it).
pub const MAX_PATH: usize = 3500;
/// The longest name in a path, in bytes (`NAME_MAX`).
pub const MAX_NAME: usize = 255;

/// Bytes as a path of the system.
pub fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// A path of the system as bytes.
pub fn as_bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// `path` for a message: one line, no control or direction-changing characters, invalid bytes as `\xNN`.
pub fn shown(path: &[u8]) -> String {
    let mut out = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        for c in chunk.valid().chars() {
            let unsafe_to_show = c.is_control()
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}');
            match c {
                '\\' => out.push_str("\\\\"),
                c if unsafe_to_show => out.extend(c.escape_default()),
                c => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

/// Up to ten paths for a message, one a line, and how many more there are.
pub fn shown_list<'a>(paths: impl IntoIterator<Item = &'a [u8]>) -> String {
    let all: Vec<_> = paths.into_iter().collect();
    let mut lines: Vec<String> = all.iter().take(10).map(|p| shown(p)).collect();
    if all.len() > 10 {
        lines.push(format!("… and {} more", all.len() - 10));
    }
    lines.join("\n")
}

/// The path of the directory that holds `path`; `None` at the top.
pub fn parent(path: &[u8]) -> Option<&[u8]> {
    path.iter().rposition(|b| *b == b'/').map(|at| &path[..at])
}

/// Every directory above `path`, nearest first.
pub fn ancestors(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(parent(path), |p| parent(p))
}

/// Whether `path` lies below `dir`.
pub fn is_below(path: &[u8], dir: &[u8]) -> bool {
    path.len() > dir.len() && path.starts_with(dir) && path[dir.len()] == b'/'
}

/// Whether some file system would take `name` for `.git`: any case, code points that HFS+ ignores, and the
/// forms of NTFS (`git~1`, trailing dots and spaces, a stream suffix). These are the rules of git's
/// `core.protectHFS` and `core.protectNTFS` (CVE-2014-9390, CVE-2019-1352).
pub fn is_dot_git(name: &[u8]) -> bool {
    if name.eq_ignore_ascii_case(b".git") {
        return true;
    }
    // NTFS takes a backslash for a separator.
    name.split(|b| *b == b'\\').any(|part| is_ntfs_dot_git(part) || is_hfs_dot_git(part))
}

fn is_ntfs_dot_git(name: &[u8]) -> bool {
    let before_stream = name.split(|b| *b == b':').next().unwrap_or_default();
    let end = before_stream.iter().rposition(|b| !matches!(b, b'.' | b' ')).map_or(0, |at| at + 1);
    let name = &before_stream[..end];
    name.eq_ignore_ascii_case(b".git") || name.eq_ignore_ascii_case(b"git~1")
}

fn is_hfs_dot_git(name: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(name) else { return false };
    let ignored = |c: char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    text.chars().filter(|c| !ignored(*c)).flat_map(char::to_lowercase).eq(".git".chars())
}

/// Why a path from outside is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadPath {
    /// No bytes at all.
    #[error("an empty path")]
    Empty,
    /// It starts at the root.
    #[error("an absolute path")]
    Absolute,
    /// A `.`, `..` or empty component.
    #[error("a path that is not in its simplest form")]
    NotPlain,
    /// Longer than [`MAX_PATH`] or a name longer than [`MAX_NAME`].
    #[error("a path that is too long")]
    TooLong,
    /// A NUL byte.
    #[error("a NUL byte in a path")]
    Nul,
    /// A component that a file system takes for `.git`.
    #[error("a name that stands for .git")]
    DotGit,
}

/// Checks the form of a relative path.
pub fn check_form(path: &[u8]) -> Result<(), BadPath> {
    if path.is_empty() {
        return Err(BadPath::Empty);
    }
    if path[0] == b'/' {
        return Err(BadPath::Absolute);
    }
    if path.len() > MAX_PATH {
        return Err(BadPath::TooLong);
    }
    if path.contains(&0) {
        return Err(BadPath::Nul);
    }
    for name in path.split(|b| *b == b'/') {
        match name {
            b"" | b"." | b".." => return Err(BadPath::NotPlain),
            _ if name.len() > MAX_NAME => return Err(BadPath::TooLong),
            _ => {}
        }
    }
    Ok(())
}

/// Checks a path of the working tree: its form, and that no component stands for `.git`.
pub fn check(path: &[u8]) -> Result<(), BadPath> {
    check_form(path)?;
    if path.split(|b| *b == b'/').any(is_dot_git) { Err(BadPath::DotGit) } else { Ok(()) }
}

/// `path` as a file system that ignores case and form would compare it (ASCII and simple Unicode folding;
/// trailing dots and spaces of a name do not count).
pub fn folded(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    for (n, name) in path.split(|b| *b == b'/').enumerate() {
        if n > 0 {
            out.push(b'/');
        }
        let end = name.iter().rposition(|b| !matches!(b, b'.' | b' ')).map_or(name.len(), |at| at + 1);
        match std::str::from_utf8(&name[..end]) {
            Ok(text) => out.extend(text.chars().flat_map(char::to_lowercase).collect::<String>().bytes()),
            Err(_) => out.extend(name[..end].to_ascii_lowercase()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_spelling_of_dot_git_is_known() {
        for name in [
            ".git",
            ".GIT",
            ".Git",
            ".git.",
            ".git ",
            ".git . .",
            "git~1",
            "GIT~1",
            "git~1.",
            ".git::$INDEX_ALLOCATION",
            ".git:x",
            ".g\u{200c}it",
            "\u{feff}.GIT",
            ".gi\u{202e}t",
            "a\\.git",
            ".git\\config",
            "x\\GIT~1\\y",
        ] {
            assert!(is_dot_git(name.as_bytes()), "{name:?}");
        }
        for name in [
            ".gitignore",
            ".github",
            "git",
            "git~2",
            ".git2",
            "..git",
            ". git",
            "x.git",
            ".gitmodules",
            "\u{ff}",
        ] {
            assert!(!is_dot_git(name.as_bytes()), "{name:?}");
        }
        assert!(!is_dot_git(b".g\xffit"));
    }

    #[test]
    fn odd_but_harmless_paths_pass() {
        for path in
            [&b"a"[..], b"a b/c\nd", b"-rf", b"..;x/y", b"\xff\xfe", b"x /y.", b"...", b"a\\b", b"\x1b[31m"]
        {
            assert_eq!(check(path), Ok(()), "{}", shown(path));
        }
    }

    #[test]
    fn hostile_paths_are_refused() {
        let long = vec![b'x'; 256];
        let cases: &[(&[u8], BadPath)] = &[
            (b"", BadPath::Empty),
            (b"/etc/passwd", BadPath::Absolute),
            (b"a/../b", BadPath::NotPlain),
            (b"..", BadPath::NotPlain),
            (b"./a", BadPath::NotPlain),
            (b"a//b", BadPath::NotPlain),
            (b"a/", BadPath::NotPlain),
            (b"a\0b", BadPath::Nul),
            (&long, BadPath::TooLong),
            (b"sub/.git/config", BadPath::DotGit),
            (b".GIT/config", BadPath::DotGit),
        ];
        for (path, why) in cases {
            assert_eq!(check(path), Err(*why), "{}", shown(path));
        }
        assert_eq!(check(&b"a/".repeat(2000)[..3999]), Err(BadPath::TooLong));
    }

    #[test]
    fn shown_is_one_safe_line() {
        assert_eq!(shown(b"a\nb\x1b[0m\xff \\"), "a\\nb\\u{1b}[0m\\xff \\\\");
        assert_eq!(shown("\u{202e}é".as_bytes()), "\\u{202e}é");
    }

    #[test]
    fn folding_finds_twins() {
        assert_eq!(folded("Dir/ÄB. ".as_bytes()), folded("dir/äb".as_bytes()));
        assert_ne!(folded(b"a/b"), folded(b"a/c"));
        assert_ne!(folded(b"..."), folded(b"a"));
    }

    proptest! {
        /// The check agrees with the standard library's reading of a path.
        #[test]
        fn accepted_paths_have_only_normal_components(path in "[a./\\\\ gitGIT~1:]{0,24}") {
            let bytes = path.as_bytes();
            if check(bytes).is_ok() {
                let components: Vec<_> = as_path(bytes).components().collect();
                prop_assert!(components.iter().all(|c| matches!(c, std::path::Component::Normal(_))));
                let joined: Vec<_> = components.iter().map(|c| as_bytes(c.as_ref()).to_vec()).collect();
                prop_assert_eq!(joined.join(&b'/'), bytes.to_vec());
            }
        }

        #[test]
        fn shown_never_holds_control_characters(path in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert!(!shown(&path).chars().any(char::is_control));
        }

        #[test]
        fn ancestors_are_above(path in "[ab/]{1,20}") {
            for dir in ancestors(path.as_bytes()) {
                prop_assert!(is_below(path.as_bytes(), dir));
            }
        }
    }
}
