//! What identifies the code of a target, in words. Pure.

use brewbench_wire::target::{IDENTIFIED, PARTIAL};

/// Characters of a digest that are shown.
const DIGITS: usize = 8;

/// Returns words for an identity, which may be followed by an experiment, that distinguish it from other code:
/// `code 3f9a1c2e`.
pub fn describe_code(code: Option<&str>) -> String {
    let digits = |digest: &str| digest.chars().take(DIGITS).collect::<String>();
    let Some(code) = code else { return "code unknown".to_owned() };
    if let Some(digest) = code.strip_prefix(IDENTIFIED) {
        return format!("code {}", digits(digest));
    }
    if let Some(partial) = code.strip_prefix(PARTIAL) {
        let end = |text: &str| text.chars().skip(text.chars().count().saturating_sub(DIGITS)).collect::<String>();
        let experiment = partial.rsplit_once(' ').map(|(_, experiment)| format!(", …{}", end(experiment)));
        return format!("code not identified{}", experiment.unwrap_or_default());
    }
    match code.strip_prefix("sha256:") {
        Some(digest) => {
            let settings = digest.split_once('+').map(|(_, settings)| format!(" settings {}", digits(settings)));
            format!("image {}{}", digits(digest), settings.unwrap_or_default())
        }
        None if code.bytes().all(|byte| byte.is_ascii_hexdigit()) => format!("executable {}", digits(code)),
        None => code.to_owned(),
    }
}

/// Whether two identities were made in the same way, so that another one means other code. Earlier agents knew the
/// program's file only.
pub fn are_comparable(one: &str, other: &str) -> bool {
    let way = |identity: &str| {
        let starts = [IDENTIFIED, PARTIAL, "sha256:", "http"];
        starts.iter().position(|start| identity.starts_with(start))
    };
    !one.starts_with(PARTIAL) && way(one) == way(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_has_short_words() {
        let hex = "0123456789abcdef".repeat(4);
        for (code, expected) in [
            (format!("code:{hex}"), "code 01234567"),
            (hex.clone(), "executable 01234567"),
            (format!("sha256:{hex}"), "image 01234567"),
            (format!("sha256:{hex}+fedcba9876543210"), "image 01234567 settings fedcba98"),
            ("http://10.0.0.1".to_owned(), "http://10.0.0.1"),
        ] {
            assert_eq!(describe_code(Some(&code)), expected);
        }
    }

    #[test]
    fn identities_of_earlier_agents_show_no_change() {
        let hex = "ab".repeat(32);
        let code = format!("code:{hex}");
        assert!(are_comparable(&code, "code:00") && are_comparable(&hex, "00ff"));
        assert!(!are_comparable(&hex, &code) && !are_comparable("part:00", "part:01"));
    }
}
