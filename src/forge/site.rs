//! Which server, and with which token: from the environment that the CI systems set. Pure.

use super::Platform;
use crate::secrets::Secret;

/// A server and the token for it.
#[derive(Debug, Clone)]
pub struct Site {
    /// Whose API.
    pub platform: Platform,
    /// The base URL of its REST API, without `/` at the end.
    pub api: String,
    /// The token.
    pub token: Secret,
}

/// Why there is no site.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// There is no token.
    #[error("there is no token: {} is not set", .0.join(" or "))]
    Token(Vec<String>),
    /// What is there is no token.
    #[error("the value of {0} is no token: it has blanks, line ends or other characters that no token has")]
    Malformed(String),
    /// The URL of the API cannot be used.
    #[error("the URL of the forge cannot be used: {0:?} {1}")]
    Url(String, &'static str),
}

impl Site {
    /// The site that the environment names. `token_env` is the variable with the token, where one was named.
    ///
    /// GitHub sets `GITHUB_API_URL` and `GITHUB_SERVER_URL` in every job, GitLab `CI_API_V4_URL` and `CI_SERVER_URL`.
    pub fn from_env(
        platform: Platform,
        token_env: Option<&str>,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Missing> {
        let get = |name: &str| env(name).map(|v| v.trim().to_owned()).filter(|v| !v.is_empty());
        let api = match platform {
            Platform::GitHub => get("GITHUB_API_URL").or_else(|| match get("GITHUB_SERVER_URL")? {
                server if server.trim_end_matches('/') == "https://github.com" => None,
                server => Some(format!("{}/api/v3", server.trim_end_matches('/'))),
            }),
            Platform::GitLab => get("CI_API_V4_URL").or_else(|| {
                let server = get("FULLSEND_GITLAB_URL").or_else(|| get("CI_SERVER_URL"))?;
                Some(format!("{}/api/v4", server.trim_end_matches('/')))
            }),
        };
        let api = api.unwrap_or_else(|| match platform {
            Platform::GitHub => "https://api.github.com".to_owned(),
            Platform::GitLab => "https://gitlab.com/api/v4".to_owned(),
        });
        let api = api.trim_end_matches('/').to_owned();
        if let Some(why) = unusable(&api) {
            return Err(Missing::Url(api, why));
        }
        let names: Vec<&str> = match (token_env, platform) {
            (Some(name), _) => vec![name],
            (None, Platform::GitHub) => vec!["GH_TOKEN", "GITHUB_TOKEN"],
            (None, Platform::GitLab) => vec!["GITLAB_TOKEN"],
        };
        let found = names.iter().find_map(|name| Some((*name, get(name)?)));
        let Some((name, token)) = found else {
            return Err(Missing::Token(names.into_iter().map(str::to_owned).collect()));
        };
        if !token.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(Missing::Malformed(name.to_owned()));
        }
        Ok(Self { platform, api, token: Secret::new(token) })
    }

    /// The host of the API.
    pub(super) fn host(&self) -> &str {
        host(&self.api)
    }

    /// Whether the API is spoken without TLS.
    pub(super) fn is_plain(&self) -> bool {
        self.api.starts_with("http://")
    }
}

/// The host of a URL, without port.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => authority,
    }
}

/// Why a base URL is not used. A token goes over plain HTTP only where it does not leave the machine.
fn unusable(url: &str) -> Option<&'static str> {
    let plain = url.bytes().all(|b| b.is_ascii_graphic());
    if !plain || url.contains(['@', '?', '#', '\\']) || host(url).is_empty() {
        return Some("is not the base URL of an API");
    }
    if url.starts_with("https://") {
        return None;
    }
    let local = matches!(host(url), "localhost" | "127.0.0.1" | "[::1]");
    if url.starts_with("http://") && local {
        None
    } else {
        Some("is not https, and the token would be readable")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(platform: Platform, vars: &[(&str, &str)], token: Option<&str>) -> Result<Site, Missing> {
        Site::from_env(platform, token, |name| {
            vars.iter().find(|(k, _)| *k == name).map(|(_, v)| (*v).to_owned())
        })
    }

    #[test]
    fn the_server_is_the_one_of_the_job() {
        let token = ("GITHUB_TOKEN", "t");
        let lab = ("GITLAB_TOKEN", "t");
        for (platform, vars, api) in [
            (Platform::GitHub, vec![token], "https://api.github.com"),
            (
                Platform::GitHub,
                vec![token, ("GITHUB_SERVER_URL", "https://github.com")],
                "https://api.github.com",
            ),
            (
                Platform::GitHub,
                vec![token, ("GITHUB_SERVER_URL", "https://g.example/")],
                "https://g.example/api/v3",
            ),
            (
                Platform::GitHub,
                vec![token, ("GITHUB_API_URL", "https://api.x.ghe.com/")],
                "https://api.x.ghe.com",
            ),
            (Platform::GitLab, vec![lab], "https://gitlab.com/api/v4"),
            (
                Platform::GitLab,
                vec![lab, ("CI_SERVER_URL", "https://l.example:8443")],
                "https://l.example:8443/api/v4",
            ),
            (Platform::GitLab, vec![lab, ("CI_API_V4_URL", "https://l/api/v4")], "https://l/api/v4"),
        ] {
            assert_eq!(site(platform, &vars, None).unwrap().api, api, "{vars:?}");
        }
    }

    #[test]
    fn a_token_leaves_the_machine_over_tls_only() {
        for (url, good) in [
            ("https://g.example/api/v3", true),
            ("http://127.0.0.1:8080", true),
            ("http://localhost:1/api", true),
            ("http://g.example", false),
            ("http://127.0.0.1.example.com", false),
            ("http://127.0.0.1@evil.example", false),
            ("https://u:p@g.example", false),
            ("ftp://g.example", false),
            ("https://", false),
            ("https://g.example/?x", false),
        ] {
            let vars = [("GITHUB_API_URL", url), ("GH_TOKEN", "t")];
            assert_eq!(site(Platform::GitHub, &vars, None).is_ok(), good, "{url}");
        }
    }

    #[test]
    fn the_token_is_that_of_the_named_variable() {
        let vars = [("GH_TOKEN", "a"), ("GITHUB_TOKEN", "b"), ("MINE", "c"), ("EMPTY", " "), ("TWO", "a\nb")];
        let token = |name| site(Platform::GitHub, &vars, name).map(|s| s.token.expose().to_owned());
        assert_eq!(token(None).unwrap(), "a");
        assert_eq!(token(Some("MINE")).unwrap(), "c");
        assert_eq!(
            token(Some("EMPTY")),
            Err(Missing::Token(vec!["EMPTY".into()])),
            "no other one is taken instead"
        );
        let malformed = token(Some("TWO")).unwrap_err().to_string();
        assert!(malformed.starts_with("the value of TWO is no token: ") && !malformed.contains("a\nb"));
        let none = site(Platform::GitHub, &[], None).unwrap_err();
        assert_eq!(none.to_string(), "there is no token: GH_TOKEN or GITHUB_TOKEN is not set");
        assert!(site(Platform::GitLab, &vars, None).unwrap_err().to_string().contains("GITLAB_TOKEN"));
    }
}
