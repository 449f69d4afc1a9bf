//! The changes of the repository: the list, and the patch with its lines told apart.

use std::fmt::Write as _;

use super::escape;
use crate::report::run_dir::{Record, RunDir};

/// So much of a patch is read, in bytes.
const READ: u64 = 2 * 1024 * 1024;
/// So many lines of it are shown.
const LINES: usize = 6000;
/// Longer lines are cut, in bytes.
const LINE: usize = 1000;
/// So many paths are listed.
const PATHS: usize = 1000;
/// Files with at most so many lines are unfolded while the whole is not too long.
const OPEN: usize = 400;

/// The section.
pub(super) fn section(run: &RunDir, out: &mut String) {
    let empty = Record::default();
    let record = run.record.as_ref().unwrap_or(&empty);
    let patch = run.text("changes.patch", READ, 0);
    out.push_str("<section id=\"changes\"><h2>Changes</h2>");
    if record.changes.is_empty() && patch.is_none() {
        out.push_str("<p class=\"none\">The repository is as it was.</p></section>");
        return;
    }
    let fate = if record.applied { "Applied to the checkout." } else { "Not applied to the checkout." };
    let _ = write!(out, "<p>{} changed. {fate}</p>", many(record.changes.len(), "path"));
    match patch {
        Some((text, _, skipped)) => files(&text, skipped > 0, out),
        None => list(record, out),
    }
    out.push_str("</section>");
}

fn many(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn list(record: &Record, out: &mut String) {
    out.push_str("<ul class=\"plain\">");
    for change in record.changes.iter().take(PATHS) {
        let (kind, path) = (escape::short(&change.kind, 20), escape::short(&change.path, 400));
        let _ = write!(out, "<li><span class=\"kind\">{kind}</span> <code>{path}</code></li>");
    }
    out.push_str("</ul>");
    if record.changes.len() > PATHS {
        let _ = write!(out, "<p class=\"none\">… and {} more.</p>", record.changes.len() - PATHS);
    }
}

/// One file of a patch.
#[derive(Debug, Default)]
struct File<'a> {
    name: String,
    lines: Vec<&'a str>,
    added: usize,
    removed: usize,
}

/// Splits a patch of git. Only a line outside a hunk can begin a file: a changed line has its sign before it.
fn split(patch: &str) -> Vec<File<'_>> {
    let mut files: Vec<File<'_>> = Vec::new();
    let (mut old, mut new) = (0_u64, 0_u64);
    for line in patch.lines() {
        if let Some(names) = line.strip_prefix("diff --git ")
            && old == 0
            && new == 0
        {
            files.push(File { name: name(names), ..File::default() });
            continue;
        }
        let Some(file) = files.last_mut() else { continue };
        if old == 0 && new == 0 {
            if let Some((o, n)) = hunk(line) {
                (old, new) = (o, n);
            } else if let Some(path) = line.strip_prefix("+++ ").filter(|p| *p != "/dev/null") {
                path.strip_prefix("b/").unwrap_or(path).clone_into(&mut file.name);
            }
        } else {
            match line.as_bytes().first() {
                Some(b'+') => (new, file.added) = (new.saturating_sub(1), file.added + 1),
                Some(b'-') => (old, file.removed) = (old.saturating_sub(1), file.removed + 1),
                Some(b'\\') => {}
                _ => (old, new) = (old.saturating_sub(1), new.saturating_sub(1)),
            }
        }
        file.lines.push(line);
    }
    files
}

/// `a/x b/x`: the second name, where both are the same.
fn name(names: &str) -> String {
    let half = names.len() / 2;
    let second = names.get(half..).and_then(|s| s.trim_start().strip_prefix("b/"));
    second.unwrap_or(names).to_owned()
}

/// How many lines of the old and of the new file a hunk has.
fn hunk(line: &str) -> Option<(u64, u64)> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let count = |range: &str| range.split_once(',').map_or(Some(1), |(_, n)| n.parse().ok());
    Some((count(old)?, count(new)?))
}

/// Where the lines of a hunk begin in the old and in the new file.
fn starts(line: &str) -> Option<(u64, u64)> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let first = |range: &str| range.split([',', ' ']).next()?.parse().ok();
    Some((first(old)?, first(rest)?))
}

fn files(patch: &str, cut: bool, out: &mut String) {
    let files = split(patch);
    let mut left = LINES;
    for file in &files {
        let open = if file.lines.len() <= OPEN && left > LINES / 2 { " open" } else { "" };
        let _ = write!(
            out,
            "<details class=\"file\"{open}><summary><code>{}</code> <span class=\"stat\"><span class=\"add\">+{}</span> \
             <span class=\"del\">−{}</span></span></summary><div class=\"wide\"><table class=\"diff\">",
            escape::short(&file.name, 400),
            file.added,
            file.removed
        );
        let shown = file.lines.len().min(left);
        rows(&file.lines[..shown], out);
        left -= shown;
        out.push_str("</table></div>");
        if shown < file.lines.len() {
            let _ =
                write!(out, "<p class=\"none\">… and {} more.</p>", many(file.lines.len() - shown, "line"));
        }
        out.push_str("</details>");
    }
    if cut || left == 0 {
        out.push_str("<p class=\"none\">The whole is in <code>changes.patch</code>.</p>");
    }
}

fn rows(lines: &[&str], out: &mut String) {
    let (mut old, mut new, mut within) = (0_u64, 0_u64, false);
    for line in lines {
        if let Some((o, n)) = starts(line) {
            (old, new, within) = (o, n, true);
            let _ = write!(out, "<tr class=\"hunk\"><td><td><td>{}</tr>", escape::short(line, LINE));
            continue;
        }
        if !within {
            if !line.starts_with("--- ") && !line.starts_with("+++ ") && !line.starts_with("index ") {
                let _ = write!(out, "<tr class=\"head\"><td><td><td>{}</tr>", escape::short(line, LINE));
            }
            continue;
        }
        let text = escape::short(line.get(1..).unwrap_or_default(), LINE);
        let _ = match line.as_bytes().first() {
            Some(b'+') => {
                new += 1;
                write!(out, "<tr class=\"add\"><td><td>{}<td><span>+</span>{text}</tr>", new - 1)
            }
            Some(b'-') => {
                old += 1;
                write!(out, "<tr class=\"del\"><td>{}<td><td><span>−</span>{text}</tr>", old - 1)
            }
            Some(b'\\') => write!(out, "<tr class=\"head\"><td><td><td>{text}</tr>"),
            _ => {
                (old, new) = (old + 1, new + 1);
                write!(out, "<tr><td>{}<td>{}<td><span> </span>{text}</tr>", old - 1, new - 1)
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n a\n-diff --git a/y b/y\n+b\n+diff --git a/z b/z\ndiff --git a/new file b/new file\nnew file mode 100644\n--- /dev/null\n+++ b/new file\n@@ -0,0 +1 @@\n+<script>alert(1)</script>\n";

    #[test]
    fn files_are_told_apart_whatever_their_lines_say() {
        let files = split(PATCH);
        let seen: Vec<_> = files.iter().map(|f| (f.name.as_str(), f.added, f.removed)).collect();
        assert_eq!(seen, [("x", 2, 1), ("new file", 1, 0)]);
    }

    #[test]
    fn lines_have_numbers_and_no_markup() {
        let mut out = String::new();
        super::files(PATCH, false, &mut out);
        assert!(out.contains("<tr class=\"del\"><td>2<td><td><span>−</span>diff --git a/y b/y"));
        assert!(out.contains("<tr class=\"add\"><td><td>3<td><span>+</span>diff --git a/z b/z"));
        assert!(out.contains("&lt;script&gt;") && !out.contains("<script"));
    }

    #[test]
    fn a_long_patch_is_cut() {
        let mut patch = String::from("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -0,0 +1,9000 @@\n");
        for _ in 0..9000 {
            patch.push_str("+line\n");
        }
        let mut out = String::new();
        super::files(&patch, false, &mut out);
        assert!(out.contains("more.</p>") && out.matches("<tr").count() <= LINES);
    }
}
