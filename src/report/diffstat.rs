//! How much a patch changes, file by file, read from the patch itself (the format of `git diff`).

/// One file of a patch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileStat {
    /// The path as git prints it, in C quotes where it has to.
    pub path: String,
    /// Lines that are new.
    pub added: u64,
    /// Lines that are gone.
    pub removed: u64,
    /// Whether it is no text.
    pub binary: bool,
}

/// The files of a patch, in its order.
pub fn of(patch: &[u8]) -> Vec<FileStat> {
    let mut files: Vec<FileStat> = Vec::new();
    // What the hunk at hand still has to say of the old and of the new side; what a line begins with means
    // something only in there.
    let (mut old, mut new) = (0_u64, 0_u64);
    for line in patch.split(|b| *b == b'\n') {
        if old > 0 || new > 0 {
            let Some(file) = files.last_mut() else { break };
            match line.first() {
                Some(b'+') => {
                    file.added += 1;
                    new = new.saturating_sub(1);
                }
                Some(b'-') => {
                    file.removed += 1;
                    old = old.saturating_sub(1);
                }
                Some(b'\\') => {}
                _ => (old, new) = (old.saturating_sub(1), new.saturating_sub(1)),
            }
            continue;
        }
        let text = String::from_utf8_lossy(line);
        if let Some(names) = text.strip_prefix("diff --git ") {
            files.push(FileStat { path: same_name(names).to_owned(), ..FileStat::default() });
            continue;
        }
        let Some(file) = files.last_mut() else { continue };
        if let Some(name) = text.strip_prefix("+++ ").or_else(|| text.strip_prefix("--- ")) {
            // Git puts a tab behind a name with a space in it.
            let name = name.trim_end_matches('\t');
            if name != "/dev/null" {
                file.path = without_side(name);
            }
        } else if let Some(name) = text.strip_prefix("rename to ") {
            name.clone_into(&mut file.path);
        } else if text == "GIT binary patch" || text.starts_with("Binary files ") {
            file.binary = true;
        } else if let Some((o, n)) = hunk(&text) {
            (old, new) = (o, n);
        }
    }
    files
}

/// The numbers of lines in `@@ -a,b +c,d @@`.
fn hunk(line: &str) -> Option<(u64, u64)> {
    let mut words = line.strip_prefix("@@ ")?.split(' ');
    let count = |word: &str| match word.split_once(',') {
        Some((_, n)) => n.parse().ok(),
        None => Some(1),
    };
    let old = count(words.next()?.strip_prefix('-')?)?;
    let new = count(words.next()?.strip_prefix('+')?)?;
    Some((old, new))
}

/// The name in `a/NAME b/NAME`: a section without lines of text (a mode, a binary file) has both sides alike.
fn same_name(names: &str) -> &str {
    let half = names.len().saturating_sub(1) / 2;
    match names.get(half + 1..) {
        Some(second) if names.as_bytes().get(half) == Some(&b' ') => {
            second.strip_prefix("b/").unwrap_or(second)
        }
        _ => names,
    }
}

fn without_side(name: &str) -> String {
    for side in ["a/", "b/"] {
        if let Some(rest) = name.strip_prefix(side) {
            return rest.to_owned();
        }
        if let Some(rest) = name.strip_prefix('"').and_then(|n| n.strip_prefix(side)) {
            return format!("\"{rest}");
        }
    }
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stat(path: &str, added: u64, removed: u64, binary: bool) -> FileStat {
        FileStat { path: path.into(), added, removed, binary }
    }

    #[test]
    fn lines_are_counted_within_hunks_only() {
        let patch = "diff --git a/a b/a\nindex 1..2 100644\n--- a/a\n+++ b/a\n@@ -1,2 +1,3 @@ fn\n one\n--- two\n+++ two\n+@@ -9,9 +9,9 @@\n\
                     diff --git a/n w b/n w\nnew file mode 100644\n--- /dev/null\n+++ b/n w\t\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n\
                     diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\
                     diff --git a/run b/run\nold mode 100644\nnew mode 100755\n\
                     diff --git a/p b/q\nsimilarity index 100%\nrename from p\nrename to q\n\
                     diff --git a/b.bin b/b.bin\nindex 1..2\nGIT binary patch\nliteral 3\nKc$@\n\nliteral 0\nHcmV?d00001\n\n\
                     diff --git \"a/\\303\\251\" \"b/\\303\\251\"\n--- \"a/\\303\\251\"\n+++ \"b/\\303\\251\"\n@@ -1 +1 @@\n-x\n+y\n";
        assert_eq!(
            of(patch.as_bytes()),
            [
                stat("a", 2, 1, false),
                stat("n w", 1, 0, false),
                stat("gone", 0, 1, false),
                stat("run", 0, 0, false),
                stat("q", 0, 0, false),
                stat("b.bin", 0, 0, true),
                stat("\"\\303\\251\"", 1, 1, false),
            ]
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(patch in prop::collection::vec(any::<u8>(), 0..400)) {
            let mut text = b"diff --git a/x b/x\n@@ -1,9 +1,9 @@\n".to_vec();
            text.extend(&patch);
            prop_assert!(!of(&text).is_empty());
            let _ = of(&patch);
        }
    }
}
