//! Splits a program's output into lines for an observer, which decides what is kept of it. Pure.

use std::fmt::{self, Debug};

/// Reads a line of a program's output, without its end; returns whether it is kept in the log.
pub type Observer = Box<dyn FnMut(&str) -> bool + Send>;

/// The observer reads this much of a line. The rest is kept or dropped with its start.
const MAX_LINE: usize = 64 << 10;

/// The lines of one output.
pub struct Lines {
    observer: Observer,
    /// The start of a line that is not decided yet.
    start: Vec<u8>,
    /// Whether the rest of a longer line is kept.
    decided: Option<bool>,
}

impl Lines {
    /// Creates the lines of an output that has not begun.
    pub fn new(observer: Observer) -> Self {
        Self { observer, start: Vec::new(), decided: None }
    }

    /// Reads a part of the output; returns what is kept.
    pub fn read(&mut self, mut part: &[u8]) -> Vec<u8> {
        let mut kept = Vec::new();
        while !part.is_empty() {
            let end = part.iter().position(|byte| *byte == b'\n');
            let (line, rest) = part.split_at(end.map_or(part.len(), |end| end + 1));
            self.add(line, &mut kept);
            if end.is_some() {
                self.end(&mut kept);
            }
            part = rest;
        }
        kept
    }

    /// Ends the output; returns what is kept of a last line without an end.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut kept = Vec::new();
        self.end(&mut kept);
        kept
    }

    fn add(&mut self, bytes: &[u8], kept: &mut Vec<u8>) {
        match self.decided {
            Some(true) => kept.extend(bytes),
            Some(false) => {}
            None => {
                self.start.extend(bytes);
                if self.start.len() > MAX_LINE {
                    self.decide(kept);
                }
            }
        }
    }

    fn end(&mut self, kept: &mut Vec<u8>) {
        if self.decided.take().is_none() && !self.start.is_empty() {
            self.decide(kept);
            self.decided = None;
        }
    }

    fn decide(&mut self, kept: &mut Vec<u8>) {
        let line = self.start.strip_suffix(b"\n").unwrap_or(&self.start);
        let line = &line[..line.len().min(MAX_LINE)];
        let is_kept = (self.observer)(&String::from_utf8_lossy(line));
        if is_kept {
            kept.extend(&self.start);
        }
        self.start.clear();
        self.decided = Some(is_kept);
    }
}

impl Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").field("decided", &self.decided).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Reads parts of an output whose lines are kept unless they start with `-`; returns the lines and what is kept.
    fn read(parts: &[&[u8]]) -> (Vec<String>, Vec<u8>) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let copy = Arc::clone(&seen);
        let mut lines = Lines::new(Box::new(move |line| {
            copy.lock().expect("a lock").push(line.to_owned());
            !line.starts_with('-')
        }));
        let mut kept: Vec<u8> = parts.iter().flat_map(|part| lines.read(part)).collect();
        kept.extend(lines.finish());
        let seen = seen.lock().expect("a lock").clone();
        (seen, kept)
    }

    #[test]
    fn lines_are_read_whole_however_they_arrive() {
        let expected = (vec!["one".to_owned(), String::new(), "-two".to_owned(), "three".to_owned()], b"one\n\nthree");
        let text: &[u8] = b"one\n\n-two\nthree";
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        for parts in [vec![text], bytes, vec![&text[..5], &text[5..]]] {
            let (lines, kept) = read(&parts);
            assert_eq!((lines, kept.as_slice()), (expected.0.clone(), expected.1.as_slice()));
        }
    }

    #[test]
    fn the_rest_of_a_long_line_goes_with_its_start() {
        let [long, dropped] = [b"x", b"-"].map(|start| start.repeat(3 * MAX_LINE));
        let parts: Vec<&[u8]> = long.chunks(1_000).chain([&b"\n"[..]]).chain(dropped.chunks(1_000)).collect();
        let (lines, kept) = read(&[&parts[..], &[b"\nend\n"]].concat());
        assert_eq!(lines.iter().map(String::len).collect::<Vec<_>>(), [MAX_LINE, MAX_LINE, 3]);
        assert_eq!(kept, [&long[..], b"\nend\n"].concat());
    }
}
