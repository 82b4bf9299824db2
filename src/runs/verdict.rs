//! What a finished run is worth, and why: a pure judgement of its figures and of how it was made.
//!
//! The limits are strict on purpose: an implementation that answers errors quickly looks fast, and a wrong winner is
//! worse than a run too few.

use brewbench_agent::wire::{
    outcome::{Enforced, Mechanism},
    summary::Figures,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a finished run is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Its figures mean what they say.
    Valid,
    /// They may; the reasons say what to look at.
    Suspect,
    /// They don't: it never wins and never enters a median.
    Invalid,
}

impl Verdict {
    /// The word for columns and pages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Suspect => "suspect",
            Self::Invalid => "invalid",
        }
    }
}

impl std::str::FromStr for Verdict {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Valid, Self::Suspect, Self::Invalid]
            .into_iter()
            .find(|verdict| verdict.as_str() == text)
            .ok_or_else(|| format!("{text:?} is no verdict"))
    }
}

/// One thing that speaks against a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Reason {
    /// For scripts, e.g. `requests_failed`.
    pub code: String,
    /// How much it weighs.
    pub verdict: Verdict,
    /// A sentence with the figure seen and the limit.
    pub text: String,
}

/// How a run was made, where one of our agents made it.
#[derive(Clone, Copy, Debug)]
pub struct Making {
    /// What held the target to its size.
    pub enforced: Enforced,
    /// Whether k6 ran on cores that the target could use too.
    pub shared_cores: SharedCores,
    /// Processes of the target that ran out of memory.
    pub oom_kills: u64,
    /// How many iterations the load begins, where that does not depend on the target.
    pub iterations_asked: Option<f64>,
}

/// Whether target and generator had cores of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedCores {
    /// They could take time from each other.
    Shared,
    /// Each had its own.
    Separate,
}

/// The share of failed requests or checks from which figures mean nothing.
const FAILED_LIMIT: f64 = 0.01;

/// The share of a rate that k6 must have made. One iteration less is its rounding.
const RATE_KEPT: f64 = 0.99;

/// Judges a whole summary; `making` is absent for an import.
pub fn judge(figures: &Figures, making: Option<Making>) -> (Verdict, Vec<Reason>) {
    let mut reasons = Vec::new();
    judge_requests(figures, &mut reasons);
    judge_checks(figures, &mut reasons);
    judge_rate(figures, making.and_then(|making| making.iterations_asked), &mut reasons);
    if let Some(making) = making {
        judge_making(making, &mut reasons);
    }
    let verdict = if reasons.iter().any(|reason| reason.verdict == Verdict::Invalid) {
        Verdict::Invalid
    } else if reasons.is_empty() {
        Verdict::Valid
    } else {
        Verdict::Suspect
    };
    (verdict, reasons)
}

fn judge_requests(figures: &Figures, reasons: &mut Vec<Reason>) {
    if figures.requests == 0 {
        reasons.push(reason("no_requests", Verdict::Invalid, "not one request was made".to_owned()));
        return;
    }
    let Some(failed) = figures.failed else {
        let text = "the summary does not say how many requests failed".to_owned();
        return reasons.push(reason("failures_unknown", Verdict::Suspect, text));
    };
    if failed == figures.requests {
        let text = format!("all {failed} requests failed: the target was down or answered only errors");
        reasons.push(reason("no_success", Verdict::Invalid, text));
    } else if failed > 0 {
        reasons.push(share("requests_failed", "requests", failed, figures.requests));
    }
}

fn judge_checks(figures: &Figures, reasons: &mut Vec<Reason>) {
    let failed = figures.checks_failed.unwrap_or(0);
    if failed > 0 {
        reasons.push(share("checks_failed", "checks", failed, failed + figures.checks_passed.unwrap_or(0)));
    }
}

/// An open load is only what it says if its iterations began when they should have.
fn judge_rate(figures: &Figures, asked: Option<f64>, reasons: &mut Vec<Reason>) {
    let done = figures.iterations.unwrap_or(0);
    let dropped = figures.dropped_iterations.unwrap_or(0);
    if dropped > 0 {
        let (of, percent) = (done + dropped, dropped as f64 / (done + dropped) as f64 * 100.0);
        let text = format!(
            "k6 could not start {dropped} of {of} iterations in time ({percent:.2} %), because all its virtual users \
             were busy: less load than asked for"
        );
        reasons.push(reason("iterations_dropped", Verdict::Suspect, text));
    } else if let Some(asked) = asked.filter(|asked| (done as f64) < asked * RATE_KEPT - 1.0) {
        let percent = done as f64 / asked * 100.0;
        let text = format!(
            "k6 made {done} iterations of the {asked:.0} that the rate asks for ({percent:.1} %): less load than asked for"
        );
        reasons.push(reason("rate_not_kept", Verdict::Suspect, text));
    }
}

fn judge_making(making: Making, reasons: &mut Vec<Reason>) {
    let lacking: Vec<_> = [("CPU", making.enforced.cpu), ("memory", making.enforced.memory)]
        .into_iter()
        .filter(|(_, mechanism)| *mechanism == Mechanism::None)
        .map(|(what, _)| what)
        .collect();
    if !lacking.is_empty() {
        let text = format!("the machine size was not enforced: nothing limited {}", lacking.join(" and "));
        reasons.push(reason("size_not_enforced", Verdict::Suspect, text));
    }
    if making.shared_cores == SharedCores::Shared {
        let text = "k6 had no core of its own: it took time from the target".to_owned();
        reasons.push(reason("shared_cores", Verdict::Suspect, text));
    }
    if making.oom_kills > 0 {
        let text = format!("the kernel killed {} processes of the target: out of memory", making.oom_kills);
        reasons.push(reason("oom_killed", Verdict::Invalid, text));
    }
}

/// A share of failures: invalid over the limit, suspect below.
fn share(code: &str, what: &str, failed: u64, of: u64) -> Reason {
    let rate = failed as f64 / of as f64;
    let verdict = if rate > FAILED_LIMIT { Verdict::Invalid } else { Verdict::Suspect };
    let text =
        format!("{failed} of {of} {what} failed: {:.2} %, the limit is {} %", rate * 100.0, FAILED_LIMIT * 100.0);
    reason(code, verdict, text)
}

fn reason(code: &str, verdict: Verdict, text: String) -> Reason {
    Reason { code: code.to_owned(), verdict, text }
}
