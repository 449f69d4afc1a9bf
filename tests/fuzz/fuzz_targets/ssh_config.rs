//! The ssh configuration that a gateway prints: what is accepted consists of plain names, and what is written of it
//! has the same lines for every input.

#![no_main]

use std::path::Path;

use fullsend::remote::ssh_config::SshConfig;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(config) = SshConfig::parse(bytes) else { return };
    let plain = |text: &str| {
        !text.is_empty()
            && !text.starts_with('-')
            && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
    };
    assert!(plain(&config.alias) && config.user.as_deref().is_none_or(plain), "{config:?}");
    assert!(config.proxy.iter().all(|(option, value)| option.starts_with("--") && !value.is_empty()));
    let text = config.render_master(&["/opt/openshell"], Path::new("/run/fs/s")).expect("is written");
    let text = String::from_utf8(text).expect("is text");
    let proxies: Vec<_> = text.lines().filter(|l| l.contains("ProxyCommand")).collect();
    assert_eq!(proxies.len(), 1, "{text}");
    assert!(proxies[0].trim().starts_with("ProxyCommand /opt/openshell ssh-proxy"), "{text}");
    assert_eq!(text.lines().filter(|l| l.starts_with("Host ")).count(), 1, "{text}");
    for keyword in ["LocalCommand ", "Include", "Match"] {
        assert!(!text.lines().any(|l| l.trim_start().starts_with(keyword)), "{text}");
    }
});
