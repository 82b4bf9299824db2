//! What a caged program sees of the agent's environment. The rest may hold secrets, or change what is measured.

use std::ffi::OsString;

/// Where programs are, in which language and time zone people here live, and whom they trust.
const PASSED_ON: [&str; 6] = ["PATH", "LANG", "LANGUAGE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR"];
/// All of these belong to the language.
const LOCALE: &str = "LC_";

/// The variables that a program gets from the agent's environment.
pub fn passed_on() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_passed_on))
}

fn is_passed_on(name: &str) -> bool {
    PASSED_ON.contains(&name) || name.starts_with(LOCALE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_listed_is_passed_on() {
        for name in ["PATH", "LC_ALL", "TZ"] {
            assert!(is_passed_on(name), "{name}");
        }
        for name in ["BREWBENCH_KEY", "K6_VUS", "AWS_SECRET_ACCESS_KEY", "HTTP_PROXY", "LD_PRELOAD", "path", ""] {
            assert!(!is_passed_on(name), "{name}");
        }
    }
}
