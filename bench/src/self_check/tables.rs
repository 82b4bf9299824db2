//! The tables of the self-check for the documentation.

mod fed;
mod gates;
mod nights;
mod pages;
mod plans;
mod table;
mod trends;

use std::time::Instant;

use super::change_points;

/// Returns a table with a number of rounds.
type Build = fn(usize) -> String;

/// Prints all tables, with `rounds` rounds per figure of equal programs and fewer where programs differ.
pub fn print(rounds: usize) -> anyhow::Result<()> {
    let tables: [(&str, Build); 14] = [
        ("within one experiment", pages::interleaved),
        ("minimum detectable effect", pages::detectable),
        ("fed", fed::worlds),
        ("questions", pages::questions),
        ("plans", plans::fewest),
        ("equal programs", plans::equal),
        ("two nights", nights::two),
        ("several experiments", nights::together),
        ("limits", gates::limits),
        ("until decided", gates::until_decided),
        ("gates of two nights", gates::nights),
        ("bisections", gates::bisections),
        ("sweep knees", trends::knees),
        ("nightly looks", trends::nightly),
    ];
    for (name, table) in tables {
        let start = Instant::now();
        println!("{}", table(rounds));
        eprintln!("{name}: {:.0?}", start.elapsed());
    }
    println!("### Change points\n\n{}", change_points::markdown(&change_points::table(rounds, 1)?));
    Ok(())
}
