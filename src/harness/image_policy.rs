//! `image_policy` of `config.yaml`: what an image has to show before a sandbox is made of it.

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;

use super::check::normal;
use super::keys::{Level, nearest};
use super::reader::{Fields, Reader, Text};
use crate::error::{Code, Error, Result};

/// What an image has to show.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ImagePolicy {
    /// Whether the reference has to name the image by its digest.
    pub digest: bool,
    /// Whether it has to be signed. A signature belongs to a digest, so that asking for one asks for the other.
    pub signature: Signature,
    /// Whose signature counts; one of them is enough.
    pub signers: Vec<Signer>,
}

/// Whether an image has to be signed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signature {
    /// Nothing is asked.
    #[default]
    None,
    /// Checked where `cosign` is installed, else a warning.
    IfAvailable,
    /// Checked, or the run does not start.
    Required,
}

/// Who may have signed an image, in the terms of Sigstore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Signer {
    /// A certificate with exactly this identity, from this issuer.
    Identity {
        /// The subject, e.g. the URL of a workflow file with its ref.
        identity: String,
        /// The issuer, by `OpenID` Connect.
        issuer: String,
    },
    /// A certificate whose whole identity matches.
    Pattern {
        /// A regular expression in Go's syntax, from `^` to `$`.
        identity_regexp: String,
        /// The issuer, by `OpenID` Connect.
        issuer: String,
    },
    /// A public key: a file, or the URI of a key management service.
    Key(Utf8PathBuf),
}

impl ImagePolicy {
    /// Whether nothing is asked.
    pub fn is_none(&self) -> bool {
        !self.digest && self.signature == Signature::None
    }

    /// The policy of a run with `--verify-image`.
    ///
    /// # Errors
    /// [`Code::Value`] when nothing says whose signature counts.
    pub fn strict(mut self) -> Result<Self> {
        if self.signers.is_empty() {
            return Err(Error::new(Code::Value, "nothing says whose signature --verify-image is to accept")
                .help("add `image_policy: {signers: [{identity: …, issuer: …}]}` to config.yaml of the harness directory"));
        }
        (self.digest, self.signature) = (true, Signature::Required);
        Ok(self)
    }

    /// Refuses an image that is not named by its digest where that is asked.
    pub fn check_digest(&self, image: Option<&str>) -> Result<()> {
        if self.is_none() || image.is_some_and(has_digest) {
            return Ok(());
        }
        let message = match image {
            Some(image) => format!("the image {image} is not named by its digest"),
            None => "the harness names no image, so that the gateway would choose one".to_owned(),
        };
        Err(Error::new(Code::ImageUnpinned, message).help(
            "write REGISTRY/IMAGE@sha256:…; `docker buildx imagetools inspect IMAGE` prints the digest of a tag",
        ))
    }
}

/// Whether a reference ends in `@sha256:` and 64 hexadecimal digits.
pub fn has_digest(image: &str) -> bool {
    let Some((name, digest)) = image.rsplit_once("@sha256:") else { return false };
    !name.is_empty() && digest.len() == 64 && digest.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Reads the section from the configuration of `dir`.
pub(super) fn read(reader: &mut Reader<'_>, top: &mut Fields, dir: &Utf8Path) -> ImagePolicy {
    let mut policy = ImagePolicy::default();
    let Some(mut fields) = reader.section(top, "image_policy") else { return policy };
    let span = fields.span.clone();
    if let Some(text) = reader.text_not_empty(&mut fields, "digest") {
        policy.digest = choose(reader, "digest", &text, &[("required", true), ("optional", false)]);
    }
    if let Some(text) = reader.text_not_empty(&mut fields, "signature") {
        policy.signature = choose(
            reader,
            "signature",
            &text,
            &[
                ("required", Signature::Required),
                ("if-available", Signature::IfAvailable),
                ("none", Signature::None),
            ],
        );
    }
    let said = fields.has("signers");
    for item in reader.list(&mut fields, "signers") {
        if let Some(entry) = reader.item_fields("signers", item) {
            policy.signers.extend(signer(reader, entry, dir));
        }
    }
    if policy.signature != Signature::None && !said {
        let help = "add `signers:` with entries `{identity, issuer}` or `{key}`";
        reader.error(Code::Required, &span, "`image_policy` asks for a signature, but not for whose", help);
    }
    reader.finish(fields, Level::ImagePolicy);
    policy
}

fn choose<T: Copy + Default>(reader: &mut Reader<'_>, key: &str, text: &Text, among: &[(&str, T)]) -> T {
    if let Some((_, value)) = among.iter().find(|(name, _)| *name == text.text) {
        return *value;
    }
    let names: Vec<_> = among.iter().map(|(name, _)| *name).collect();
    let help = match nearest(&text.text, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("write one of {}", names.join(", ")),
    };
    let message = format!("`{}` is not a value of `image_policy.{key}`", text.text.escape_debug());
    reader.error(Code::Value, &text.span, message, help);
    T::default()
}

fn signer(reader: &mut Reader<'_>, mut fields: Fields, dir: &Utf8Path) -> Option<Signer> {
    let span = fields.span.clone();
    let identity = reader.text_not_empty(&mut fields, "identity");
    let pattern = reader.text_not_empty(&mut fields, "identity_regexp");
    let issuer = reader.text_not_empty(&mut fields, "issuer");
    let key = reader.text_not_empty(&mut fields, "key");
    reader.finish(fields, Level::ImageSigner);
    match (identity, pattern, issuer, key) {
        (Some(identity), None, Some(issuer), None) => {
            Some(Signer::Identity { identity: identity.text, issuer: issuer.text })
        }
        (None, Some(pattern), Some(issuer), None) => {
            // Sigstore's match is not anchored: `https://github.com/acme` is also the beginning of
            // `https://github.com/acme-elsewhere/…`.
            if !(pattern.text.starts_with('^') && pattern.text.ends_with('$')) {
                let message = "`identity_regexp` does not say what the whole identity is";
                let help = "begin it with `^` and end it with `$`";
                reader.error(Code::Value, &pattern.span, message, help);
            }
            Some(Signer::Pattern { identity_regexp: pattern.text, issuer: issuer.text })
        }
        (None, None, None, Some(key)) => key_path(reader, &key, dir).map(Signer::Key),
        (Some(_), None, None, None) | (None, Some(_), None, None) => {
            reader.required(&span, "issuer", "an entry of `signers`");
            None
        }
        _ => {
            let help = "write `{identity, issuer}`, `{identity_regexp, issuer}` or `{key}`";
            reader.error(Code::Value, &span, "an entry of `signers` names not exactly one signer", help);
            None
        }
    }
}

/// A key of a key management service is an URI; any other is a file of the harness directory.
fn key_path(reader: &mut Reader<'_>, key: &Text, dir: &Utf8Path) -> Option<Utf8PathBuf> {
    if key.text.contains("://") {
        return Some(Utf8PathBuf::from(&key.text));
    }
    let Some(path) = normal(&key.text) else {
        let message = format!("`{}` leads outside the harness directory", key.text.escape_debug());
        reader.error(Code::PathEscape, &key.span, message, "put the public key beside config.yaml");
        return None;
    };
    let path = dir.join(path);
    if !path.is_file() {
        let message = format!("the public key {} does not exist", key.text);
        reader.error(Code::FileMissing, &key.span, message, "paths are relative to the harness directory");
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_sha256_and_64_lower_case_digits() {
        let digits = "0123456789abcdef".repeat(4);
        assert!(has_digest(&format!("r.test/a@sha256:{digits}")));
        assert!(has_digest(&format!("r.test/a:1.0@sha256:{digits}")));
        for bad in [
            "r.test/a:1.0".to_owned(),
            format!("@sha256:{digits}"),
            format!("r.test/a@sha256:{}", &digits[1..]),
            format!("r.test/a@sha256:{}", digits.to_uppercase()),
            format!("r.test/a@sha512:{digits}{digits}"),
            format!("r.test/a@sha256:{digits} "),
        ] {
            assert!(!has_digest(&bad), "{bad}");
        }
    }

    #[test]
    fn what_is_asked_of_a_reference() {
        let pinned = format!("r.test/a@sha256:{}", "0".repeat(64));
        let open = ImagePolicy::default();
        assert!(open.check_digest(None).is_ok() && open.check_digest(Some("a:1")).is_ok());
        // A signature belongs to a digest.
        for policy in [
            ImagePolicy { digest: true, ..ImagePolicy::default() },
            ImagePolicy { signature: Signature::IfAvailable, ..ImagePolicy::default() },
        ] {
            assert!(policy.check_digest(Some(&pinned)).is_ok());
            for image in [Some("r.test/a:1"), None] {
                assert_eq!(policy.check_digest(image).unwrap_err().code(), Code::ImageUnpinned);
            }
        }
        assert_eq!(open.strict().unwrap_err().code(), Code::Value);
    }
}
