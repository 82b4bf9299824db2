//! Judges connections that wrk could not open: the load came from fewer than requested. Pure.

use brewbench_wire::reports::summary::{Connections, Figures};

use crate::{
    results::verdict::records::count,
    runs::verdict::{Reason, Unit, Verdict},
};

pub(super) fn judge(figures: &Figures) -> Option<Reason> {
    let Connections { requested, failed } = figures.connections.filter(|it| it.failed > 0 && it.requested > 0)?;
    let share = failed as f64 / requested as f64;
    let open = figures.vus_max.filter(|open| *open < requested).map(count);
    let [requested, failed] = [requested, failed].map(count);
    let text = match (figures.vus_max, open) {
        (_, Some(open)) => {
            format!("{failed} of {requested} connections could not be opened: the load came from {open}")
        }
        (Some(_), None) => format!("{failed} of {requested} connections could not be opened"),
        (None, None) => format!(
            "a connection could not be opened {failed} times, with {requested} requested: how many made the load is \
             unknown"
        ),
    };
    let reason = if share > Connections::FEW_FAILED {
        Reason::new("connections_failed", Verdict::Suspect, text)
    } else {
        Reason::note("connections_failed", text)
    };
    Some(reason.with(share, Connections::FEW_FAILED, Unit::Share))
}
