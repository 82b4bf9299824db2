//! Reports iterations that were interrupted at the end of the load: no metric contains them. Pure.

use brewbench_wire::reports::summary::Figures;

use crate::{
    results::verdict::{
        limits::{Limit, Limits},
        model::Context,
        records,
    },
    runs::verdict::{Reason, Unit, Verdict},
};

const CODE: &str = "iterations_interrupted";

pub(super) fn judge(figures: &Figures, context: &Context<'_>, limits: &Limits) -> Option<Reason> {
    let interrupted = records::interrupted(context);
    let all = figures.iterations.unwrap_or(0).saturating_add(interrupted);
    let (share, limit) = (interrupted as f64 / all.max(1) as f64, limits.get(Limit::IterationsInterrupted));
    let text = format!(
        "{} of {} iterations ({}) were still in progress at the end and were interrupted: no metric contains \
         them",
        records::count(interrupted),
        records::count(all),
        Unit::Share.text(share)
    );
    let reason = match share {
        share if share > limit => Reason::new(CODE, Verdict::Suspect, text),
        share if share > 0.0 => Reason::note(CODE, text),
        _ => return None,
    };
    Some(reason.with(share, limit, Unit::Share))
}
