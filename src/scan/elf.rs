//! What a Linux executable needs of the machine that runs it.

/// An executable as its headers describe it (System V ABI, `elf(5)`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Elf {
    /// The machine as `uname -m` names it.
    pub(crate) machine: &'static str,
    /// The dynamic loader; nothing for a static executable.
    pub(crate) loader: Option<String>,
    /// The newest version of the GNU C library that it asks for, e.g. `2.34`.
    pub(crate) glibc: Option<String>,
}

/// How much of a file is looked through for versions of the C library: they stand in the dynamic strings, near the
/// beginning.
const HEAD: usize = 4 * 1024 * 1024;

/// Reads the headers. The error says why it cannot be an executable for a sandbox.
pub(crate) fn parse(bytes: &[u8]) -> Result<Elf, String> {
    if bytes.get(..4) != Some(b"\x7fELF") {
        return Err("it is no Linux executable".to_owned());
    }
    if (bytes.get(4), bytes.get(5)) != (Some(&2), Some(&1)) {
        return Err("it is not for a 64-bit little-endian machine".to_owned());
    }
    let half =
        |at: usize| -> Option<u16> { Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)) };
    let long = |at: usize| -> Option<usize> {
        usize::try_from(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?)).ok()
    };
    let machine = match half(18) {
        Some(62) => "x86_64",
        Some(183) => "aarch64",
        other => return Err(format!("it is for a machine that is not known here ({})", other.unwrap_or(0))),
    };
    let table = long(32).ok_or("it is cut short")?;
    let (size, count) = (usize::from(half(54).unwrap_or(0)), usize::from(half(56).unwrap_or(0)));
    let mut loader = None;
    for n in 0..count.min(64) {
        let Some(at) = n.checked_mul(size).and_then(|o| table.checked_add(o)) else { break };
        let Some(kind) = bytes.get(at..at.saturating_add(4)) else { break };
        // PT_INTERP
        if kind == [3, 0, 0, 0]
            && let (Some(offset), Some(length)) = (long(at + 8), long(at + 32))
            && let Some(text) = offset.checked_add(length.min(4096)).and_then(|end| bytes.get(offset..end))
        {
            let text = text.split(|b| *b == 0).next().unwrap_or_default();
            loader = Some(String::from_utf8_lossy(text).into_owned());
        }
    }
    let glibc = loader.is_some().then(|| newest_glibc(&bytes[..bytes.len().min(HEAD)])).flatten();
    Ok(Elf { machine, loader, glibc })
}

fn newest_glibc(bytes: &[u8]) -> Option<String> {
    let finder = memchr::memmem::Finder::new(b"GLIBC_2.");
    let minor = finder.find_iter(bytes).filter_map(|at| {
        let digits = bytes[at + 8..].iter().take(3).take_while(|b| b.is_ascii_digit());
        String::from_utf8(digits.copied().collect()).ok()?.parse::<u32>().ok()
    });
    minor.max().map(|minor| format!("2.{minor}"))
}

/// Why the executable cannot run where `machine` and `glibc` are what the sandbox says; nothing when it can, or when
/// nothing speaks against it.
pub(crate) fn misfit(elf: &Elf, machine: &str, glibc: Option<&str>, has_loader: bool) -> Option<String> {
    let same = |m: &str| match m {
        "arm64" => "aarch64",
        "amd64" => "x86_64",
        _ if m == elf.machine => elf.machine,
        _ => "",
    };
    if !machine.is_empty() && same(machine) != elf.machine {
        return Some(format!("it is for {}, the sandbox is {machine}", elf.machine));
    }
    if let (Some(loader), false) = (&elf.loader, has_loader) {
        return Some(format!("it needs {loader}, which the image lacks"));
    }
    let minor = |v: &str| v.split('.').nth(1).and_then(|m| m.parse::<u32>().ok());
    if let (Some(needs), Some(has)) = (elf.glibc.as_deref(), glibc)
        && minor(needs) > minor(has)
    {
        return Some(format!("it needs glibc {needs}, the image has {has}"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_describes_this_machine() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let elf = parse(&bytes).unwrap();
        assert_eq!(elf.machine, std::env::consts::ARCH);
        if let Some(loader) = &elf.loader {
            assert!(std::path::Path::new(loader).exists(), "{loader}");
        }
        assert_eq!(misfit(&elf, std::env::consts::ARCH, None, true), None);
    }

    #[test]
    fn a_misfit_is_named() {
        let elf = Elf {
            machine: "x86_64",
            loader: Some("/lib64/ld-linux-x86-64.so.2".into()),
            glibc: Some("2.39".into()),
        };
        assert!(misfit(&elf, "aarch64", None, true).unwrap().contains("the sandbox is aarch64"));
        assert!(misfit(&elf, "arm64", None, true).is_some());
        assert!(misfit(&elf, "x86_64", None, false).unwrap().contains("ld-linux"));
        assert!(misfit(&elf, "x86_64", Some("2.36"), true).unwrap().contains("2.36"));
        assert_eq!(misfit(&elf, "amd64", Some("2.41"), true), None);
    }

    #[test]
    fn what_is_no_executable_is_refused() {
        for bytes in [&b""[..], b"#!/bin/sh", b"\x7fELF", b"\x7fELF\x01\x01", &[0x7f; 64]] {
            assert!(parse(bytes).is_err());
        }
        let mut odd = vec![0; 64];
        odd[..6].copy_from_slice(b"\x7fELF\x02\x01");
        odd[18] = 62;
        odd[32..40].copy_from_slice(&[0xff; 8]);
        odd[54] = 56;
        odd[56] = 255;
        let _ = parse(&odd);
    }
}
