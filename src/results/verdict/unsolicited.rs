//! Finds responses that nobody asked for, such as a reply that is sent twice. Pure.
//!
//! k6 reads one response for each request. What follows on the connection is noticed by Go's HTTP client, which logs it
//! and closes the connection.

use crate::{
    results::verdict::model::Context,
    runs::verdict::{Reason, Verdict},
};

/// What Go's HTTP client logs.
const LOGGED: &str = "Unsolicited response received on idle HTTP channel";

/// A server may say so before it closes an idle connection.
const TIMED_OUT: [&str; 2] = ["HTTP/1.1 408", "HTTP/1.0 408"];

pub(super) fn judge(context: &Context<'_>) -> Option<Reason> {
    let of_generators = context.generators.iter().map(|one| one.generator_log.as_str());
    is_logged([context.generator_log].into_iter().chain(of_generators)).then(|| {
        let text =
            "the target sent more than was requested: the load generator got responses without a request, and closed \
             their connections";
        Reason::new("unsolicited_response", Verdict::Suspect, text)
    })
}

fn is_logged<'a>(mut logs: impl Iterator<Item = &'a str>) -> bool {
    let is_meant = |line: &&str| line.contains(LOGGED) && !TIMED_OUT.iter().any(|response| line.contains(*response));
    logs.any(|log| log.lines().any(|line| is_meant(&line)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by k6 1.8.1 for a target that answers each request twice.
    const TWICE: &str = r#"time="2026-11-26T03:09:19Z" level=info msg="2026/11/26 03:09:19 Unsolicited response received on idle HTTP channel starting with \"HTTP/1.1 200 OK\\r\\ncontent-length: 5\\r\\n\\r\\nhello\"; err=<nil>""#;

    #[test]
    fn a_reply_that_is_sent_twice_is_found() {
        let found = |log: &str| is_logged(["", log].into_iter());
        assert!(found(TWICE));
        assert!(!found(&TWICE.replace("200 OK", "408 Request Timeout")) && !found("level=info msg=\"hello\""));
    }
}
