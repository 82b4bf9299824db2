//! Detects whether a script may wait between its requests, so that its virtual users are not always busy, and whether it
//! may limit them.

/// Words for waiting, or for protocols other than HTTP.
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

/// Remote modules, whose text is not available.
const REMOTE: [&str; 2] = ["https://", "http://"];

/// Whether a text may set k6's limit of requests per second.
pub fn may_limit_requests(texts: &[&str]) -> bool {
    texts.iter().any(|text| words(text).any(|word| word == "rps"))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// Whether a text contains a word for waiting, or imports a remote module.
pub fn may_wait(texts: &[&str]) -> bool {
    let is_word = |word: &str| WAITING.contains(&word);
    let imports = |line: &str| {
        let line = line.trim_start();
        (line.starts_with("import") || line.contains("require(")) && REMOTE.iter().any(|start| line.contains(start))
    };
    texts.iter().any(|text| words(text).any(is_word) || text.lines().any(imports))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_for_waiting_count() {
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
