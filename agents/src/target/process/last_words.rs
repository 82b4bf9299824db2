//! What a program that has exited says about it: the end of its output, and what to do. Pure.

use std::process::ExitStatus;

use crate::sandbox::process::last_lines;

/// Parts of messages about files that a program may not access.
const DENIED: [&str; 5] = [
    "ermission denied",
    "EACCES",
    "PermissionError",
    "No module named 'encodings'",
    "error while loading shared libraries",
];

/// Characters of a line that names a file.
const MAX_LETTERS: usize = 300;

/// Describes the output of a program that has exited with this status, as the end of a sentence.
pub fn describe(status: Option<ExitStatus>, log: &str) -> String {
    let lines = last_lines(log);
    // A stack or a version often follows: the line that names the file must not be cut away.
    let denied = log.lines().map(str::trim).rfind(|line| DENIED.iter().any(|words| line.contains(words)));
    let output = match denied {
        _ if lines.is_empty() => "no output".to_owned(),
        Some(line) if !lines.contains(line) => {
            let line: String = line.chars().take(MAX_LETTERS).collect();
            format!("output: {line} | … | {lines}")
        }
        _ => format!("last output: {lines}"),
    };
    let hint = if denied.is_some() {
        "; allow access to the files it needs in its manifest: [sandbox] read = [\"…\"]"
    } else if status.is_some_and(|status| status.success()) {
        "; if it went into the background, keep it in the foreground"
    } else {
        ""
    };
    format!("{output}{hint}")
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn a_denied_file_is_named_with_the_remedy() {
        let node = "node:internal/modules/cjs/loader:1\n  throw err;\n\nError: EACCES: permission denied, open '/srv/app.js'\n\
                    \x20   at open (node:fs:1)\n  errno: -13,\n  syscall: 'open'\n}\n\nNode.js v20.1.0\n";
        let text = describe(Some(ExitStatus::from_raw(256)), node);
        let expected = "output: Error: EACCES: permission denied, open '/srv/app.js' | … | syscall: 'open' | } | Node.js v20.1.0; \
                        allow access to the files it needs in its manifest: [sandbox] read = [\"…\"]";
        assert_eq!(text, expected);
        let pyenv = "Fatal Python error: init_fs_encoding\nModuleNotFoundError: No module named 'encodings'\n\nCurrent thread\n<no frame>\n";
        let text = describe(None, pyenv);
        assert!(text.contains("No module named 'encodings'") && text.ends_with("[sandbox] read = [\"…\"]"), "{text}");
    }

    #[test]
    fn a_program_that_ends_well_may_be_in_the_background() {
        let text = describe(Some(ExitStatus::from_raw(0)), "warming caches\n");
        assert_eq!(text, "last output: warming caches; if it went into the background, keep it in the foreground");
        assert_eq!(describe(Some(ExitStatus::from_raw(256)), ""), "no output");
    }
}
