//! Interprets the exit status of k6.

use std::process::ExitStatus;

use brewbench_wire::sanitize::{plain, unquoted};

use crate::sandbox::process::{describe, last_lines};

/// k6's exit status after `exec.test.abort()`.
const ABORTED: i32 = 108;

/// Whether the script aborted the test. k6 has written its summary anyway.
pub fn is_aborted(status: ExitStatus) -> bool {
    status.code() == Some(ABORTED)
}

/// Checks that k6 completed its run; the error is a sentence with k6's last errors.
pub fn judge(status: ExitStatus, log: &str) -> Result<(), String> {
    let meaning = match status.code() {
        // A failed threshold is a normal result.
        Some(0 | 99) => return Ok(()),
        Some(100) => "the script's setup() timed out",
        Some(101) => "the script's teardown() timed out",
        Some(102) => "it timed out",
        Some(103) => "it was stopped through its REST interface",
        Some(104) => "the script or its options are not valid",
        Some(105) => "it was interrupted",
        Some(107) => "the script threw an exception",
        Some(ABORTED) => "the script aborted the test",
        Some(109) => "k6 crashed",
        Some(110) => "the script marked the test as failed",
        Some(_) | None => "",
    };
    let how = describe(status);
    let meaning = if meaning.is_empty() { how } else { format!("{meaning} ({how})") };
    Err(match errors(log) {
        errors if errors.is_empty() => format!("k6 failed: {meaning}"),
        errors => format!("k6 failed: {meaning}: {errors}"),
    })
}

/// Returns k6's last error messages, or its last lines if there are none.
fn errors(log: &str) -> String {
    let messages: Vec<String> = log.lines().filter_map(message).collect();
    if messages.is_empty() { last_lines(log) } else { last_lines(&messages.join("\n")) }
}

/// Returns the message of a line like `time="…" level=error msg="…" source=stacktrace`.
fn message(line: &str) -> Option<String> {
    let (_, fields) = line.split_once(" level=")?;
    if !["error", "fatal", "panic"].iter().any(|level| fields.starts_with(level)) {
        return None;
    }
    let (_, message) = fields.split_once(" msg=")?;
    Some(plain(&unquoted(message).unwrap_or_else(|| message.to_owned())))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn exit(code: i32) -> ExitStatus {
        ExitStatus::from_raw(code << 8)
    }

    #[test]
    fn a_failed_threshold_is_a_complete_run() {
        assert_eq!(judge(exit(0), ""), Ok(()));
        assert_eq!(
            judge(exit(99), "time=\"t\" level=error msg=\"thresholds on metrics 'x' have been crossed\""),
            Ok(())
        );
    }

    #[test]
    fn other_exits_are_described_with_the_last_errors() {
        let log = "noise\ntime=\"t\" level=error msg=\"SyntaxError: file:///x.js:\\n\\tUnexpected token\" hint=\"h\"\n";
        let message = judge(exit(104), log).expect_err("a failure");
        let expected = "k6 failed: the script or its options are not valid (exit status 104): \
                        SyntaxError: file:///x.js: Unexpected token";
        assert_eq!(message, expected);
        assert_eq!(judge(exit(1), "").expect_err("a failure"), "k6 failed: exit status 1");
        assert_eq!(
            judge(ExitStatus::from_raw(9), "a\nb").expect_err("a failure"),
            "k6 failed: killed by SIGKILL: a | b"
        );
    }
}
