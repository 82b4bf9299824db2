//! Damages the fixtures of the readers at random, and has them read: none may panic, take long, or return values that
//! can't have been measured.
//!
//! `cargo run --release -p brewbench-wire --example fuzz-reports -- 20` takes 20 seconds for each fixture and prints its
//! seed. `-- 20 SEED` repeats the same inputs, and `-- 20 SEED wrk.txt ab.txt` reads only these fixtures. An input that
//! shows an error is written to the folder for temporary files, and ends the program with 1.
//!
//! With `CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true` it finds sums that overflow, too.

#[path = "../tests/formats/sound.rs"]
mod sound;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use brewbench_wire::reports::formats::native;
use brewbench_wire::reports::hints::Hints;
use brewbench_wire::reports::parts::{Choice, Part, parts};
use brewbench_wire::reports::read::read;

/// The longest time of a read.
const SLOW: Duration = Duration::from_secs(2);

/// After which time a read is taken for endless.
const ENDLESS: Duration = Duration::from_mins(1);

/// The longest input, bytes.
const INPUT_MAX: usize = 1 << 20;

/// What readers may not expect. A text after a digit makes another number of it.
const TOKENS: [&str; 44] = [
    "-1",
    "0",
    "-0",
    "1e308",
    "-1e308",
    "1e-308",
    "1e999",
    "NaN",
    "nan",
    "inf",
    "Infinity",
    "99999999999999999999",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "0.1",
    ".",
    "1.",
    "e",
    "null",
    "true",
    "\"\"",
    "\"",
    "\\",
    "\n",
    "\r",
    "\t",
    "\0",
    ",",
    ";",
    ":",
    "|",
    "%",
    "é",
    "│",
    "\u{feff}",
    "{}",
    "[]",
    "}{",
];

/// A file of the folder of fixtures.
struct Fixture {
    name: String,
    /// The format of its first report.
    reader: &'static str,
    bytes: Vec<u8>,
}

/// Random numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number below another one, which may be zero.
    fn below(&mut self, end: usize) -> usize {
        let end = end.max(1) as u64;
        usize::try_from((self.next() >> 32) % end).unwrap_or_default()
    }

    fn token(&mut self) -> &'static str {
        let index = self.below(TOKENS.len());
        TOKENS.get(index).copied().unwrap_or_default()
    }

    /// Returns a part of some bytes, mostly a short one.
    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        let longest = if self.below(8) == 0 { length } else { 64 };
        start..(start + self.below(longest + 1)).min(length)
    }
}

/// What is read at the moment, and since when.
static CURRENT: Mutex<Option<(Instant, String, Vec<u8>)>> = Mutex::new(None);

/// The last panic.
static PANIC: Mutex<String> = Mutex::new(String::new());

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(seconds) = arguments.next().and_then(|text| text.parse().ok()).map(Duration::from_secs) else {
        eprintln!("usage: fuzz-reports SECONDS [SEED [FIXTURE...]]");
        return ExitCode::from(2);
    };
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_secs());
    let seed = arguments.next().and_then(|text| text.parse().ok()).unwrap_or_else(now);
    let chosen: Vec<String> = arguments.collect();
    println!("seed {seed}");
    std::panic::set_hook(Box::new(|panic| {
        *PANIC.lock().unwrap_or_else(PoisonError::into_inner) = panic.to_string();
    }));
    std::thread::spawn(watch);
    let all = fixtures();
    let mut inputs: BTreeMap<&str, (u64, f64)> = BTreeMap::new();
    for fixture in all.iter().filter(|fixture| chosen.is_empty() || chosen.contains(&fixture.name)) {
        let start = Instant::now();
        match fuzz(fixture, &all, seed, seconds) {
            Ok(count) => {
                let sum = inputs.entry(fixture.reader).or_default();
                *sum = (sum.0 + count, sum.1 + start.elapsed().as_secs_f64());
            }
            Err(what) => {
                println!("{what}");
                return ExitCode::FAILURE;
            }
        }
    }
    for (reader, (count, seconds)) in inputs {
        println!("{reader}: {count} inputs in {seconds:.0} s");
    }
    ExitCode::SUCCESS
}

/// Reads all fixtures but the text that describes them, the formats in their order.
fn fixtures() -> Vec<Fixture> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let paths = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut all: Vec<Fixture> = paths
        .filter_map(|path| {
            let name = path.file_name()?.to_string_lossy().into_owned();
            let bytes = std::fs::read(&path).ok()?;
            let reader =
                read(&bytes[..]).map_or("none", |contents| contents.reports.first().map_or("", |one| one.format));
            (name != "README.md").then_some(Fixture { name, reader, bytes })
        })
        .collect();
    all.sort_by(|left, right| (left.reader, &left.name).cmp(&(right.reader, &right.name)));
    all
}

/// Reads damaged copies of a fixture for some time, and returns how many.
fn fuzz(fixture: &Fixture, all: &[Fixture], seed: u64, time: Duration) -> Result<u64, String> {
    // Of its own, so that a fixture can be repeated alone.
    let own = fixture.name.bytes().fold(seed | 1, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mut random = Random(own | 1);
    let (start, mut count) = (Instant::now(), 0);
    while start.elapsed() < time {
        let input = damaged(&fixture.bytes, all, &mut random);
        *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((Instant::now(), fixture.name.clone(), input.clone()));
        if let Err(what) = examine(&input) {
            let path = written(&fixture.name, &input);
            return Err(format!("{}, seed {seed}, input {count}: {what}\n{path}", fixture.name));
        }
        count += 1;
    }
    *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = None;
    println!("{} ({}): {count} inputs", fixture.name, fixture.reader);
    Ok(count)
}

fn examine(input: &[u8]) -> Result<(), String> {
    let checked = || {
        let of_reports = read(input).map_or(Ok(()), |contents| contents.reports.iter().try_for_each(sound::check));
        let of_part = |part: &Part| sound::of_figures(&part.summary.figures());
        if let Ok(text) = std::str::from_utf8(input) {
            native::merged(&[text, text]);
        }
        of_reports.and_then(|()| {
            parts(input, &Hints::default(), Choice::All).map_or(Ok(()), |parts| parts.iter().try_for_each(of_part))
        })
    };
    let mut quickest = Duration::MAX;
    // A busy machine may be slow once.
    for _ in 0..3 {
        let start = Instant::now();
        match catch_unwind(AssertUnwindSafe(checked)) {
            Ok(found) => found?,
            Err(_) => return Err(PANIC.lock().unwrap_or_else(PoisonError::into_inner).clone()),
        }
        quickest = quickest.min(start.elapsed());
        if quickest < 2 * SLOW {
            return Ok(());
        }
    }
    Err(format!("was read, and then cut into parts, in {quickest:?}"))
}

/// Ends the program if a read does not end.
fn watch() {
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, name, input)) = current.as_ref().filter(|(start, ..)| start.elapsed() > ENDLESS) {
            println!("{name}: was not read in {ENDLESS:?}\n{}", written(name, input));
            std::process::exit(1);
        }
    }
}

fn written(name: &str, input: &[u8]) -> String {
    let path = std::env::temp_dir().join(format!("fuzz-reports-{}-{name}", std::process::id()));
    match std::fs::write(&path, input) {
        Ok(()) => path.display().to_string(),
        Err(error) => format!("{}: {error}", path.display()),
    }
}

/// Returns a copy with some damage.
fn damaged(bytes: &[u8], all: &[Fixture], random: &mut Random) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=random.below(6) {
        match random.below(12) {
            0 => flip(&mut bytes, random),
            1 | 2 => {
                let at = random.below(bytes.len() + 1);
                insert(&mut bytes, at, random.token().as_bytes());
            }
            3..=6 => replace_number(&mut bytes, random),
            7 => drop(bytes.drain(random.range(bytes.len()))),
            8 => {
                let part = bytes.get(random.range(bytes.len())).unwrap_or_default().to_vec();
                let at = random.below(bytes.len() + 1);
                insert(&mut bytes, at, &part);
            }
            9 => splice(&mut bytes, all, random),
            10 => lines(&mut bytes, random),
            _ if random.below(3) == 0 => bytes.truncate(random.below(bytes.len())),
            _ => brackets(&mut bytes, random),
        }
    }
    bytes.truncate(INPUT_MAX);
    bytes
}

fn insert(bytes: &mut Vec<u8>, at: usize, part: &[u8]) {
    bytes.splice(at..at, part.iter().copied());
}

fn flip(bytes: &mut [u8], random: &mut Random) {
    let at = random.below(bytes.len());
    let bit = random.below(8);
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << bit;
    }
}

/// Writes a token in place of a number, or of a part of it.
fn replace_number(bytes: &mut Vec<u8>, random: &mut Random) {
    let is_number = |byte: &u8| byte.is_ascii_digit() || b".-+eE".contains(byte);
    let mut from = random.below(bytes.len());
    if random.below(2) == 0 {
        // A value that has a name, because most of a histogram's have none.
        let names: Vec<usize> = (0..bytes.len()).filter(|at| bytes.get(*at) == Some(&b':')).collect();
        from = names.get(random.below(names.len())).copied().unwrap_or(from);
    }
    let Some(start) = bytes.iter().skip(from).position(u8::is_ascii_digit).map(|at| from + at) else { return };
    let length = bytes.iter().skip(start).take_while(|byte| is_number(byte)).count();
    let end = start + if random.below(4) == 0 { random.below(length) } else { length };
    bytes.splice(start..end, random.token().bytes());
}

/// Inserts a part of another fixture, or has the rest of it follow.
fn splice(bytes: &mut Vec<u8>, all: &[Fixture], random: &mut Random) {
    let Some(other) = all.get(random.below(all.len())) else { return };
    let at = random.below(bytes.len() + 1);
    if random.below(3) == 0 {
        bytes.truncate(at);
        bytes.extend_from_slice(other.bytes.get(random.below(other.bytes.len())..).unwrap_or_default());
    } else {
        insert(bytes, at, other.bytes.get(random.range(other.bytes.len())).unwrap_or_default());
    }
}

/// Removes, repeats or moves a line.
fn lines(bytes: &mut Vec<u8>, random: &mut Random) {
    let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    if lines.is_empty() {
        return;
    }
    let at = random.below(lines.len());
    match random.below(4) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(random.below(lines.len()), lines.get(at).copied().unwrap_or_default()),
        2 => {
            let other = random.below(lines.len());
            lines.swap(at, other);
        }
        _ => {
            let line = lines.get(at).copied().unwrap_or_default();
            let times = random.below(40);
            lines.splice(at..at, std::iter::repeat_n(line, times));
        }
    }
    *bytes = lines.concat();
}

/// Inserts many brackets that are open or closed.
fn brackets(bytes: &mut Vec<u8>, random: &mut Random) {
    let part = ["[", "{", "]", "}", "{\"a\":", "[[1],", "<a>", "("].get(random.below(8)).copied().unwrap_or_default();
    let depth = [3, 130, 2_000][random.below(3)];
    let at = random.below(bytes.len() + 1);
    insert(bytes, at, part.repeat(depth).as_bytes());
}
