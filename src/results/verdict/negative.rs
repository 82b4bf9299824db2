//! Reports times that are negative: the clock of k6's machine went back. Pure.

use brewbench_wire::reports::summary::Figures;

use crate::runs::verdict::Reason;

pub(super) fn judge(figures: &Figures) -> Option<Reason> {
    let metrics = figures.negative_minima.as_slice();
    let text = || {
        format!("k6 measured a negative minimum of {}, as it does on some clocks: it is unknown", metrics.join(", "))
    };
    (!metrics.is_empty()).then(|| Reason::note("negative_minimum", text()))
}
