//! Tables for terminals: columns as wide as needed, numbers right-aligned, long names shortened.

use std::fmt::Write;

use brewbench::{
    catalog::model::short_size,
    live::status::RunNow,
    runs::{load, model::Run},
    web::format,
};
use brewbench_wire::{Phase, sanitize::is_obeyed};

/// Alignment of a column: text to the left, numbers to the right.
#[derive(Clone, Copy, PartialEq)]
enum Align {
    Left,
    Right,
}

/// The fewest columns of the terminal for text that is wrapped.
const MIN_WIDTH: usize = 20;

/// Formats items as a table that fits the terminal, or 80 columns without one. Titles of columns with numbers, which
/// are aligned to the right, start with `>`. Control characters are replaced.
pub fn table<T>(head: &[&str], items: impl IntoIterator<Item = T>, row: impl Fn(T) -> Vec<String>) -> String {
    table_within(textwrap::termwidth(), head, items.into_iter().map(row))
}

fn table_within(columns: usize, titles: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let head: Vec<_> = titles.iter().map(|title| column(title)).collect();
    let mut clean: Vec<Vec<String>> = rows.map(|row| row.iter().map(|cell| plain(cell)).collect()).collect();
    let width = |column: usize| {
        let cells = clean.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([head[column].0.chars().count()]).max().unwrap_or(0)
    };
    let mut widths: Vec<_> = (0..head.len()).map(width).collect();
    shrink(&mut widths, &head, columns);
    for row in &mut clean {
        for ((cell, width), (column, (_, align))) in row.iter_mut().zip(&widths).zip(head.iter().enumerate()) {
            if *align == Align::Left && column + 1 < head.len() {
                *cell = cut(cell, *width);
            }
        }
    }
    let mut text = String::new();
    let titles: Vec<_> = head.iter().map(|(title, _)| (*title).to_owned()).collect();
    for row in std::iter::once(&titles).chain(&clean) {
        let mut line = String::new();
        for (column, ((cell, width), (_, align))) in row.iter().zip(&widths).zip(&head).enumerate() {
            let _ = match align {
                Align::Left if column + 1 == head.len() => {
                    write!(line, "{}", wrapped(cell, line.chars().count(), columns))
                }
                Align::Left => write!(line, "{cell:<width$}  "),
                Align::Right => write!(line, "{cell:>width$}  "),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn column(title: &str) -> (&str, Align) {
    title.strip_prefix('>').map_or((title, Align::Left), |title| (title, Align::Right))
}

/// Shrinks columns of text, the widest first, until a table fits. The first column, often an id, keeps its width.
fn shrink(widths: &mut [usize], head: &[(&str, Align)], columns: usize) {
    const MIN_COLUMN: usize = 10;
    let Some(last) = head.len().checked_sub(1) else { return };
    loop {
        // The last column is wrapped if it is text.
        let end = if head[last].1 == Align::Left { widths[last].min(MIN_WIDTH) } else { widths[last] };
        let total = end + widths[..last].iter().map(|width| width + 2).sum::<usize>();
        let text = (1..last).filter(|column| head[*column].1 == Align::Left);
        let Some(widest) = text.max_by_key(|column| widths[*column]).filter(|column| widths[*column] > MIN_COLUMN)
        else {
            return;
        };
        if total <= columns {
            return;
        }
        widths[widest] -= 1;
    }
}

/// Wraps text that starts at column `indent` to the terminal's width, or to 80 columns without a terminal.
pub fn hanging(text: &str, indent: usize) -> String {
    wrapped(text, indent, textwrap::termwidth())
}

fn wrapped(text: &str, indent: usize, columns: usize) -> String {
    let width = columns.saturating_sub(indent).max(MIN_WIDTH);
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

/// Adds wrapped details below each row of a table, so that both fit 80 columns. Skips empty details. A line that starts
/// with a space continues the row above it: the first column is a name or an id.
pub fn with_below(table: &str, details: impl Iterator<Item = String>) -> String {
    let details = details.map(|line| if line.is_empty() { line } else { format!("  {}\n", hanging(&line, 2)) });
    let mut lines = table.split_inclusive('\n').peekable();
    let mut text = String::new();
    for below in [String::new()].into_iter().chain(details) {
        text.extend(lines.next());
        while let Some(rest) = lines.next_if(|line| line.starts_with(' ')) {
            text.push_str(rest);
        }
        text.push_str(&below);
    }
    text
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
    load::describe_with(&run.spec, load::describe).unwrap_or_else(|| "–".to_owned()).replace('\u{a0}', " ")
}

/// Formats a share from 0 to 1 as a percentage.
pub fn percent(share: Option<f64>) -> String {
    format::percent(share).text().replace('\u{a0}', " ")
}

/// Formats runs as a table that fits 80 columns. If loads differ, each is above its runs.
pub fn runs(runs: &[Run]) -> String {
    runs_now(runs, &[])
}

/// Does the same, with the current rates of runs in progress.
pub fn runs_now(runs: &[Run], now: &[RunNow]) -> String {
    if runs.is_empty() {
        return "no runs yet; `brewbench run new` submits runs\n".to_owned();
    }
    let loads_differ = runs.windows(2).any(|pair| load_text(&pair[0]) != load_text(&pair[1]));
    let head = ["id", "target", "size", ">rep", "state", ">req/s", ">p99 ms", ">failed"];
    let row = |run: &Run| {
        let size = run
            .spec
            .size
            .as_ref()
            .map_or("–".to_owned(), |size| short_size(size.vcpus, size.memory_bytes, size.replicas));
        let verdict = run.verdict.filter(|_| run.phase == Phase::Finished);
        let state = verdict.map_or(run.phase.describe(), |verdict| verdict.as_str().to_owned());
        // What is wrong with a profiled run matters less than that it is no measurement.
        let state = if run.spec.profiled && run.has_result() { "profiled".to_owned() } else { state };
        let failed = percent(run.figures.error_rate);
        let repetition = run.repetition.to_string();
        let rate = now.iter().find(|now| now.run == run.id).and_then(|now| now.rps);
        let rps = rate.map_or_else(|| figure(run.figures.rps), |rate| format!("now {}", figure(Some(rate))));
        let p99 = figure(run.figures.p99_ms);
        vec![short_id(run.id.as_str()), cut(&run.spec.target, 20), size, repetition, state, rps, p99, failed]
    };
    let rows = table(&head, runs, row);
    if loads_differ { with_loads(&rows, runs) } else { rows }
}

/// Adds the load above the runs that have it.
fn with_loads(rows: &str, runs: &[Run]) -> String {
    let mut lines = rows.lines();
    let mut text = lines.next().map_or_else(String::new, |head| format!("{head}\n"));
    let mut before = None;
    for (line, run) in lines.zip(runs) {
        let load = load_text(run);
        if before.as_ref() != Some(&load) {
            let _ = writeln!(text, "load: {}", hanging(&plain(&load), "load: ".len()));
        }
        before = Some(load);
        let _ = writeln!(text, "{line}");
    }
    text
}

/// Returns the last part of a version 7 UUID: it is random, and enough to identify a run or an experiment.
pub fn short_id(id: &str) -> String {
    id.rsplit('-').next().unwrap_or(id).to_owned()
}

/// Formats runs with their labels.
pub fn labels(runs: &[Run]) -> String {
    let id = |run: &Run| short_id(run.id.as_str());
    let row = |run: &Run| vec![id(run), cut(&run.spec.target, 20), run.labels.join(" · ")];
    let head = ["id", "target", "labels"];
    table(&head, runs, row)
}

/// Formats a duration in one unit, e.g. `47 h`. Negative ones become zero.
pub fn left(ms: i64) -> String {
    match ms.max(0) / 60_000 {
        minutes if minutes < 60 => format!("{minutes} min"),
        minutes if minutes < 48 * 60 => format!("{} h", minutes / 60),
        minutes => format!("{} days", minutes / (24 * 60)),
    }
}

/// Shortens text to `max` characters, with an ellipsis; between words if that leaves half of it.
pub fn cut(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let start: String = text.chars().take(max.saturating_sub(1)).collect();
    let ends_at_word = text[start.len()..].starts_with(' ');
    let word_end = start.rfind(' ').filter(|end| !ends_at_word && start[..*end].chars().count() >= max / 2);
    let start = word_end.map_or(start.as_str(), |end| &start[..=end]);
    format!("{start}…")
}

/// Shortens a name to `max` characters in its middle: names that differ often do so at their ends.
pub fn cut_middle(name: &str, max: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= max {
        return name.to_owned();
    }
    let tail = max / 2;
    let (start, end) = (&letters[..max - tail - 1], &letters[letters.len() - tail..]);
    start.iter().chain(&['…']).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use brewbench::runs::model::RunSpec;

    use super::*;
    use crate::testing::{finished, rate};

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
        let other = Run { spec: RunSpec { load: Some(rate(2_000, 10.0)), ..other.spec.clone() }, ..other };
        let text = runs(&[one, other]);
        assert!(text.contains("10 VUs") && text.contains("2,000 iterations/s"), "{text}");
    }

    #[test]
    fn details_follow_the_last_line_of_a_row_that_wraps() {
        let long = "word ".repeat(30);
        let rows = [["a", long.trim()], ["b", "short"]];
        let text = with_below(
            &table_within(60, &["name", "about"], rows.iter().map(|row| row.map(str::to_owned).to_vec())),
            ["detail of a".to_owned(), "detail of b".to_owned()].into_iter(),
        );
        let starts: Vec<_> = text.lines().filter(|line| !line.starts_with("   ")).collect();
        assert_eq!(starts.len(), 5, "{text}");
        assert!(text.ends_with("short\n  detail of b\n") && starts[2] == "  detail of a", "{text}");
    }

    #[test]
    fn names_cannot_control_the_terminal() {
        let text = table(&["name"], ["\u{1b}[2Jgone"], |name| vec![name.to_owned()]);
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }

    #[test]
    fn a_table_fits_the_terminal_and_words_stay_whole() {
        let head = ["id", "name", ">runs", "about"];
        let row = ["c35336598922", "demo: rust-hyper and go-nethttp, every night", "8/8", "on the machine in the rack"];
        let text = table_within(60, &head, std::iter::once(row.map(str::to_owned).to_vec()));
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        assert!(text.contains("c35336598922  demo: rust-hyper …"), "{text}");
        assert!(text.contains("on the machine in") && text.contains("the rack"), "{text}");
        assert_eq!(cut("one two three", 9), "one two …");
        assert_eq!(cut("incomprehensibilities", 9), "incompre…");
        assert_eq!(cut_middle("app (code 353b41b2)", 18), "app (cod…353b41b2)");
        assert_eq!(cut_middle("app", 3), "app");
    }

    #[test]
    fn runs_with_different_loads_fit_eighty_columns() {
        let long = Run {
            spec: RunSpec { target: "a-target-with-a-name-of-many-letters".to_owned(), ..finished("x", 1).spec },
            ..finished("x", 1)
        };
        let other = Run { spec: RunSpec { load: Some(rate(2_000, 10.0)), ..long.spec.clone() }, ..long.clone() };
        let text = runs(&[long.clone(), long, other]);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("load: ")).count(), 2, "{text}");
    }
}
