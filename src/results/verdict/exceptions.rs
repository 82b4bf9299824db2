//! Checks how many iterations of the script ended with an exception, so that they did a part of their work only. Pure.

use brewbench_wire::reports::summary::Figures;

use crate::{
    results::verdict::{
        limits::{Limit, Limits},
        load::share,
        model::Context,
        records::{count, described, messages},
    },
    runs::verdict::Reason,
};

/// The code of the reason.
pub(super) const CODE: &str = "iterations_failed";

pub(super) fn judge(figures: &Figures, context: &Context<'_>, limits: &Limits) -> Option<Reason> {
    let (thrown, first) = messages(context, |record| record.exceptions.as_ref())?;
    let bounds = [Limit::IterationsFailed, Limit::IterationsFailedInvalid].map(|limit| limits.get(limit));
    let all = figures.iterations.unwrap_or(0).max(thrown);
    let reason = share(CODE, "iterations", thrown, all, bounds)?;
    let first = first.map_or_else(String::new, |first| format!(": {}", described(first)));
    let text = format!("{} of {} iterations ended with an exception{first}", count(thrown), count(all));
    Some(Reason { text, ..reason })
}
