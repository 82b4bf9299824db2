//! The list of an experiment's runs, folded if it is long. Template: `experiments/_runs.html`.

use brewbench_wire::Phase;

use crate::{
    compare::selection::with_versions,
    runs::{model::Run, pages::row::ListedRun, verdict::Verdict},
    web::series_style::Marks,
};

/// The most runs that are listed; further ones are only counted.
const MAX_LISTED: usize = 500;

/// The most runs that are listed without a fold.
const MAX_OPEN: usize = 8;

/// The runs of an experiment.
#[derive(Debug)]
pub struct RunList {
    /// The runs in order of execution.
    pub lines: Vec<ListedRun>,
    /// Number of runs that are not listed.
    pub unlisted: usize,
    /// Number of runs by verdict or phase, in the words of their badges.
    pub counts: Vec<(usize, &'static str)>,
}

/// The words of the badges in the order of the summary.
const WORDS: [&str; 12] = [
    "valid",
    "suspect",
    "invalid",
    "finished",
    "failed",
    "lost",
    "cancelled",
    "preparing",
    "warming up",
    "measuring",
    "collecting",
    "queued",
];

impl RunList {
    /// Creates the list.
    pub fn new(runs: Vec<Run>, marks: &Marks) -> Self {
        let runs = with_versions(runs);
        let counts = WORDS.map(|word| (runs.iter().filter(|run| self::word(run) == word).count(), word));
        let unlisted = runs.len().saturating_sub(MAX_LISTED);
        Self {
            counts: counts.into_iter().filter(|(count, _)| *count > 0).collect(),
            lines: runs.into_iter().take(MAX_LISTED).map(|run| ListedRun::new(run, marks)).collect(),
            unlisted,
        }
    }

    /// Whether the list is folded at first.
    pub fn is_folded(&self) -> bool {
        self.lines.len() > MAX_OPEN
    }

    /// Number of all runs.
    pub fn total(&self) -> usize {
        self.lines.len() + self.unlisted
    }

    /// The counts as text: `31 valid, 2 suspect, 7 queued`.
    pub fn summary(&self) -> String {
        self.counts.iter().map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
    }
}

/// Returns the word for the state of a run.
fn word(run: &Run) -> &'static str {
    match (run.phase, run.verdict) {
        (Phase::Finished, Some(Verdict::Valid)) => "valid",
        (Phase::Finished, Some(Verdict::Suspect)) => "suspect",
        (Phase::Finished, Some(Verdict::Invalid)) => "invalid",
        (Phase::Finished, None) => "finished",
        (Phase::Failed, _) => "failed",
        (Phase::Lost, _) => "lost",
        (Phase::Cancelled, _) => "cancelled",
        (Phase::Queued, _) => "queued",
        (Phase::Leased | Phase::Preparing, _) => "preparing",
        (Phase::WarmingUp, _) => "warming up",
        (Phase::Measuring, _) => "measuring",
        (Phase::Collecting, _) => "collecting",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::testing::{failed, finished, judged};

    fn list(valid: u32) -> RunList {
        let mut runs: Vec<Run> = (1..=valid).map(|repetition| finished("servy", repetition)).collect();
        runs.push(failed("servy", "failed", "the port was taken"));
        runs.push(judged(finished("gosherve", 1), Verdict::Suspect, "noisy"));
        RunList::new(runs, &Marks::default())
    }

    #[test]
    fn a_long_list_is_folded_under_its_counts() {
        let long = list(30);
        assert!(long.is_folded());
        assert_eq!(long.total(), 32);
        assert_eq!(long.summary(), "30 valid, 1 suspect, 1 failed");
    }

    #[test]
    fn a_short_list_is_open() {
        let short = list(2);
        assert_eq!((short.is_folded(), short.lines.len()), (false, 4));
    }

    #[test]
    fn the_list_is_bounded() {
        let runs = (1..=600).map(|_| failed("servy", "failed", "no")).collect();
        let list = RunList::new(runs, &Marks::default());
        assert_eq!((list.lines.len(), list.unlisted, list.total()), (500, 100, 600));
    }
}
