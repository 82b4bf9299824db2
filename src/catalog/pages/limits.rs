//! The limits of a scenario on its page: each with its default and its reason, and a form to change them.

use std::collections::BTreeMap;

use axum::{
    Form,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};

use super::scenarios;
use crate::{
    app::{
        error::{Error, Result},
        state::AppState,
    },
    auth::caller::Submit,
    results::{
        store::verdicts::ScenarioLimits,
        verdict::limits::{Limit, Limits},
    },
    web::{
        address,
        time_ago::{self, Moment},
    },
};

/// What the page shows of them.
#[derive(Debug)]
pub struct LimitsPart {
    /// In the order in which people see them.
    pub rows: Vec<Row>,
    /// When they were changed last, and by whom.
    changed: Option<(i64, String)>,
    /// What is wrong with what was typed.
    pub fault: Option<String>,
}

/// One limit.
#[derive(Debug)]
pub struct Row {
    /// Names it.
    pub name: &'static str,
    /// What it is, in a few words.
    pub what: &'static str,
    /// Why the default is what it is.
    pub why: &'static str,
    /// As it is or was typed.
    pub value: String,
    /// As it usually is.
    pub default: String,
    /// Whether it is not as usual.
    pub is_set: bool,
}

impl LimitsPart {
    /// As they are stored.
    pub fn new(stored: ScenarioLimits) -> Self {
        let row = |limit: Limit| {
            let (about, value) = (limit.about(), stored.limits.of(limit));
            let text = |value| about.unit.text(value);
            let is_set = value.total_cmp(&about.default).is_ne();
            let (value, default) = (text(value), text(about.default));
            Row { name: about.name, what: about.what, why: about.why, value, default, is_set }
        };
        Self { rows: Limit::ALL.into_iter().map(row).collect(), changed: stored.changed, fault: None }
    }

    /// As they were typed, with what is wrong.
    #[must_use]
    pub fn typed(self, typed: &BTreeMap<String, String>, fault: String) -> Self {
        let again = |row: Row| Row { value: typed.get(row.name).cloned().unwrap_or(row.value), ..row };
        Self { rows: self.rows.into_iter().map(again).collect(), fault: Some(fault), ..self }
    }

    /// Whether any is not as usual.
    pub fn any_set(&self) -> bool {
        self.rows.iter().any(|row| row.is_set)
    }

    /// Who changed them last.
    pub fn changed_by(&self) -> Option<(&str, Moment)> {
        self.changed.as_ref().map(|(at_ms, who)| (who.as_str(), time_ago::ago(Some(*at_ms))))
    }
}

/// What was typed; a field that is left empty is as usual.
fn read(typed: &BTreeMap<String, String>) -> std::result::Result<Limits, String> {
    let mut limits = Limits::default();
    if typed.contains_key("reset") {
        return Ok(limits);
    }
    for limit in Limit::ALL {
        if let Some(text) = typed.get(limit.about().name).filter(|text| !text.trim().is_empty()) {
            limits.set(limit, limit.parse(text)?);
        }
    }
    Ok(limits)
}

/// `POST /scenarios/{name}/limits`: sets them, or shows the page again with what is wrong.
pub async fn set(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(name): Path<String>,
    Form(typed): Form<BTreeMap<String, String>>,
) -> Result<Response> {
    match read(&typed) {
        Ok(limits) => {
            crate::results::api::limits::change(&state, &caller, &name, &limits).await?;
            Ok(Redirect::to(&format!("/scenarios/{}#limits", address::segment(&name))).into_response())
        }
        Err(fault) => match scenarios::page_of(&state, &caller, &name, None).await {
            Ok(mut page) => {
                page.limits = page.limits.typed(&typed, fault);
                Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
            }
            Err(Error::NotFound(_)) => Err(Error::Invalid(fault)),
            Err(other) => Err(other),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn what_the_form_shows_is_what_it_takes() {
        let mut limits = Limits::default();
        limits.set(Limit::GeneratorBusy, 0.95);
        let part = LimitsPart::new(ScenarioLimits { limits: limits.clone(), revision: 1, changed: None });
        let again: BTreeMap<String, String> =
            part.rows.iter().map(|row| (row.name.to_owned(), row.value.clone())).collect();
        assert_eq!(read(&again), Ok(limits));
        assert!(part.any_set() && part.rows.iter().filter(|row| row.is_set).count() == 1);
    }

    #[test]
    fn empty_fields_and_the_way_back_are_the_usual_limits() {
        assert_eq!(read(&typed(&[("too_short", " ")])), Ok(Limits::default()));
        assert_eq!(read(&typed(&[("too_short", "7 s"), ("reset", "1")])), Ok(Limits::default()));
        assert!(read(&typed(&[("too_short", "soon")])).expect_err("nonsense").starts_with("too_short: "));
    }
}
