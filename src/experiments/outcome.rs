//! The result of an experiment in one line.

use crate::{
    app::{error::Result, state::AppState},
    compare::{chosen::Options, view::Comparison},
    experiments::{model::Experiment, pages::what_came_of_it, progress::Progress},
    runs::model::Run,
    web::card::Card,
};

/// The first card of a comparison that compares anything. On the page of two targets it is about the challenger,
/// elsewhere its label says it.
pub(crate) fn answer(comparison: Comparison) -> Option<(String, Card)> {
    let challenger = comparison.pair().filter(|_| comparison.rows.len() == 1).map(|(one, _)| one.label.clone());
    // Where there are several settings, each has a card.
    let first = comparison.rows.iter().position(|row| row.rivals().count() > 1).unwrap_or(0);
    let place = if comparison.cards.len() > first && comparison.rows.len() > 1 { first } else { 0 };
    let card = comparison.cards.into_iter().nth(place)?;
    Some((challenger.unwrap_or_else(|| card.label.clone()), card))
}

pub(crate) async fn answer_of(
    state: &AppState,
    experiment: &Experiment,
    progress: &Progress,
    runs: &[Run],
) -> Result<Option<(String, Card)>> {
    let targets: Vec<&str> = experiment.plan.targets.iter().map(String::as_str).collect();
    let marks = crate::catalog::store::marks(&state.db.read, &targets).await?;
    Ok(what_came_of_it(state, progress, runs, &marks, Options::default()).await?.and_then(answer))
}
