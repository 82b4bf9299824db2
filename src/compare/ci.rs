//! How a pipeline repeats a comparison of two targets: a command with the candidate's name. Pure.

use crate::{
    compare::{selection::By, view::Comparison},
    web::command_line::quoted,
};

/// The name of the baseline in the commands.
pub const BASELINE: &str = "main";

/// The proposed rules of the gate.
const RULES: [&str; 3] = ["rps<-5%", "p99>10%", "error_rate>0.1%"];

/// What a pipeline needs. Template: `compare/_ci.html`, variable `ci`.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// Ids of the runs of the baseline and of the candidate, separated by commas.
    pub sides: [String; 2],
    /// The command; none unless two targets are compared.
    pub command: Option<String>,
}

impl Pipeline {
    /// Returns what a pipeline needs to repeat a comparison of two.
    pub fn new(comparison: &Comparison) -> Option<Self> {
        let sides = comparison.sides()?;
        let (candidate, baseline) = comparison.pair()?;
        let are_targets = comparison.by == By::Target && candidate.target != baseline.target;
        let command = are_targets.then(|| command(&quoted(&candidate.target)));
        Some(Self { sides, command })
    }

    /// The rules that a form proposes.
    pub fn rules(&self) -> String {
        RULES.join(", ")
    }
}

fn command(candidate: &str) -> String {
    let rules: String = RULES.iter().flat_map(|rule| [" --fail-on ".to_owned(), quoted(rule)]).collect();
    format!(
        "brewbench run new --against {BASELINE} --target {candidate} --repeat 10 \\\n \
         {rules} \\\n  --markdown gate.md --junit gate.xml"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compare::testing::{repeated, run},
        web::series_style::Marks,
    };

    #[test]
    fn the_command_names_the_candidate() {
        let runs = ["it's", "servy"].into_iter().flat_map(|name| repeated(|n| run(name, n))).collect();
        let pipeline = Pipeline::new(&Comparison::new(runs, &Marks::default(), Some("servy"))).expect("two targets");
        let expected = r"brewbench run new --against main --target 'it'\''s' --repeat 10 \
  --fail-on 'rps<-5%' --fail-on 'p99>10%' --fail-on 'error_rate>0.1%' \
  --markdown gate.md --junit gate.xml";
        assert_eq!(pipeline.command.as_deref(), Some(expected));
        assert!(pipeline.sides[0].contains("servy-1") && pipeline.sides[1].contains("it's-1"), "{pipeline:?}");
        let alone = Comparison::new(repeated(|n| run("servy", n)).into_iter().collect(), &Marks::default(), None);
        assert!(Pipeline::new(&alone).is_none());
    }
}
