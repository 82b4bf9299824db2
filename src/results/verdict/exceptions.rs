//! Checks how many iterations of the script ended with an exception, so that they did a part of their work only. Pure.

use brewbench_agent::reports::summary::Figures;

use crate::{
    results::verdict::{
        limits::{Limit, Limits},
        load::share,
        model::Context,
        records::{described, messages},
    },
    runs::verdict::Reason,
};

pub(super) fn judge(figures: &Figures, context: &Context<'_>, limits: &Limits) -> Option<Reason> {
    let (thrown, first) = messages(context, |record| record.exceptions.as_ref())?;
    let bounds = [Limit::IterationsFailed, Limit::IterationsFailedInvalid].map(|limit| limits.get(limit));
    let all = figures.iterations.unwrap_or(0).max(thrown);
    let reason = share("iterations_failed", "iterations", thrown, all, bounds)?;
    let why = first.map_or(String::new(), |first| format!(", with an exception: {}", described(first)));
    Some(Reason { text: format!("{}{why}", reason.text), ..reason })
}
