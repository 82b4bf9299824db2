//! Whether a script may let time pass between its requests: then its virtual users are not always in one.

/// What lets time pass by itself, or speaks something else than HTTP while it does.
const WAITING: [&str; 10] = [
    "sleep",
    "setTimeout",
    "setInterval",
    "minIterationDuration",
    "Atomics",
    "websockets",
    "ws",
    "grpc",
    "browser",
    "xk6",
];

/// Modules from elsewhere, whose text is not at hand.
const REMOTE: [&str; 2] = ["https://", "http://"];

/// Whether one of these texts has a word that lets time pass, or imports what cannot be looked at.
pub fn may_wait(texts: &[&str]) -> bool {
    let is_word = |word: &str| WAITING.contains(&word);
    let imports = |line: &str| {
        let line = line.trim_start();
        (line.starts_with("import") || line.contains("require(")) && REMOTE.iter().any(|start| line.contains(start))
    };
    texts
        .iter()
        .any(|text| text.split(|c: char| !c.is_alphanumeric() && c != '_').any(is_word) || text.lines().any(imports))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lets_time_pass_counts_as_waiting() {
        assert!(!may_wait(&["import http from 'k6/http'; export default () => http.get(`${__ENV.BASE_URL}/asleep`);"]));
        assert!(!may_wait(&["const page = 'https://example.com/'; // which is asked for"]));
        for waiting in [
            "import { sleep } from 'k6'; export default () => sleep(1);",
            "export const options = { minIterationDuration: '1s' };",
            "import ws from 'k6/ws';",
            "import { think } from 'https://jslib.k6.io/x.js';",
        ] {
            assert!(may_wait(&["", waiting]), "{waiting}");
        }
    }
}
