//! The listing of a directory in the sandbox: the text that makes one, and the parser that believes little.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use super::limits::Limits;
use crate::error::{Code, Error, Result};
use crate::plan::repo::names;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link.
    Link,
    /// A FIFO, a socket or a device.
    Special,
}

/// A time as `find` prints it; only ever compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time {
    /// Seconds.
    pub sec: i64,
    /// Nanoseconds.
    pub nsec: u32,
}

/// One entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it is.
    pub kind: Type,
    /// In bytes, as the sandbox says.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// Last change of the content.
    pub mtime: Time,
    /// Last change of anything; cannot be set by `utimes`, so it catches an edit of equal size.
    pub ctime: Time,
    /// The target of a link, else empty.
    pub target: Vec<u8>,
}

impl Entry {
    /// Whether its owner may execute it.
    pub fn executable(&self) -> bool {
        self.mode & 0o100 != 0
    }
}

/// A directory of the sandbox: path to entry. Every parent of a path is in it, as a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing(pub BTreeMap<Vec<u8>, Entry>);

/// Ends a listing that is whole.
const END: &[u8] = b"end";
const FIELDS: usize = 7;

/// A shell command that prints the listing of `dir` on standard output. Needs GNU find; where that is
/// missing (busybox has no `-printf`) it fails with a status other than 0.
pub fn script(dir: &OsStr) -> OsString {
    let mut text = b"cd ".to_vec();
    text.extend(quoted(dir.as_bytes()));
    text.extend_from_slice(
        b" && LC_ALL=C find . -mindepth 1 -printf '%y\\0%s\\0%m\\0%T@\\0%C@\\0%l\\0%P\\0' && printf 'end\\0'",
    );
    OsString::from_vec(text)
}

/// A word for a POSIX shell, whatever its bytes.
fn quoted(word: &[u8]) -> Vec<u8> {
    let mut out = vec![b'\''];
    // A directory that begins with `-` would be an option of `cd`.
    if word.starts_with(b"-") {
        out.extend_from_slice(b"./");
    }
    for b in word {
        match b {
            b'\'' => out.extend_from_slice(b"'\\''"),
            b => out.push(*b),
        }
    }
    out.push(b'\'');
    out
}

impl Listing {
    /// Parses what [`script`] printed. Refuses anything that `find` could not have printed: a record that is
    /// cut off, a path that is not plain, a path twice, a parent that is missing or no directory.
    ///
    /// # Errors
    /// [`Code::ImportBlocked`] for a text that is not a listing or is over a budget.
    pub fn parse(text: &[u8], limits: &Limits) -> Result<Self> {
        if text.len() > limits.listing_bytes {
            return Err(refused(format!("it has more than {} bytes", limits.listing_bytes)));
        }
        let mut fields = text.split(|b| *b == 0);
        let mut entries = BTreeMap::new();
        loop {
            let Some(first) = fields.next() else { return Err(refused("it is cut off")) };
            if first == END && fields.next() == Some(b"") && fields.next().is_none() {
                break;
            }
            let mut record = [first, b"", b"", b"", b"", b"", b""];
            for field in &mut record[1..FIELDS] {
                *field = fields.next().ok_or_else(|| refused("it is cut off"))?;
            }
            let (path, entry) = parse_record(&record, limits)
                .map_err(|why| refused(format!("record {}: {why}", entries.len() + 1)))?;
            if entries.len() >= limits.listing_entries {
                return Err(refused(format!("it has more than {} entries", limits.listing_entries)));
            }
            if entries.insert(path, entry).is_some() {
                return Err(refused(format!("`{}` is in it twice", names::shown(record[6]))));
            }
        }
        for path in entries.keys() {
            if let Some(parent) = names::parent(path)
                && entries.get(parent).is_none_or(|p: &Entry| p.kind != Type::Dir)
            {
                return Err(refused(format!("`{}` lies in no listed directory", names::shown(path))));
            }
        }
        Ok(Self(entries))
    }

    /// The entry of a path.
    pub fn get(&self, path: &[u8]) -> Option<&Entry> {
        self.0.get(path)
    }
}

fn refused(why: impl std::fmt::Display) -> Error {
    Error::new(Code::ImportBlocked, format!("the file listing from the sandbox is not acceptable: {why}"))
}

fn parse_record(record: &[&[u8]; FIELDS], limits: &Limits) -> Result<(Vec<u8>, Entry), String> {
    let [kind, size, mode, mtime, ctime, target, path] = record;
    let kind = match *kind {
        b"f" => Type::File,
        b"d" => Type::Dir,
        b"l" => Type::Link,
        b"p" | b"s" | b"c" | b"b" | b"D" => Type::Special,
        _ => return Err("an unknown type".to_owned()),
    };
    names::check_form(path).map_err(|e| format!("{e}: `{}`", names::shown(path)))?;
    if names::ancestors(path).count() >= limits.depth {
        return Err(format!("more than {} levels deep", limits.depth));
    }
    if (kind == Type::Link) == target.is_empty() || target.len() > names::MAX_PATH + 596 {
        return Err("a link without a target, or a target without a link".to_owned());
    }
    let entry = Entry {
        kind,
        size: number(size, 10, 20).ok_or("a size that is no number")?,
        mode: number(mode, 8, 4).and_then(|m| u32::try_from(m).ok()).ok_or("a mode that is no mode")?,
        mtime: time(mtime).ok_or("a time that is no time")?,
        ctime: time(ctime).ok_or("a time that is no time")?,
        target: target.to_vec(),
    };
    Ok((path.to_vec(), entry))
}

fn number(text: &[u8], radix: u32, most: usize) -> Option<u64> {
    if text.is_empty() || text.len() > most || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(text).ok()?, radix).ok()
}

/// `1700000000.1234567890`: seconds, and at least nine digits of a fraction (GNU find prints ten).
fn time(text: &[u8]) -> Option<Time> {
    let text = std::str::from_utf8(text).ok()?;
    let (sec, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |s: &str| !s.is_empty() && s.len() <= 19 && s.bytes().all(|b| b.is_ascii_digit());
    if !digits(sec.strip_prefix('-').unwrap_or(sec)) || !digits(fraction) {
        return None;
    }
    let nsec = format!("{fraction:0<9}")[..9].parse().ok()?;
    Some(Time { sec: sec.parse().ok()?, nsec })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(kind: &str, target: &[u8], path: &[u8]) -> Vec<u8> {
        let mut out =
            format!("{kind}\x003\x00644\x001700000000.1234567890\x001700000001.0000000000\x00").into_bytes();
        out.extend_from_slice(target);
        out.push(0);
        out.extend_from_slice(path);
        out.push(0);
        out
    }

    fn parse(records: &[Vec<u8>]) -> Result<Listing> {
        let mut text = records.concat();
        text.extend_from_slice(b"end\0");
        Listing::parse(&text, &Limits::default())
    }

    #[test]
    fn a_good_listing_is_read() {
        let l = parse(&[record("d", b"", b"a"), record("f", b"", b"a/b\nc"), record("l", b"../x", b"l")])
            .unwrap();
        let file = l.get(b"a/b\nc").unwrap();
        assert_eq!(
            (file.size, file.mode, file.mtime),
            (3, 0o644, Time { sec: 1_700_000_000, nsec: 123_456_789 })
        );
        assert_eq!(l.get(b"l").unwrap().target, b"../x");
        assert_eq!(parse(&[]).unwrap(), Listing::default());
        // A file may be called like the end mark.
        assert!(parse(&[record("f", b"", b"end")]).unwrap().get(b"end").is_some());
    }

    #[test]
    fn hostile_records_are_refused() {
        let bad: &[&[Vec<u8>]] = &[
            &[record("f", b"", b"/etc/passwd")],
            &[record("f", b"", b"../x")],
            &[record("f", b"", b"a/./b")],
            &[record("f", b"", b"")],
            &[record("q", b"", b"a")],
            &[record("f", b"x", b"a")],
            &[record("l", b"", b"a")],
            &[record("f", b"", b"a"), record("f", b"", b"a")],
            &[record("f", b"", b"no/parent")],
            &[record("f", b"", b"a"), record("f", b"", b"a/b")],
            &[record("l", b"x", b"a"), record("f", b"", b"a/b")],
            &[b"f\0-1\x00644\x001.0\x001.0\0\0a\0".to_vec()],
            &[b"f\x001\x009999\x001.0\x001.0\0\0a\0".to_vec()],
            &[b"f\x001\x00644\x001,5\x001.0\0\0a\0".to_vec()],
            &[b"f\x001\x00644\x00\x001.0\0\0a\0".to_vec()],
            &[b"f\x001\x00644".to_vec()],
        ];
        for records in bad {
            let error = parse(records).expect_err(&format!("{records:?}"));
            assert_eq!(error.code(), Code::ImportBlocked);
        }
    }

    #[test]
    fn a_cut_listing_is_refused_wherever_it_is_cut() {
        let mut text = [record("d", b"", b"a"), record("f", b"", b"a/b")].concat();
        text.extend_from_slice(b"end\0");
        for cut in 0..text.len() {
            assert!(Listing::parse(&text[..cut], &Limits::default()).is_err(), "{cut}");
        }
    }

    #[test]
    fn budgets_hold() {
        let small = Limits { listing_entries: 1, ..Limits::default() };
        let text = [record("f", b"", b"a"), record("f", b"", b"b"), b"end\0".to_vec()].concat();
        assert!(Listing::parse(&text, &small).is_err());
        assert!(Listing::parse(&text, &Limits { listing_bytes: 10, ..Limits::default() }).is_err());
        let deep: Vec<_> = (1..200).map(|n| record("d", b"", &b"a/".repeat(n)[..2 * n - 1])).collect();
        assert!(parse(&deep).is_err());
    }

    #[test]
    fn the_real_find_prints_what_the_parser_reads() {
        let dir = tempfile::tempdir().unwrap();
        let odd = dir.path().join("-it's $(x) \"q\"");
        std::fs::create_dir_all(odd.join("d e")).unwrap();
        std::fs::write(odd.join(OsStr::from_bytes(b"d e/n\nl\xff")), "abc").unwrap();
        std::os::unix::fs::symlink("nowhere", odd.join("l")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, odd.join("fifo"), rustix::fs::Mode::RWXU).unwrap();
        for (cwd, arg) in
            [(dir.path(), odd.file_name().unwrap()), (std::path::Path::new("/"), odd.as_os_str())]
        {
            let out = std::process::Command::new("sh")
                .arg("-c")
                .arg(script(arg))
                .current_dir(cwd)
                .output()
                .unwrap();
            assert!(out.status.success(), "{out:?}");
            let l = Listing::parse(&out.stdout, &Limits::default()).unwrap();
            assert_eq!(l.0.len(), 4);
            assert_eq!(l.get(b"d e/n\nl\xff").unwrap().size, 3);
            assert_eq!(l.get(b"fifo").unwrap().kind, Type::Special);
            assert_eq!(l.get(b"l").unwrap().target, b"nowhere");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(text in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Listing::parse(&text, &Limits::default());
        }

        /// Whatever mutation of a good listing is accepted keeps the promises of the type.
        #[test]
        fn accepted_listings_are_closed_and_plain(at in 0usize..400, byte in any::<u8>()) {
            let mut text = [record("d", b"", b"a"), record("f", b"", b"a/b"), record("d", b"", b"a/c"),
                record("l", b"../..", b"a/c/d"), b"end\0".to_vec()].concat();
            let at = at % text.len();
            text[at] = byte;
            if let Ok(listing) = Listing::parse(&text, &Limits::default()) {
                for path in listing.0.keys() {
                    prop_assert!(names::check_form(path).is_ok());
                    for dir in names::ancestors(path) {
                        prop_assert_eq!(listing.get(dir).map(|e| e.kind), Some(Type::Dir));
                    }
                }
            }
        }
    }
}
