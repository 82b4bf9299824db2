//! A bisection of commits: which one to measure next, and what is known. Pure.
//!
//! A commit counts as worse if the gate finds a regression from the good end, and as good if the gate rules one out. Each
//! may be wrong with the gate's error rate, so the commit that is left is measured once more, beside its parent: a wrong
//! one is named only if that comparison errs, too.

use crate::gate::model::Outcome;

/// What was found about a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// What the gate says of it, relative to the good end.
    Judged(Outcome),
    /// It has no valid run, for example because it can't be built.
    NoResult,
}

/// What to do next. Commits are numbered from 0, the good end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Measure a commit beside the good end. The first time, the bad end is measured, too.
    Measure(usize),
    /// Measure the last candidate beside its parent.
    Confirm(usize),
    /// It is this one.
    Found(usize),
    /// It is one of these, for this reason.
    Undecided(Vec<usize>, Reason),
    /// The bad end is not worse.
    NotWorse,
}

/// Why the search ends without a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The gate can't say whether a commit is worse.
    Noise,
    /// None of the commits that are left has a valid run.
    NoResult,
    /// Worse than the good end, but not by so much than its parent: several commits, or an error of a step.
    Gradual,
}

impl Reason {
    /// Returns the reason as a sentence.
    pub fn text(self) -> &'static str {
        match self {
            Self::Noise => "a comparison cannot say whether a commit is worse",
            Self::NoResult => "the other commits have no valid run",
            Self::Gradual => "no single commit is worse by so much than its parent",
        }
    }
}

/// A search among commits.
#[derive(Clone, Debug)]
pub struct Search {
    findings: Vec<Option<Finding>>,
    confirmed: Option<Outcome>,
}

impl Search {
    /// Starts a search among `count` commits; the last one is the bad end.
    pub fn new(count: usize) -> Self {
        Self { findings: vec![None; count], confirmed: None }
    }

    /// Notes what was found about a commit, relative to the good end.
    pub fn note(&mut self, commit: usize, finding: Finding) {
        if let Some(known) = self.findings.get_mut(commit) {
            *known = Some(finding);
        }
    }

    /// Notes what was found about the last candidate, relative to its parent.
    pub fn confirm(&mut self, outcome: Outcome) {
        self.confirmed = Some(outcome);
    }

    /// Returns the largest number of steps that are left unless some commits have no result.
    pub fn steps(&self) -> usize {
        let (low, high) = self.range();
        // One of them shows the bad end, too; one confirms what is left, unless that is the child of the good end.
        let halvings = (high - low).next_power_of_two().ilog2() as usize;
        halvings.max(1) + usize::from(high > 1 && self.confirmed.is_none())
    }

    /// Returns the newest commit that is not worse, and the oldest one that is.
    pub fn range(&self) -> (usize, usize) {
        let is = |outcome| move |at: &usize| self.findings[*at] == Some(Finding::Judged(outcome));
        let last = self.findings.len() - 1;
        let high = (1..=last).find(is(Outcome::Regression)).unwrap_or(last);
        let low = (1..high).rfind(is(Outcome::Fine)).unwrap_or(0);
        (low, high)
    }

    /// Decides what to do next.
    pub fn next(&self) -> Next {
        let last = self.findings.len() - 1;
        let (low, high) = self.range();
        let left = || (low + 1..=high).collect();
        match self.findings[last] {
            None | Some(Finding::Judged(Outcome::Regression)) => {}
            Some(Finding::Judged(Outcome::Fine)) => return Next::NotWorse,
            Some(Finding::Judged(Outcome::CannotSay)) => return Next::Undecided(left(), Reason::Noise),
            Some(Finding::NoResult) => return Next::Undecided(left(), Reason::NoResult),
        }
        let is_unclear = |at: usize| self.findings[at] == Some(Finding::Judged(Outcome::CannotSay));
        if (low + 1..high).any(is_unclear) {
            return Next::Undecided(left(), Reason::Noise);
        }
        if high - low > 1 || self.findings[last].is_none() {
            let middle = usize::midpoint(low, high).max(1);
            let open = (low + 1..high.max(2)).filter(|at| *at <= last && self.findings[*at].is_none());
            return open
                .min_by_key(|at| at.abs_diff(middle))
                .map_or_else(|| Next::Undecided(left(), Reason::NoResult), Next::Measure);
        }
        match self.confirmed {
            // It was measured beside its parent already.
            None if low == 0 => Next::Found(high),
            None => Next::Confirm(high),
            Some(Outcome::Regression) => Next::Found(high),
            Some(Outcome::CannotSay) => Next::Undecided(left(), Reason::Noise),
            Some(Outcome::Fine) => Next::Undecided((1..=last).collect(), Reason::Gradual),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches with a gate; returns the end and the number of steps.
    fn run(count: usize, mut gate: impl FnMut(usize, usize) -> Finding) -> (Next, usize) {
        let mut search = Search::new(count);
        for steps in 0.. {
            assert!(steps < 2 * count, "it goes on for ever");
            match search.next() {
                Next::Measure(commit) => {
                    if steps == 0 {
                        search.note(count - 1, gate(0, count - 1));
                    }
                    if commit != count - 1 {
                        search.note(commit, gate(0, commit));
                    }
                }
                Next::Confirm(commit) => match gate(commit - 1, commit) {
                    Finding::Judged(outcome) => search.confirm(outcome),
                    Finding::NoResult => search.confirm(Outcome::CannotSay),
                },
                end => return (end, steps),
            }
        }
        unreachable!()
    }

    /// A gate without errors: one commit is worse than its parent.
    fn sure(culprit: usize) -> impl Fn(usize, usize) -> Finding {
        move |base, new| {
            let is_worse = base < culprit && culprit <= new;
            Finding::Judged(if is_worse { Outcome::Regression } else { Outcome::Fine })
        }
    }

    #[test]
    fn every_commit_is_found_in_six_steps_of_32() {
        for count in 2..=33 {
            let most = Search::new(count).steps();
            for culprit in 1..count {
                let (end, steps) = run(count, sure(culprit));
                assert_eq!(end, Next::Found(culprit), "{count}");
                assert!(steps <= most, "{steps} steps of {most} for {culprit} of {count}");
            }
        }
        assert_eq!(Search::new(33).steps(), 6, "32 commits after the good end");
    }

    #[test]
    fn what_can_not_be_decided_is_left_open() {
        assert_eq!(run(9, |_, _| Finding::Judged(Outcome::Fine)).0, Next::NotWorse);
        let noisy = |base, new| match (base, new) {
            (_, 3) => Finding::Judged(Outcome::CannotSay),
            other => sure(4)(other.0, other.1),
        };
        assert_eq!(run(9, noisy).0, Next::Undecided(vec![3, 4], Reason::Noise));
        // A commit that can't be built is passed over.
        let broken = |base, new| if new == 4 { Finding::NoResult } else { sure(6)(base, new) };
        assert_eq!(run(9, broken).0, Next::Found(6));
        let beside = |base, new| if new == 4 { Finding::NoResult } else { sure(5)(base, new) };
        assert_eq!(run(9, beside).0, Next::Undecided(vec![4, 5], Reason::NoResult));
        // Two halves of a difference.
        let gradual = |base: usize, new: usize| {
            let worse = u8::from(base < 3 && new >= 3) + u8::from(base < 4 && new >= 4);
            Finding::Judged(if worse > 1 { Outcome::Regression } else { Outcome::Fine })
        };
        assert_eq!(run(9, gradual).0, Next::Undecided((1..9).collect(), Reason::Gradual));
    }

    #[test]
    fn a_wrong_step_is_noticed_at_the_end() {
        // The first half is wrongly called worse.
        let wrong = |base, new| match (base, new) {
            (0, 4) => Finding::Judged(Outcome::Regression),
            other => sure(6)(other.0, other.1),
        };
        assert_eq!(run(9, wrong).0, Next::Undecided((1..9).collect(), Reason::Gradual));
    }
}
