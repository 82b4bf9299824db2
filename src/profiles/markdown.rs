//! A comparison of profiles as Markdown for a pull request. Pure.

use std::fmt::Write;

use super::{
    model::{FunctionChange, ProfileComparison},
    words,
};
use crate::web::markdown::plain;

/// Renders the text: the conclusions, then the functions.
pub fn text(found: &ProfileComparison) -> String {
    let mut text = words::conclusions(found).iter().map(|line| render_sentence(line) + "\n\n").collect::<String>();
    let (baseline, candidate) = (plain(&found.baseline.label), plain(&found.candidate.label));
    let _ = writeln!(text, "| function | {baseline} | {candidate} | difference, {} | 95 % interval |", found.unit);
    let _ = writeln!(text, "|---|--:|--:|--:|---|");
    for FunctionChange { function, own, .. } in &found.functions {
        let difference = words::signed(own.difference);
        let difference = if own.is_significant { format!("**{difference}**") } else { difference };
        let [baseline, candidate] = [own.baseline, own.candidate].map(words::number);
        let (name, interval) = (code(function), words::interval(own));
        let _ = writeln!(text, "| {name} | {baseline} | {candidate} | {difference} | {interval} |");
    }
    text
}

/// Renders a sentence with names of functions between backticks.
fn render_sentence(text: &str) -> String {
    words::parts(text).map(|(is_name, part)| if is_name { code(part) } else { plain(part) }).collect()
}

/// Renders a name as code that is safe in a table, too.
fn code(name: &str) -> String {
    let name: String = name.chars().filter(|letter| !letter.is_control()).collect();
    format!("`{}`", name.replace('`', "'").replace('|', "\\|"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_code_and_cannot_break_out() {
        assert_eq!(render_sentence("most is in `a::<b>` | *x*"), "most is in `a::<b>` \\| \\*x\\*");
        assert_eq!(code("a`|\u{1b}[31m<script>"), "`a'\\|[31m<script>`");
    }
}
