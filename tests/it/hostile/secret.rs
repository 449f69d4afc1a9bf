//! The secrets of the suite, and the search for them in everything that a run leaves.

use std::fmt::Write as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use crate::support::{World, files_below};

/// The lines of the second secret, a key, without its fences.
pub(super) const KEY_LINES: [&str; 2] =
    ["MIIEvgIBADANBgkqhkiG9w0BAQEFAbSD", "CKcwggSkAgEAAoIBAQC8VJTUt9Us8cKk"];

/// The canary: a valid part of a ref and of a file name, with characters that JSON and URLs escape.
pub(super) const CANARY: &str = "cnry\"7Qx+z&<k9>=\u{e9}-0123456789abc";

/// The key as a whole.
pub(super) fn key() -> String {
    format!("-----BEGIN KEY-----\n{}\n-----END KEY-----\n", KEY_LINES.join("\n"))
}

/// The forms in which a secret may show nowhere. Made here, not by the code under test.
pub(super) fn forms() -> Vec<Vec<u8>> {
    let mut forms: Vec<Vec<u8>> = Vec::new();
    for value in [CANARY, KEY_LINES[0], KEY_LINES[1]] {
        let json = serde_json::Value::from(value).to_string();
        let json = &json[1..json.len() - 1];
        let twice = serde_json::Value::from(json).to_string();
        let ascii: String = json
            .chars()
            .map(|c| if c.is_ascii() { c.to_string() } else { format!("\\u{:04x}", u32::from(c)) })
            .collect();
        let mut url = String::new();
        let mut hex = String::new();
        for b in value.bytes() {
            let plain = b.is_ascii_alphanumeric() || b"-._~".contains(&b);
            if plain {
                url.push(char::from(b));
            } else {
                write!(url, "%{b:02X}").unwrap();
            }
            write!(hex, "{b:02x}").unwrap();
        }
        forms.extend(
            [value, json, &twice[1..twice.len() - 1], &ascii, &url, &hex].map(|f| f.as_bytes().to_vec()),
        );
        forms.push(hex.to_uppercase().into_bytes());
        for offset in 0..3 {
            let padded = [&[0; 2][..offset], value.as_bytes()].concat();
            let (from, to) = ((8 * offset).div_ceil(6), 8 * padded.len() / 6);
            for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
                forms.push(engine.encode(&padded).as_bytes()[from..to].to_vec());
            }
        }
    }
    forms
}

/// The first form that is in `bytes`. Line breaks do not hide it.
pub(super) fn in_bytes(bytes: &[u8]) -> Option<String> {
    let joined: Vec<u8> = bytes.iter().copied().filter(|b| !matches!(b, b'\n' | b'\r')).collect();
    let found = forms().into_iter().find(|form| {
        memchr::memmem::find(bytes, form).is_some() || memchr::memmem::find(&joined, form).is_some()
    });
    found.map(|form| String::from_utf8_lossy(&form).into_owned())
}

/// Where a secret shows below the world: in a name, in a file, in an object of a repository.
pub(super) fn in_world(world: &World) -> Vec<String> {
    let mut found = Vec::new();
    for (path, bytes) in files_below(&world.path("")) {
        let name = path.strip_prefix(world.path("")).unwrap().as_os_str().as_encoded_bytes().to_vec();
        if in_bytes(&name).is_some() {
            found.push(format!("a secret is in the name {}", path.display()));
        }
        if let Some(form) = in_bytes(&bytes) {
            found.push(format!("a secret is in {} as {form}", path.display()));
        }
    }
    for repo in ["repo", "remote.git"] {
        let args = ["cat-file", "--batch-all-objects", "--batch"];
        let out = world.command("git", &args, &world.path(repo)).output().unwrap();
        assert!(out.status.success(), "{repo}: {}", String::from_utf8_lossy(&out.stderr));
        if let Some(form) = in_bytes(&out.stdout) {
            found.push(format!("a secret is in the objects of {repo} as {form}"));
        }
    }
    found
}

/// Whether a directory holds this text in any file.
pub(super) fn text_below(dir: &Path, text: &str) -> Option<String> {
    let files = files_below(dir);
    let hit = files.iter().find(|(_, bytes)| memchr::memmem::find(bytes, text.as_bytes()).is_some());
    hit.map(|(path, _)| path.display().to_string())
}

/// The search finds what it is for.
pub(super) fn prove() {
    let engine = base64::engine::general_purpose::STANDARD;
    for text in [
        format!("x{CANARY}x"),
        format!("{{\"a\":{}}}", serde_json::Value::from(CANARY)),
        engine.encode(format!("ab{CANARY}c")),
        "cnry%227Qx%2Bz%26%3Ck9%3E%3D%C3%A9-0123456789abc".to_owned(),
        KEY_LINES[1].to_owned(),
        KEY_LINES[0].replace("DAN", "\nDAN"),
    ] {
        assert!(in_bytes(text.as_bytes()).is_some(), "{text}");
    }
    assert_eq!(in_bytes(b"nothing of the kind, cnry 7Qx"), None);
}
