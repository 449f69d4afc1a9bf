//! Which certificate authorities are trusted: those of the machine, or those of `SSL_CERT_FILE`/`SSL_CERT_DIR`.

use std::path::PathBuf;
use std::sync::Arc;

use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};

use super::failure::Failure;

/// The file that replaces the machine's authorities, as OpenSSL and curl understand it.
pub fn custom_authorities() -> Option<PathBuf> {
    std::env::var_os("SSL_CERT_FILE").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// How servers are verified.
pub(super) fn config() -> Result<TlsConfig, Failure> {
    let loaded = rustls_native_certs::load_native_certs();
    let roots: Vec<Certificate<'static>> =
        loaded.certs.iter().map(|cert| Certificate::from_der(cert).to_owned()).collect();
    if roots.is_empty() {
        let why = loaded.errors.first().map(|error| format!(": {error}")).unwrap_or_default();
        return Err(Failure::Trust(format!("there are no certificate authorities to trust{why}")));
    }
    Ok(TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .root_certs(RootCerts::Specific(Arc::new(roots)))
        .build())
}
