//! Judges an import by the warnings of the reader of its file. Pure.

use brewbench_wire::reports::{
    summary::Figures,
    warning::{Severity, Warning},
};

use crate::runs::verdict::{Reason, Verdict};

pub(super) fn judge(figures: &Figures) -> impl Iterator<Item = Reason> {
    figures.warnings.iter().filter_map(|warning| {
        let code = match warning {
            // Other rules judge these.
            Warning::ConnectionsFailed { .. } | Warning::AllFailed { .. } => return None,
            Warning::NoLatency => "latency_unknown",
            Warning::NegativeTime { .. } | Warning::Overflow { .. } => "time_impossible",
            Warning::Capped { .. } => "latency_capped",
            Warning::RateMissed { .. } => "rate_missed",
            Warning::LoadUnknown(_) => "load_unknown",
            Warning::Incomplete(_) => "file_incomplete",
            Warning::Note(_) => "file_note",
        };
        let verdict = match warning.severity() {
            Severity::Note => Verdict::Valid,
            Severity::Suspect => Verdict::Suspect,
            Severity::Invalid => Verdict::Invalid,
        };
        Some(Reason::new(code, verdict, warning.to_string()))
    })
}
