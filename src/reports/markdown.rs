//! A comparison as Markdown for a pull request: the result first, the rest folded. Pure.

use std::fmt::Write;

use crate::{
    compare::{
        cell::{Cell, Row},
        excluded::ExcludedRun,
        metric::Metric,
        note::Level,
        stat::Stat,
        trust::Trust,
        view::Comparison,
    },
    metrics,
    reports::profiles::Profiled,
    web::{format, markdown::plain},
};

/// The maximum number of warnings that are not folded.
const MAX_WARNINGS: usize = 3;

/// Renders the text.
pub fn text(comparison: &Comparison) -> String {
    let mut text = format!("### {}\n\n", plain(&comparison.title));
    for headline in &comparison.answer.headlines {
        let _ = writeln!(text, "- **{}.** {}", plain(&headline.line()), plain(&headline.details));
    }
    let Trust { level, text: why, .. } = &comparison.answer.trust;
    let _ = writeln!(text, "\n{}: {}", level.title(), plain(why));
    let warnings = comparison.notes_of(&Level::Doubt);
    if !warnings.is_empty() {
        text.push('\n');
    }
    for note in warnings.iter().take(MAX_WARNINGS) {
        let _ = writeln!(text, "> ⚠ **{}** {}\n>", plain(&note.title), plain(&note.text));
    }
    let _ = writeln!(text, "\n<details><summary>All figures: {}</summary>", plain(&comparison.shared));
    for row in &comparison.rows {
        text.push_str(&table(comparison, row));
    }
    let rest = warnings.into_iter().skip(MAX_WARNINGS).chain(comparison.notes_of(&Level::Info));
    let rest = rest.map(|note| format!("- **{}** {}", plain(&note.title), plain(&note.text)));
    let rest: Vec<String> = rest.chain(comparison.listed_excluded().iter().map(excluded)).collect();
    if !rest.is_empty() {
        let _ = writeln!(text, "\n{}", rest.join("\n"));
    }
    text.push_str(
        "\nThe figures differ as the differences say. Bold: significantly better than all others.\n\n</details>\n",
    );
    text
}

/// Renders profiles, folded.
pub fn profiles(all: &[Profiled]) -> String {
    let folded = all.iter().map(|Profiled { title, found }| {
        let text = match found {
            Ok(comparison) => crate::profiles::markdown::text(comparison),
            Err(why) => format!("{}\n", plain(why)),
        };
        format!("\n<details><summary>Profiles: {}</summary>\n\n{text}\n</details>\n", plain(title))
    });
    folded.collect()
}

fn excluded(run: &ExcludedRun) -> String {
    let ExcludedRun { run: _, subject, setting, repetition, state, reason } = run;
    let (subject, setting, state, reason) = (plain(subject), plain(setting), plain(state), plain(reason));
    format!("- excluded: {subject}, {setting}, repetition {repetition}: {state}, {reason}")
}

fn table(comparison: &Comparison, row: &Row) -> String {
    let metrics: Vec<Metric> =
        metrics::compared().filter(|metric| row.cells.iter().any(|cell| cell.stat(*metric).spread.is_some())).collect();
    let mut text = "\n".to_owned();
    if comparison.rows.len() > 1 {
        let _ = writeln!(text, "**{}**\n", plain(&row.setting.label));
    }
    let heads: Vec<String> = metrics.iter().map(|metric| format!(" {} |", metric.head())).collect();
    let _ = writeln!(text, "| target | runs |{}\n|---|--:|{}", heads.concat(), "--:|".repeat(metrics.len()));
    for cell in &row.cells {
        let name = comparison.subjects.get(cell.subject).map_or("", |subject| subject.label.as_str());
        let figures: Vec<String> = metrics.iter().map(|metric| format!(" {} |", figure(cell.stat(*metric)))).collect();
        let _ = writeln!(text, "| {} | {} |{}", plain(name), runs(cell), figures.concat());
    }
    text
}

fn runs(cell: &Cell) -> String {
    let (valid, all) = (cell.counts.counting(), cell.runs.len());
    if valid == all { all.to_string() } else { format!("{valid} of {all}") }
}

fn figure(stat: &Stat) -> String {
    let value = stat.figure();
    let value = if stat.best { format!("**{}**", value.text()) } else { value.text().to_owned() };
    let change = stat.change();
    if change == format::change(None) { value } else { format!("{value} ({})", change.text()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compare::testing::{failed, faster, run, sized},
        runs::model::Run,
        web::{markdown::render, series_style::Marks},
    };

    fn many(target: &str, factor: f64) -> Vec<Run> {
        (1..=8).map(|n| faster(run(target, n), factor * (1.0 + 0.001 * f64::from(n)))).collect()
    }

    #[test]
    fn the_result_comes_first_and_is_short() {
        let runs = [many("gosherve", 1.0), many("servy", 1.25)].concat();
        let text = text(&Comparison::new(runs, &Marks::default(), None));
        let (open, folded) = text.split_once("<details>").expect("something folded");
        assert!(
            open.starts_with(
                "### servy against gosherve\n\n- **servy is 25.0\u{a0}% faster than gosherve.** Throughput: +"
            ),
            "{open}"
        );
        assert!(open.lines().count() < 12, "{open}");
        assert!(folded.contains("| servy | 8 | **12,560** (+25.0\u{a0}%) |"), "{folded}");
        let html = render(&text).to_string();
        assert_eq!((html.matches("<table>").count(), html.matches("<strong>12,560").count()), (1, 1), "{html}");
    }

    #[test]
    fn each_setting_has_its_table_and_excluded_runs_are_listed() {
        let mut runs = vec![sized("a", 1, 1.0), sized("a", 2, 4.0)];
        runs.push(failed(sized("a", 3, 4.0), "it died | at once"));
        let text = text(&Comparison::new(runs, &Marks::default(), None));
        let html = render(&text).to_string();
        assert_eq!(html.matches("<table>").count(), 2, "{text}");
        assert!(html.contains("failed, it died | at once"), "{text}");
    }
}
