//! Tables for terminals: columns as wide as needed, numbers right-aligned, long names shortened.

use std::fmt::Write;

use brewbench_agent::{sanitize::is_obeyed, wire::Phase};

use crate::{
    app::ids::RunId,
    live::status::RunNow,
    runs::{load, model::Run},
    web::format,
};

/// Alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// For text.
    Left,
    /// For numbers.
    Right,
}

/// Formats a table with a header. Control characters in cells are replaced.
pub fn table(head: &[(&str, Align)], rows: &[Vec<String>]) -> String {
    let clean: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| plain(cell)).collect()).collect();
    let width = |column: usize| {
        let cells = clean.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([head[column].0.chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..head.len()).map(width).collect();
    let mut text = String::new();
    let titles: Vec<_> = head.iter().map(|(title, _)| (*title).to_owned()).collect();
    for row in std::iter::once(&titles).chain(&clean) {
        let mut line = String::new();
        for (column, ((cell, width), (_, align))) in row.iter().zip(&widths).zip(head).enumerate() {
            let _ = match align {
                Align::Left if column + 1 == head.len() => write!(line, "{}", hanging(cell, line.chars().count())),
                Align::Left => write!(line, "{cell:<width$}  "),
                Align::Right => write!(line, "{cell:>width$}  "),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Wraps text that starts at column `indent` to the terminal's width, or to 80 columns without a terminal.
pub fn hanging(text: &str, indent: usize) -> String {
    const MIN_WIDTH: usize = 20;
    let width = textwrap::termwidth().saturating_sub(indent).max(MIN_WIDTH);
    textwrap::wrap(text, at_spaces(width)).join(&format!("\n{}", " ".repeat(indent)))
}

/// Wraps lines at spaces only: `bench-02` and `--min-effect` can be copied from any line.
pub fn at_spaces<'a>(width: usize) -> textwrap::Options<'a> {
    textwrap::Options::new(width).word_splitter(textwrap::WordSplitter::NoHyphenation)
}

/// Formats lines, replacing control characters.
pub fn lines<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.flat_map(|line| [plain(line), "\n".to_owned()]).collect()
}

/// Adds a line of details below each row of a table, so that both fit 80 columns. Skips empty details.
pub fn with_below(table: &str, details: impl Iterator<Item = String>) -> String {
    let details = details.map(|line| if line.is_empty() { line } else { format!("  {}\n", cut(&line, 78)) });
    let below = [String::new()].into_iter().chain(details);
    table.lines().zip(below).map(|(line, below)| [line, "\n", &below].concat()).collect()
}

/// Replaces control characters, which a terminal would interpret.
pub fn plain(text: &str) -> String {
    text.chars().map(|letter| if is_obeyed(letter) { '\u{fffd}' } else { letter }).collect()
}

/// Formats a number with four significant digits; `–` if unknown.
pub fn figure(value: Option<f64>) -> String {
    let Some(value) = value else { return "–".to_owned() };
    match value.abs() {
        size if size >= 1_000.0 => thousands(value),
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Formats an integer with thousands separators.
pub fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits.as_str()), |rest| ("-", rest));
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    format!("{sign}{text}")
}

/// Summarizes the load of a run.
fn load_text(run: &Run) -> String {
    run.load.as_ref().map_or("–".to_owned(), load::words).replace('\u{a0}', " ")
}

/// Formats a share from 0 to 1 as a percentage.
pub fn percent(share: Option<f64>) -> String {
    format::percent(share).text().replace('\u{a0}', " ")
}

/// Formats runs as a table that fits 80 columns. Has a column for loads if they differ.
pub fn runs(runs: &[Run]) -> String {
    runs_now(runs, &[])
}

/// Does the same, with the current rates of runs in progress.
pub fn runs_now(runs: &[Run], now: &[RunNow]) -> String {
    if runs.is_empty() {
        return "no runs yet; `brewbench run new` submits runs\n".to_owned();
    }
    let loads_differ = runs.windows(2).any(|pair| load_text(&pair[0]) != load_text(&pair[1]));
    let mut head = vec![
        ("id", Align::Left),
        ("target", Align::Left),
        ("size", Align::Left),
        ("rep", Align::Right),
        ("state", Align::Left),
        ("req/s", Align::Right),
        ("p99 ms", Align::Right),
        ("failed", Align::Right),
    ];
    head.extend(loads_differ.then_some(("load", Align::Left)));
    let row = |run: &Run| {
        let size = run.size.as_ref().map_or("–".to_owned(), |size| short_size(size.vcpus, size.memory_bytes));
        let verdict = run.verdict.filter(|_| run.phase == Phase::Finished);
        let state = verdict.map_or(run.phase.words(), |verdict| verdict.as_str().to_owned());
        let failed = percent(run.figures.error_rate);
        let repetition = run.repetition.to_string();
        let rate = now.iter().find(|now| now.run == run.id).and_then(|now| now.rps);
        let rps = rate.map_or_else(|| figure(run.figures.rps), |rate| format!("now {}", figure(Some(rate))));
        let p99 = figure(run.figures.p99_ms);
        let mut cells = vec![short_id(&run.id), cut(&run.target, 20), size, repetition, state, rps, p99, failed];
        cells.extend(loads_differ.then(|| cut(&load_text(run), 40)));
        cells
    };
    table(&head, &runs.iter().map(row).collect::<Vec<_>>())
}

/// Returns the last part of a version 7 UUID: it is random, and enough to identify a run.
pub fn short_id(id: &RunId) -> String {
    let id = id.as_str();
    id.rsplit('-').next().unwrap_or(id).to_owned()
}

/// Formats runs with their labels.
pub fn labels(runs: &[Run]) -> String {
    let id = |run: &Run| short_id(&run.id);
    let row = |run: &Run| vec![id(run), cut(&run.target, 20), run.labels.join(" · ")];
    let head = [("id", Align::Left), ("target", Align::Left), ("labels", Align::Left)];
    table(&head, &runs.iter().map(row).collect::<Vec<_>>())
}

/// Formats a size in short form, e.g. `2/4GiB`.
pub fn short_size(vcpus: f64, memory_bytes: u64) -> String {
    let mib = memory_bytes / (1024 * 1024);
    if mib >= 1024 && mib.is_multiple_of(1024) {
        format!("{vcpus}/{}GiB", mib / 1024)
    } else {
        format!("{vcpus}/{mib}MiB")
    }
}

/// Formats a duration in one unit, e.g. `47 h`. Negative ones become zero.
pub fn left(ms: i64) -> String {
    match ms.max(0) / 60_000 {
        minutes if minutes < 60 => format!("{minutes} min"),
        minutes if minutes < 48 * 60 => format!("{} h", minutes / 60),
        minutes => format!("{} days", minutes / (24 * 60)),
    }
}

/// Shortens text to `max` characters, with an ellipsis.
pub fn cut(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    text.chars().take(max.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::{load::tests::rate, testing::finished};

    #[test]
    fn figures_have_four_digits_and_unknown_ones_are_dashes() {
        let texts = [Some(12_345.6), Some(123.45), Some(12.345), Some(0.123_45), None].map(figure);
        assert_eq!(texts, ["12,346", "123.5", "12.35", "0.123", "–"]);
        assert_eq!(thousands(1_234_567_890.0), "1,234,567,890");
        assert_eq!(thousands(-1_000.0), "-1,000");
    }

    #[test]
    fn loads_are_shown_if_they_differ() {
        let (one, other) = (finished("servy", 1), finished("servy", 2));
        assert!(!runs(&[one.clone(), other.clone()]).contains("VUs"));
        let other = Run { load: Some(rate(2_000, 10.0)), ..other };
        let text = runs(&[one, other]);
        assert!(text.contains("10 VUs") && text.contains("2,000 iterations/s"), "{text}");
    }

    #[test]
    fn names_cannot_control_the_terminal() {
        let text = table(&[("name", Align::Left)], &[vec!["\u{1b}[2Jgone".to_owned()]]);
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }
}
