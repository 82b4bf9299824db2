//! The result as Markdown for a pull request: the headline first, the rest folded. Pure.

use std::fmt::Write;

use crate::{
    gate::{
        model::{Gate, Outcome, RuleCheck},
        picture,
    },
    web::{format, markdown::plain},
};

/// Renders the comment.
pub fn text(gate: &Gate) -> String {
    let Gate { outcome, headline, title, checks, notes, url, .. } = gate;
    let sign = match outcome {
        Outcome::Fine => "✅",
        Outcome::Regression => "❌",
        Outcome::CannotSay => "❔",
    };
    let mut text = format!("### {sign} {}\n\n{}\n", plain(headline), plain(title));
    if let Some(imported) = &gate.imported {
        let _ = writeln!(text, "\n{}", plain(imported));
    }
    // The deciding checks stay visible; passed checks are only counted.
    if *outcome != Outcome::Fine {
        text.push('\n');
    }
    for check in checks.iter().filter(|check| check.outcome == *outcome && check.outcome != Outcome::Fine) {
        let _ = writeln!(text, "- `{}` at {}: {}", check.rule, plain(&check.setting), plain(&check.reason));
    }
    if let Some(needed) = gate.needed().filter(|_| *outcome == Outcome::CannotSay) {
        let _ = writeln!(text, "\nMeasure about {needed} repetitions per side to decide.");
    }
    let runs_took = format::duration(Some(gate.measured_s()));
    let _ = write!(
        text,
        "\n<details><summary>{}, runs took {}</summary>\n\n{}",
        format::plural(checks.len(), "check"),
        runs_took.text(),
        table(checks)
    );
    if !notes.is_empty() {
        text.push('\n');
        for note in notes {
            let _ = writeln!(text, "- {}", plain(note));
        }
    }
    let _ = writeln!(text, "\n[All figures]({url})\n\n</details>");
    text
}

/// Draws the interval; the width of the characters must be equal.
fn picture(check: &RuleCheck) -> String {
    let text = picture::text(check);
    if text.is_empty() { text } else { format!("`{text}`") }
}

fn table(checks: &[RuleCheck]) -> String {
    let mut text =
        "| rule | setting | baseline | candidate | difference | `│` none, `┊` limit | repetitions | |\n".to_owned();
    text.push_str("|---|---|--:|--:|--:|---|--:|---|\n");
    for check in checks {
        let [base, new] = check.repetitions;
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} | {} | {} | {base} / {new} | {}: {} |",
            check.rule,
            plain(&check.setting),
            check.figure(check.baseline),
            check.figure(check.candidate),
            check.difference(),
            picture(check),
            check.outcome.sign(),
            plain(&check.reason),
        );
    }
    text
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::compare::metric::Metric;

    /// A regression, a passed rule and one that cannot say, with names that look like markup.
    pub fn gate() -> Gate {
        let check = |rule: &str, metric, outcome, reason: &str| RuleCheck {
            rule: rule.to_owned(),
            metric,
            setting: "2 vCPU | <b>".to_owned(),
            outcome,
            baseline: Some(10_000.0),
            candidate: Some(9_200.0),
            repetitions: [10, 9],
            change: Some(-0.08),
            interval: Some([-0.09, -0.07]),
            p: Some(0.001),
            needed: None,
            reason: reason.to_owned(),
            measured_s: 30.0,
        };
        Gate {
            alpha: 0.05,
            more: None,
            outcome: Outcome::Regression,
            headline: "Regression: throughput −8.0 % at 2 vCPU | <b>".to_owned(),
            title: "a \"branch\" & more against main".to_owned(),
            baseline: "main".to_owned(),
            candidate: "a \"branch\" & more".to_owned(),
            checks: vec![
                check("rps<-5%", Metric::Rps, Outcome::Regression, "−8.0 % is a significant difference beyond −5.0 %"),
                check("p99>10%", Metric::P99Ms, Outcome::Fine, "no clear difference"),
                check("max>10%", Metric::MaxMs, Outcome::CannotSay, "too few\u{1} repetitions"),
            ],
            imported: Some("All 19 runs were imported from k6 summaries by <ada>.".to_owned()),
            notes: vec!["1 run excluded: @all <script>".to_owned()],
            url: "http://localhost:1/compare?runs=a,b".to_owned(),
        }
    }

    #[test]
    fn the_headline_comes_first_and_the_rest_is_folded() {
        let text = text(&gate());
        let (open, folded) = text.split_once("<details>").expect("something folded");
        assert!(open.starts_with("### ❌ Regression: throughput −8.0 % at 2 vCPU"), "{open}");
        assert!(open.contains("\nAll 19 runs were imported"), "nobody here saw them: {open}");
        assert_eq!(open.matches("\n- ").count(), 1, "only the deciding check: {open}");
        assert!(folded.contains("| `p99>10%` |") && folded.trim_end().ends_with("</details>"), "{folded}");
        assert!(folded.contains("[All figures](http://localhost:1/compare?runs=a,b)"));
    }

    #[test]
    fn names_are_escaped() {
        let text = text(&gate());
        assert!(!text.contains("<script") && !text.contains("<b>") && !text.contains("@all"), "{text}");
        let row = text.lines().find(|line| line.starts_with("| `rps")).expect("a row");
        assert_eq!(row.replace("\\|", "").matches('|').count(), 9, "{row}");
    }
}
