//! Reads what `perf script` prints: samples, separated by empty lines, leaf first. Pure.
//!
//! ```text
//!  31958   10101010 cpu-clock:ppp:
//!             1140 leaf (/usr/bin/server)
//!             11de main (/usr/bin/server)
//! ```
//!
//! Names are foreign: what can't be read is skipped.

use std::collections::HashMap;

use brewbench_wire::profile::stacks::{Builder, Frame, KERNEL, Stacks, TooLarge, UNKNOWN, is_kernel};

/// The fields to print.
pub const FIELDS: &str = "tid,period,event,ip,sym,dso";

/// The rest of a longer line is skipped.
const MAX_LINE: usize = 64 << 10;

/// Frames of a sample that are read: more than perf prints.
const MAX_FRAMES: usize = 10_000;

/// What was printed.
#[derive(Debug, Default)]
pub struct Script {
    /// The stacks, in nanoseconds or in events.
    pub stacks: Stacks,
    /// Number of samples.
    pub samples: u64,
    /// Lost samples.
    pub lost: u64,
    /// Whether the values are nanoseconds.
    pub is_time: bool,
    /// Frames of the deepest stack.
    pub deepest: usize,
}

/// Reads the output as it comes.
#[derive(Debug, Default)]
pub struct Reader {
    builder: Builder,
    /// By program and symbol, as printed.
    frames: HashMap<(String, bool), u32>,
    /// An incomplete line.
    line: Vec<u8>,
    /// The sample in progress.
    period: Option<u64>,
    stack: Vec<u32>,
    samples: u64,
    lost: u64,
    counts_events: bool,
    deepest: usize,
}

impl Reader {
    /// Reads the next bytes.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<(), TooLarge> {
        while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
            self.keep(&bytes[..end]);
            let line = std::mem::take(&mut self.line);
            self.take(&String::from_utf8_lossy(&line))?;
            self.line = line;
            self.line.clear();
            bytes = &bytes[end + 1..];
        }
        self.keep(bytes);
        Ok(())
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = MAX_LINE.saturating_sub(self.line.len());
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Returns everything that was read.
    pub fn finish(mut self) -> Result<Script, TooLarge> {
        let line = std::mem::take(&mut self.line);
        self.take(&String::from_utf8_lossy(&line))?;
        self.end_sample()?;
        let Self { builder, samples, lost, counts_events, deepest, .. } = self;
        Ok(Script { stacks: builder.build(), samples, lost, is_time: !counts_events, deepest })
    }

    fn take(&mut self, line: &str) -> Result<(), TooLarge> {
        if line.contains("PERF_RECORD_LOST") {
            self.lost = self.lost.saturating_add(lost(line));
        } else if line.trim().is_empty() {
            self.end_sample()?;
        } else if self.period.is_none() {
            if let Some((period, event)) = header(line) {
                self.period = Some(period);
                let is_clock = event.starts_with("cpu-clock") || event.starts_with("task-clock");
                self.counts_events |= !is_clock;
            }
        } else if self.stack.len() < MAX_FRAMES
            && let Some((symbol, module, kernel)) = parse_frame(line)
        {
            let key = (format!("{module}\0{symbol}"), kernel);
            let frame = if let Some(&known) = self.frames.get(&key) {
                known
            } else {
                let frame = self.builder.frame(frame(symbol, module, kernel))?;
                self.frames.insert(key, frame);
                frame
            };
            self.stack.push(frame);
        }
        Ok(())
    }

    fn end_sample(&mut self) -> Result<(), TooLarge> {
        let Some(period) = self.period.take() else { return Ok(()) };
        self.samples += 1;
        self.deepest = self.deepest.max(self.stack.len());
        self.stack.reverse();
        let added = self.builder.add(&self.stack, period);
        self.stack.clear();
        added
    }
}

impl Script {
    /// Converts events, such as cycles, to nanoseconds: each sample stands for the time between two.
    #[must_use]
    pub fn in_nanoseconds(mut self, rate_hz: f64) -> Self {
        let total = u128::from(self.stacks.total());
        if self.is_time || total == 0 {
            return self;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and far below 2^64")]
        let time = (self.samples as f64 * 1e9 / rate_hz) as u128;
        for sample in &mut self.stacks.samples {
            let value = u128::from(sample.value) * time / total;
            sample.value = u64::try_from(value).unwrap_or(u64::MAX).max(1);
        }
        Self { is_time: true, ..self }
    }
}

/// Parses thread, period and event.
fn header(line: &str) -> Option<(u64, &str)> {
    let mut words = line.split_whitespace();
    let (_thread, period, event) = (words.next()?.parse::<u64>().ok()?, words.next()?, words.next()?);
    Some((period.parse().ok()?, event.strip_suffix(':')?))
}

/// Parses address, symbol and module; also returns whether the address is in the kernel.
fn parse_frame(line: &str) -> Option<(&str, &str, bool)> {
    let (address, rest) = line.trim().split_once(' ')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let rest = rest.trim_end().strip_suffix(')')?;
    // A file that was replaced while it ran.
    let rest = rest.strip_suffix(" (deleted)").unwrap_or(rest);
    let (symbol, module) = match rest.strip_prefix('(') {
        Some(module) => ("", module),
        // A path may have parentheses, too.
        None => match rest.find(" (/") {
            Some(at) => (&rest[..at], &rest[at + 2..]),
            None => rest.rsplit_once(" (")?,
        },
    };
    let module = if module == UNKNOWN { "" } else { module };
    Some((symbol.trim(), module, address >> 63 == 1 && module != "[vsyscall]"))
}

fn frame(symbol: &str, module: &str, kernel: bool) -> Frame {
    let module = match (kernel, is_kernel(module)) {
        (true, false) => KERNEL,
        // A program with such a name.
        (false, true) => module.trim_matches(['[', ']']),
        _ => module,
    };
    Frame::new(&demangled(symbol), "", module)
}

/// Returns the name of a Rust function as in its source, if perf has not done that.
fn demangled(symbol: &str) -> String {
    if let Ok(name) = rustc_demangle::try_demangle(symbol) {
        return format!("{name:#}");
    }
    // As perf writes older names: with a hash.
    let is_hash = |hash: &str| {
        hash.len() == 17 && hash.starts_with('h') && hash[1..].bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    match symbol.rsplit_once("::") {
        Some((name, hash)) if hash.is_ascii() && is_hash(hash) => name.to_owned(),
        _ => symbol.to_owned(),
    }
}

/// Returns the number after `lost`.
fn lost(line: &str) -> u64 {
    let after = line.rsplit_once("lost").map_or("", |(_, after)| after);
    after.split_whitespace().find_map(|word| word.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Script {
        let mut reader = Reader::default();
        for part in text.as_bytes().chunks(7) {
            reader.feed(part).expect("room");
        }
        reader.finish().expect("room")
    }

    fn named(script: &Script) -> Vec<(String, u64)> {
        let Script { stacks, .. } = script;
        let name = |sample| stacks.stack(sample).map(|frame| frame.function.as_str()).collect::<Vec<_>>().join(";");
        stacks.samples.iter().map(|sample| (name(sample), sample.value)).collect()
    }

    const PRINTED: &str = "\
  31958    1001001 cpu-clock:ppp: \n\
\tffffffff810cda34 nf_hook (bad) ([nf_tables])\n\
\tffffffff810cda30 do_syscall_64 ([kernel.kallsyms])\n\
\t            1140 operator()(int, char) (/tmp/a (b)/server (deleted))\n\
\t            11de _ZN10rust_hyper4site4hash17h0123456789abcdefE (/usr/bin/server)\n\
\t               0 [unknown] ([unknown])\n\
\n\
 31958 31.5: PERF_RECORD_LOST lost 12\n\
  31959    2000000 cpu-clock:ppp: \n\
\tffffffffff600000 [unknown] ([vsyscall])\n\
\t            11de core::fmt::write::h0123456789abcdef (/usr/bin/server)\n\
\n\
  31959    5 cpu-clock:ppp: \n\
\n";

    #[test]
    fn samples_are_read_root_first() {
        let script = read(PRINTED);
        let expected = [
            ("[unknown];rust_hyper::site::hash;operator()(int, char);do_syscall_64;nf_hook (bad)", 1_001_001),
            ("core::fmt::write;[unknown]", 2_000_000),
            ("[unknown]", 5),
        ];
        assert_eq!(named(&script), expected.map(|(stack, value)| (stack.to_owned(), value)));
        assert_eq!((script.samples, script.lost, script.is_time, script.deepest), (3, 12, true, 5));
        let modules: Vec<_> = script.stacks.frames.iter().map(|frame| (frame.module.as_str(), frame.kernel)).collect();
        let expected = [
            ("", false),
            ("/usr/bin/server", false),
            ("/tmp/a (b)/server", false),
            ("[kernel.kallsyms]", true),
            ("[nf_tables]", true),
            ("/usr/bin/server", false),
            ("[vsyscall]", false),
        ];
        assert_eq!(modules, expected);
    }

    #[test]
    fn cycles_become_time() {
        let script = read("1 300 cycles:P:\n\t1 a (/x)\n\n1 100 cycles:P:\n\t1 b (/x)\n\n").in_nanoseconds(1_000.0);
        assert_eq!(named(&script), [("a".to_owned(), 1_500_000), ("b".to_owned(), 500_000)]);
        assert!(script.is_time);
        let nothing = read("").in_nanoseconds(999.0);
        assert_eq!((nothing.samples, nothing.stacks), (0, Stacks::default()));
    }

    #[test]
    fn names_with_lines_of_their_own_are_skipped() {
        let hostile =
            "1 10 cpu-clock:\n\t1 <script>\n\n2 evil (/x)\n3 x\n(\n)\n\t4 after (/x)\n\n1 7 cpu-clock:\n\t5 b (/x)\n\n";
        let script = read(hostile);
        assert_eq!((script.samples, script.stacks.total()), (2, 17));
        let deep = format!("1 10 cpu-clock:\n{}\n", "\t1 f (/x)\n".repeat(5_000));
        assert_eq!((read(&deep).deepest, read(&deep).stacks.total()), (5_000, 10));
        let long = format!("1 10 cpu-clock:\n\t1 {} (/x)\n\t1 g (/x)\n\n", "n".repeat(100_000));
        assert_eq!(named(&read(&long)), [("g".to_owned(), 10)]);
    }

    #[test]
    fn rust_names_are_those_of_the_source() {
        assert_eq!(demangled("_RNvCskwGfYPst2Cb_3foo16example_function"), "foo::example_function");
        assert_eq!(demangled("std::rt::lang_start::hZZZ"), "std::rt::lang_start::hZZZ");
        assert_eq!(demangled("main"), "main");
        assert_eq!(demangled("é::hé1234567890123456"), "é::hé1234567890123456");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..10)) {
            let mut reader = Reader::default();
            for part in &parts {
                reader.feed(part).expect("room");
            }
            let _ = reader.finish();
        }
    }
}
