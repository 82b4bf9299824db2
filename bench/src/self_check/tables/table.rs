//! A table in Markdown.

use std::fmt::{Display, Write};

use crate::self_check::tally::Share;

/// Rounds per figure of programs that differ: whether it is 80 or 83 % matters less than whether it is 3 or 5 %.
pub fn few(rounds: usize) -> usize {
    (rounds * 3 / 10).max(1)
}

/// A table in Markdown under a heading.
pub struct Table(pub String);

impl Table {
    /// Starts a table. Its first column is text, the others are figures.
    pub fn new(heading: &str, unit: &str, columns: &[&str]) -> Self {
        let rule = "--:|".repeat(columns.len() - 1);
        Self(format!("### {heading}\n\n{unit}\n\n| {} |\n|---|{rule}\n", columns.join(" | ")))
    }

    /// Adds a row.
    pub fn line(&mut self, name: impl Display, figures: &[String]) {
        let _ = writeln!(self.0, "| {name} | {} |", figures.join(" | "));
    }

    /// Returns the table.
    pub fn into_text(self) -> String {
        self.0
    }
}

/// Formats shares as percentages.
pub fn percent(shares: &[Share]) -> Vec<String> {
    shares.iter().map(|share| share.percent()).collect()
}

/// Formats a factor as a change.
pub fn change(factor: f64) -> String {
    let text = format!("{:+.0} %", (factor - 1.0) * 100.0).replace('-', "−");
    if text == "+0 %" { "none".to_owned() } else { text }
}
