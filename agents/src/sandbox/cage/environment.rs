//! Which of the agent's environment variables a sandboxed program gets. Others may hold secrets or affect results.

use std::ffi::OsString;

/// Search path, language, time zone and CA certificates.
const PASSED_ON: [&str; 6] = ["PATH", "LANG", "LANGUAGE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR"];
/// Prefix of locale variables.
const LOCALE: &str = "LC_";

/// Returns the variables that a program gets from the agent's environment.
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
    fn only_listed_variables_are_passed_on() {
        for name in ["PATH", "LC_ALL", "TZ"] {
            assert!(is_passed_on(name), "{name}");
        }
        for name in ["BREWBENCH_KEY", "K6_VUS", "AWS_SECRET_ACCESS_KEY", "HTTP_PROXY", "LD_PRELOAD", "path", ""] {
            assert!(!is_passed_on(name), "{name}");
        }
    }
}
