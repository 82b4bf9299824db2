//! How often the product's statistics are wrong and what they find, on noise whose truth is known.

pub mod change_points;

/// How the command is called that prints the tables.
pub const ASKED: &str = "self-check";

/// Prints the tables.
pub fn asked() -> anyhow::Result<()> {
    println!("{}", change_points::markdown(&change_points::table(1_000, 1)?));
    Ok(())
}
