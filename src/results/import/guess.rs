//! Guesses from the names of files and headings what was measured: proposals that a person confirms. Pure.

use crate::catalog::model::size_name;
use crate::runs::model::RunSize;

/// What a name says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Guess {
    /// The target.
    pub target: String,
    /// Its version.
    pub version: Option<String>,
    /// Its machine size.
    pub size: Option<RunSize>,
}

const MIB: u64 = 1024 * 1024;

/// Words of names that are no target: load generators, and what their files are called.
const OTHERS: [&str; 26] = [
    "k6",
    "wrk",
    "wrk2",
    "oha",
    "hey",
    "ab",
    "bombardier",
    "vegeta",
    "locust",
    "jmeter",
    "gatling",
    "artillery",
    "autocannon",
    "h2load",
    "fortio",
    "summary",
    "result",
    "results",
    "report",
    "output",
    "bench",
    "benchmark",
    "run",
    "rep",
    "repetition",
    "stats",
];

/// Separates words in names.
const BETWEEN: [char; 8] = ['-', '_', ' ', ',', '(', ')', ':', '='];

/// What a word of a name says.
enum Word<'a> {
    Version(&'a str),
    Vcpus(f64),
    Memory(u64),
    /// A load, a repetition, a load generator: in the file, or counted.
    Other,
    Target(&'a str),
}

/// Guesses from the path of a file: from its name, and from its folders what the name does not say.
pub fn of_path(path: &str) -> Guess {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let folders = path.rsplit('/').skip(1);
    let guess = folders.fold(of_text(stem), |guess, folder| {
        let above = of_text(folder);
        let target = if guess.target.is_empty() { above.target } else { guess.target };
        Guess { target, version: guess.version.or(above.version), size: guess.size.or(above.size) }
    });
    let target = if guess.target.is_empty() { stem.to_owned() } else { guess.target };
    Guess { target, ..guess }
}

/// Guesses from a heading.
pub fn of_heading(heading: &str) -> Guess {
    let guess = of_text(heading);
    let target = if guess.target.is_empty() { heading.to_owned() } else { guess.target };
    Guess { target, ..guess }
}

/// The target is empty if all words say something else.
fn of_text(text: &str) -> Guess {
    let (mut version, mut vcpus, mut memory, mut target) = (None, None, None, Vec::new());
    let words: Vec<&str> = text.split(BETWEEN).filter(|word| !word.is_empty()).collect();
    let last = words.len().saturating_sub(1);
    for (place, word) in words.iter().enumerate() {
        match of_word(word, place == last) {
            Word::Version(text) => version = version.or(Some(text.to_owned())),
            Word::Vcpus(count) => vcpus = vcpus.or(Some(count)),
            Word::Memory(bytes) => memory = memory.or(Some(bytes)),
            Word::Other => {}
            Word::Target(text) => target.push(text),
        }
    }
    let between = if text.contains(' ') { " " } else { "-" };
    let size =
        |(vcpus, memory_bytes)| RunSize { name: size_name(vcpus, memory_bytes, 1), vcpus, memory_bytes, replicas: 1 };
    Guess { target: target.join(between), version, size: vcpus.zip(memory).map(size) }
}

fn of_word(word: &str, is_last: bool) -> Word<'_> {
    let lower = word.to_lowercase();
    let count = |unit: &str| lower.strip_suffix(unit).and_then(|digits| digits.parse::<f64>().ok());
    let positive = |count: &f64| (0.01..=4096.0).contains(count);
    if let Some(cores) = ["vcpus", "vcpu", "cpus", "cpu", "cores", "core"].into_iter().find_map(count).filter(positive)
    {
        return Word::Vcpus(cores);
    }
    let memory = [("gib", 1024.0), ("gb", 1024.0), ("mib", 1.0), ("mb", 1.0)];
    if let Some((count, mib)) =
        memory.into_iter().find_map(|(unit, mib)| Some((count(unit)?, mib))).filter(|(count, _)| *count > 0.0)
    {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a float to integer cast saturates"
        )]
        return Word::Memory(((count * mib) as u64).saturating_mul(MIB));
    }
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let version = word.strip_prefix(['v', 'V']).unwrap_or(word);
    let parts = version.split('.').count();
    if version.split('.').all(is_number) && (parts > 1 || version.len() < word.len()) {
        return Word::Version(version);
    }
    let of_load = ["vus", "vu", "c", "connections", "conns", "users", "s", "rps"];
    let is_counted = ["run", "rep", "r", "#"].into_iter().any(|word| lower.strip_prefix(word).is_some_and(is_number));
    let is_repetition = is_last && is_number(word) && word.len() <= 3;
    if OTHERS.contains(&lower.as_str())
        || of_load.into_iter().any(|unit| count(unit).is_some())
        || is_counted
        || is_repetition
    {
        return Word::Other;
    }
    Word::Target(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_say_target_version_and_size() {
        let cases = [
            ("k6-servy-1vcpu-256mb.txt", ("servy", None, Some("1 vCPU / 256 MiB"))),
            ("old-server_run3.json", ("old-server", None, None)),
            ("go/2cpu-4gb/summary-1.json", ("go", None, Some("2 vCPU / 4 GiB"))),
            ("shop-v1.4.2.json", ("shop", Some("1.4.2"), None)),
            ("axum 0.8 (100c).txt", ("axum", Some("0.8"), None)),
            ("7.json", ("7", None, None)),
            ("results/k6.json", ("k6", None, None)),
            ("http2-server-2.json", ("http2-server", None, None)),
        ];
        for (path, (target, version, size)) in cases {
            let guess = of_path(path);
            let found =
                (guess.target.as_str(), guess.version.as_deref(), guess.size.as_ref().map(|size| size.name.as_str()));
            assert_eq!(found, (target, version, size), "{path}");
        }
        assert_eq!(of_heading("Results of the Go server").target, "of the Go server");
        assert_eq!(of_heading("wrk").target, "wrk");
    }
}
