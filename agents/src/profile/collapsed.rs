//! Collapsed stacks, `main;handle;hash 12`: the text format of many profilers. Pure.
//!
//! Functions are separated by semicolons, root first; the number of samples follows the last space. By the convention
//! of the format, `_[k]` marks a function of the kernel.

use brewbench_wire::profile::stacks::{Builder, Frame, KERNEL, Stacks, TooLarge, is_kernel};

/// The mark of functions of the kernel.
const KERNEL_MARK: &str = "_[k]";

/// Why a text is not in the format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CollapsedError {
    /// It has more names or stacks than a profile may have.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// A line is something else.
    #[error("line {line} is not a stack with its number of samples, such as \"main;work 12\": {text:?}")]
    Malformed {
        /// Its number, from 1.
        line: usize,
        /// Its beginning.
        text: String,
    },
}

/// Reads collapsed stacks. A sample is worth `factor`. Returns also the number of samples.
pub fn parse(text: &str, factor: u64) -> Result<(Stacks, u64), CollapsedError> {
    let mut builder = Builder::default();
    let mut samples = 0_u64;
    let mut stack = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        // Some profilers begin with a comment.
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let malformed = || {
            let text = brewbench_wire::sanitize::plain(&text.chars().take(200).collect::<String>());
            CollapsedError::Malformed { line, text: text.chars().take(60).collect() }
        };
        let (functions, count) = text.rsplit_once([' ', '\t']).ok_or_else(malformed)?;
        let count: u64 = count.parse().map_err(|_| malformed())?;
        samples = samples.saturating_add(count);
        stack.clear();
        for function in functions.split(';') {
            stack.push(builder.frame(frame(function))?);
        }
        builder.add(&stack, count.saturating_mul(factor))?;
    }
    Ok((builder.build(), samples))
}

fn frame(function: &str) -> Frame {
    if let Some(function) = function.strip_suffix(KERNEL_MARK) {
        return Frame::new(function, "", KERNEL);
    }
    // The kernel itself, as perf names it.
    if is_kernel(function) && function.starts_with("[kernel") {
        return Frame::new("", "", function);
    }
    // `hash (server.py:12)` or `hash (server.py)`: a line is no part of a function.
    let place = function.strip_suffix(')').and_then(|rest| rest.rsplit_once(" ("));
    match place {
        Some((name, place)) if place.contains('.') && !place.contains(['(', ' ']) => {
            let file = match place.rsplit_once(':') {
                Some((file, line)) if line.bytes().all(|byte| byte.is_ascii_digit()) => file,
                _ => place,
            };
            Frame::new(name, file, "")
        }
        _ => Frame::new(function, "", ""),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stacks_are_read_root_first() {
        let text = "# a comment\nmain;work 2\n\nmain;work;write_[k] 1\r\nmain;a b 3\nmain;hash (app/server.py:12) 4\n";
        let (stacks, samples) = parse(text, 10).expect("stacks");
        assert_eq!((stacks.total(), samples, stacks.samples.len()), (100, 10, 4));
        let names: Vec<_> = stacks.frames.iter().map(|frame| frame.function.as_str()).collect();
        assert_eq!(names, ["main", "work", "write", "a b", "hash"]);
        assert_eq!((stacks.frames[2].kernel, stacks.frames[4].file.as_str()), (true, "app/server.py"));
        assert_eq!(parse("", 1), Ok((Stacks::default(), 0)));
    }

    #[test]
    fn other_text_names_its_line() {
        let fault = |text| parse(text, 1).expect_err("no stacks").to_string();
        let expected = "line 2 is not a stack with its number of samples, such as \"main;work 12\": \
                        \"Traceback (most recent call last):\"";
        assert_eq!(fault("main 1\n\u{1b}[31mTraceback (most recent call last):\n"), expected);
        assert!(fault("word").starts_with("line 1"));
        assert!(fault("main -1").starts_with("line 1"));
        assert!(fault(&"x".repeat(10_000)).len() < 200);
    }

    #[test]
    fn hostile_functions_are_names() {
        let deep = vec!["f"; 5_000].join(";");
        let text = format!("<script>alert(1)</script>;\u{1b}[2J{};; 1\n{deep} 1\n", "x".repeat(10_000));
        let (stacks, _) = parse(&text, 1).expect("stacks");
        assert_eq!((stacks.samples.len(), stacks.total()), (2, 2));
        assert!(stacks.frames.iter().all(|frame| frame.function.chars().count() <= 500));
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_an_error(text in any::<String>()) {
            let _ = parse(&text, 1);
        }
    }
}
