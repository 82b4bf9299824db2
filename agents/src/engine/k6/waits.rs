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

/// Whether a text contains a word for waiting.
pub fn may_wait(texts: &[&str]) -> bool {
    let is_word = |word: &str| WAITING.contains(&word);
    let words = |text: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_').any(is_word);
    texts.iter().any(|text| words(text))
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
        ] {
            assert!(may_wait(&["", waiting]), "{waiting}");
        }
    }
}
