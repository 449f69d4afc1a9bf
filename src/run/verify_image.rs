//! Is the image the one that was meant? Its signature is checked with `cosign`, before anything is created of it.

use std::fmt::Write as _;
use std::time::Duration;

use super::options::Options;
use crate::error::{Code, Error, Result};
use crate::harness::Loaded;
use crate::harness::image_policy::{ImagePolicy, Signature, Signer};
use crate::process::{Command, Failure, locate};

/// How long one check may take: it asks the registry, and at the first time also Sigstore's roots.
const LIMIT: Duration = Duration::from_mins(1);

/// What `--verify-image` and the configuration ask of the image of this run.
///
/// # Errors
/// [`Code::ImageUnpinned`] for an image that is not named by its digest.
pub(super) fn policy(options: &Options, loaded: &Loaded) -> Result<ImagePolicy> {
    let policy = loaded.image_policy.clone();
    let policy = if options.verify_image { policy.strict()? } else { policy };
    if options.is_local() {
        // No image is used there, and the run says so.
        return Ok(ImagePolicy::default());
    }
    policy.check_digest(loaded.harness.image.as_deref())?;
    Ok(policy)
}

/// What the check found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Checked {
    /// Nothing was asked.
    NotAsked,
    /// The image is signed by this signer.
    Signed(String),
    /// There is no `cosign`, and the policy allows for that.
    NoCosign,
}

/// Checks the signature that the policy asks for.
///
/// # Errors
/// [`Code::ImageUnverified`] when no accepted signer signed the image, [`Code::ToolMissing`] when `cosign` is needed
/// and missing.
pub(super) async fn check(policy: &ImagePolicy, image: Option<&str>) -> Result<Checked> {
    let (Some(image), true) = (image, policy.signature != Signature::None) else {
        return Ok(Checked::NotAsked);
    };
    let cosign = match locate("cosign", "install cosign: the image policy asks for a signature") {
        Ok(cosign) => cosign,
        Err(_) if policy.signature == Signature::IfAvailable => return Ok(Checked::NoCosign),
        Err(error) => return Err(error),
    };
    let mut refusals = String::new();
    for signer in &policy.signers {
        match Command::new("cosign verify", cosign.clone())
            .args(arguments(signer, image))
            .deadline(LIMIT)
            .output()
            .await
        {
            Ok(output) if output.status.success() => return Ok(Checked::Signed(name(signer))),
            Ok(output) => refuse(&mut refusals, signer, &output.stderr_text()),
            Err(Failure::Deadline { stderr, .. }) => {
                refuse(
                    &mut refusals,
                    signer,
                    &format!("no answer within {} seconds\n{stderr}", LIMIT.as_secs()),
                );
            }
            Err(failure) => return Err(failure.into()),
        }
    }
    Err(Error::new(Code::ImageUnverified, format!("no accepted signature was found for {image}"))
        .detail(refusals)
        .help("use an image that was signed, or correct `image_policy.signers` in config.yaml; the text above is cosign's"))
}

fn refuse(refusals: &mut String, signer: &Signer, text: &str) {
    let _ = writeln!(refusals, "{}:\n{}", name(signer), text.trim_end());
}

/// How messages name a signer.
fn name(signer: &Signer) -> String {
    match signer {
        Signer::Identity { identity, .. } => identity.clone(),
        Signer::Pattern { identity_regexp, .. } => identity_regexp.clone(),
        Signer::Key(path) => format!("the key {path}"),
    }
}

/// The words after `cosign` (options as of cosign 2 and 3).
fn arguments(signer: &Signer, image: &str) -> Vec<String> {
    let options: Vec<(&str, &str)> = match signer {
        Signer::Identity { identity, issuer } => {
            vec![("certificate-identity", identity), ("certificate-oidc-issuer", issuer)]
        }
        Signer::Pattern { identity_regexp, issuer } => {
            vec![("certificate-identity-regexp", identity_regexp), ("certificate-oidc-issuer", issuer)]
        }
        Signer::Key(path) => vec![("key", path.as_str())],
    };
    let mut words = vec!["verify".to_owned()];
    words.extend(options.iter().map(|(name, value)| format!("--{name}={value}")));
    words.push(image.to_owned());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cosign_is_asked() {
        let image = "r.test/a@sha256:00";
        let issuer = "https://issuer.test".to_owned();
        let signer = Signer::Identity {
            identity: "https://x.test/w.yml@refs/heads/main".into(),
            issuer: issuer.clone(),
        };
        assert_eq!(
            arguments(&signer, image),
            [
                "verify",
                "--certificate-identity=https://x.test/w.yml@refs/heads/main",
                "--certificate-oidc-issuer=https://issuer.test",
                image
            ]
        );
        let signer = Signer::Pattern { identity_regexp: "^a$".into(), issuer };
        assert_eq!(arguments(&signer, image)[1], "--certificate-identity-regexp=^a$");
        assert_eq!(arguments(&Signer::Key("k.pub".into()), image), ["verify", "--key=k.pub", image]);
    }
}
