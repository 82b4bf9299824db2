//! Detects whether a script may wait between its requests, so that its virtual users are not always busy.

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

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// Whether a text contains a word for waiting, or imports a remote module.
pub fn may_wait(texts: &[&str]) -> bool {
    let is_word = |word: &str| WAITING.contains(&word);
    texts.iter().any(|text| words(text).any(is_word) || text.lines().any(imports_remote))
}

/// Whether a line imports a remote module.
pub fn imports_remote(line: &str) -> bool {
    let line = line.trim_start();
    let is_export = line.starts_with("export") && line.contains(" from ");
    let is_import = line.starts_with("import") || line.contains("require(") || is_export;
    is_import && REMOTE.iter().any(|start| line.contains(start))
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
