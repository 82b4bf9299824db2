//! The tables of the self-check for the documentation.

mod gates;
mod nights;
mod pages;
mod plans;

use std::{
    fmt::{Display, Write},
    time::Instant,
};

use super::{change_points, tally::Share};

/// Returns a table with a number of rounds.
type Build = fn(usize) -> String;

/// Prints all tables, with `rounds` rounds per figure of equal programs and fewer where programs differ.
pub fn print(rounds: usize) -> anyhow::Result<()> {
    let tables: [(&str, Build); 10] = [
        ("within one experiment", pages::interleaved),
        ("minimum detectable effect", pages::detectable),
        ("questions", pages::questions),
        ("plans", plans::fewest),
        ("equal programs", plans::equal),
        ("two nights", nights::two),
        ("several experiments", nights::together),
        ("limits", gates::limits),
        ("until decided", gates::until_decided),
        ("gates of two nights", gates::nights),
    ];
    for (name, table) in tables {
        let start = Instant::now();
        println!("{}", table(rounds));
        eprintln!("{name}: {:.0?}", start.elapsed());
    }
    println!("### Change points\n\n{}", change_points::markdown(&change_points::table(rounds, 1)?));
    Ok(())
}

/// Rounds per figure of programs that differ: whether it is 80 or 83 % matters less than whether it is 3 or 5 %.
fn few(rounds: usize) -> usize {
    (rounds * 3 / 10).max(1)
}

/// A table in Markdown under a heading.
struct Table(String);

impl Table {
    /// Starts a table. Its first column is text, the others are figures.
    fn new(heading: &str, unit: &str, columns: &[&str]) -> Self {
        let rule = "--:|".repeat(columns.len() - 1);
        Self(format!("### {heading}\n\n{unit}\n\n| {} |\n|---|{rule}\n", columns.join(" | ")))
    }

    fn line(&mut self, name: impl Display, figures: &[String]) {
        let _ = writeln!(self.0, "| {name} | {} |", figures.join(" | "));
    }
}

fn percent(shares: &[Share]) -> Vec<String> {
    shares.iter().map(|share| share.percent()).collect()
}

/// Formats a factor as a change.
fn change(factor: f64) -> String {
    let text = format!("{:+.0} %", (factor - 1.0) * 100.0).replace('-', "−");
    if text == "+0 %" { "none".to_owned() } else { text }
}
