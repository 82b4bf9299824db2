//! Output of target and load generators during a run, and the search in it. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{app::ids::RunId, results::evidence::Evidence, runs::model::Run};

/// The longest text to search for, characters.
pub const MAX_GREP: usize = 200;

/// The last output of a run's target and load generators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunLogs {
    /// Id of the run.
    #[schema(value_type = String)]
    pub run: RunId,
    /// The target's; null while unknown, and for imported runs.
    pub target: Option<String>,
    /// Line numbers of `target`, from 1; only in a search, where it has only the matching lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_lines: Option<Vec<usize>>,
    /// The load generators', in the order of their segments; empty while unknown, and for imported runs.
    pub generators: Vec<GeneratorLog>,
}

/// The last output of one load generator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GeneratorLog {
    /// The agent that it ran on; null if unknown.
    pub agent: Option<String>,
    /// Its last output.
    pub log: String,
    /// Line numbers of `log`, from 1; only in a search, where it has only the matching lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<Vec<usize>>,
}

impl RunLogs {
    /// Collects the stored output of a run.
    pub fn new(run: &Run, evidence: Option<&Evidence>) -> Self {
        let generators = match evidence {
            None => Vec::new(),
            // A generator that failed the run of several has its log here.
            Some(evidence) if evidence.generators.is_empty() => {
                let agent = run.agent.clone().filter(|_| run.spec.generators.is_empty());
                vec![GeneratorLog { agent, log: evidence.generator_log.clone(), lines: None }]
            }
            Some(evidence) => evidence
                .generators
                .iter()
                .map(|one| GeneratorLog { agent: Some(one.agent.clone()), log: one.generator_log.clone(), lines: None })
                .collect(),
        };
        let target = evidence.and_then(|evidence| target_log(run, evidence));
        Self { run: run.id.clone(), target, target_lines: None, generators }
    }

    /// Keeps only the lines that contain a text.
    #[must_use]
    pub fn grep(self, text: &str) -> Self {
        let Self { run, target, target_lines: _, generators } = self;
        let found = |log: &str| -> (String, Vec<usize>) {
            matching_lines(log, text).map(|(number, line)| (format!("{line}\n"), number)).unzip()
        };
        let (target, target_lines) = target.map(|log| found(&log)).unzip();
        let generator = |GeneratorLog { agent, log, lines: _ }| {
            let (log, lines) = found(&log);
            GeneratorLog { agent, log, lines: Some(lines) }
        };
        Self { run, target, target_lines, generators: generators.into_iter().map(generator).collect() }
    }
}

/// Returns the lines that contain a text, with their numbers from 1. ASCII letters match in either case.
pub fn matching_lines<'a>(log: &'a str, text: &str) -> impl Iterator<Item = (usize, &'a str)> {
    let wanted = text.to_ascii_lowercase();
    let is_match = move |line: &str| line.to_ascii_lowercase().contains(&wanted);
    (1..).zip(log.lines()).filter(move |(_, line)| is_match(line))
}

/// Splits a line at the matches of a text: each piece with whether it matches.
pub fn pieces<'a>(line: &'a str, text: &str) -> Vec<(&'a str, bool)> {
    if text.is_empty() {
        return vec![(line, false)];
    }
    // Lower case of ASCII letters keeps the places of all bytes.
    let (lower, wanted) = (line.to_ascii_lowercase(), text.to_ascii_lowercase());
    let mut pieces = Vec::new();
    let mut end = 0;
    for (at, found) in lower.match_indices(&wanted) {
        pieces.extend([(&line[end..at], false), (&line[at..at + found.len()], true)]);
        end = at + found.len();
    }
    pieces.push((&line[end..], false));
    pieces.retain(|(piece, _)| !piece.is_empty());
    pieces
}

/// Returns the target's last output; None if another agent's part ended the run before its agent sent any.
pub fn target_log(run: &Run, evidence: &Evidence) -> Option<String> {
    let is_known = run.spec.generators.is_empty() || !evidence.environment.is_empty();
    is_known.then(|| evidence.target_log.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::testing::finished;

    #[test]
    fn a_search_keeps_matching_lines_with_their_numbers() {
        let evidence = Evidence {
            target_log: "listening\nERROR: full\nbye\nerror again".to_owned(),
            generator_log: "nothing".to_owned(),
            ..Evidence::default()
        };
        let logs = RunLogs::new(&finished("servy", 1), Some(&evidence)).grep("Error");
        assert_eq!((logs.target.as_deref(), logs.target_lines), (Some("ERROR: full\nerror again\n"), Some(vec![2, 4])));
        assert_eq!((logs.generators[0].log.as_str(), &logs.generators[0].lines), ("", &Some(Vec::new())));
    }

    #[test]
    fn matches_are_found_in_either_case_and_between_letters_of_any_alphabet() {
        assert_eq!(pieces("Ünlock ERR err", "err"), [("Ünlock ", false), ("ERR", true), (" ", false), ("err", true)]);
        assert_eq!(pieces("İ<b>", "<B>"), [("İ", false), ("<b>", true)]);
        assert_eq!(pieces("all", ""), [("all", false)]);
        assert_eq!(pieces("", "x"), []);
    }
}
