//! What the settings page shows of backups and of old series, and its form for these.

use axum::{
    extract::{RawForm, State},
    response::Redirect,
};

use crate::{
    app::{
        error::{Error, Result},
        state::AppState,
    },
    auth::{
        caller::{Admin, Caller},
        model::Scope,
    },
    maintenance::{
        retention::{self, Reduction, Rule, SeriesRule},
        store::Backup,
    },
    web::{
        form,
        format::{self, Figure},
        time_ago::{self, Moment},
    },
};

/// How old series are dealt with unless somebody says otherwise, in the form.
const USUAL_DAYS: u32 = 365;

/// What the page shows of them.
#[derive(Debug)]
pub struct KeepingPart {
    backup: Option<Backup>,
    series: SeriesRule,
    may_manage: bool,
}

/// What can be done with old series.
#[derive(Debug)]
pub struct Choice {
    /// The word in the form.
    pub word: &'static str,
    /// In words.
    pub label: &'static str,
    /// Whether it is so now.
    pub is_chosen: bool,
}

impl KeepingPart {
    /// As things are.
    pub async fn read(state: &AppState, caller: &Caller) -> Result<Self> {
        Ok(Self {
            backup: crate::maintenance::store::last_backup(&state.db.read).await?,
            series: retention::current(state).await?,
            may_manage: caller.scope >= Scope::Admin,
        })
    }

    /// Whether who looks may do something about it.
    pub fn may_manage(&self) -> bool {
        self.may_manage
    }

    /// When the last backup was made, by whom, and how large it is.
    pub fn last_backup(&self) -> Option<(Moment, &str, Figure)> {
        let Backup { at_ms, who, bytes } = self.backup.as_ref()?;
        Some((time_ago::ago(Some(*at_ms)), who, format::bytes(bytes.map(|bytes| bytes as f64))))
    }

    /// What becomes of series, in words.
    pub fn series(&self) -> String {
        self.series.rule.as_ref().map_or_else(|| "kept for ever".to_owned(), Rule::words)
    }

    /// Who said so, and when.
    pub fn set_by(&self) -> Option<(&str, Moment)> {
        Some((self.series.set_by.as_deref()?, time_ago::ago(self.series.set_at_ms)))
    }

    /// What can be chosen.
    pub fn choices(&self) -> [Choice; 3] {
        let now = self.series.rule.map(|rule| rule.reduction);
        let choice = |reduction: Option<Reduction>, label| Choice {
            word: reduction.map_or("keep", Reduction::as_str),
            label,
            is_chosen: now == reduction,
        };
        [
            choice(None, "Keep them for ever"),
            choice(Some(Reduction::Thin), "Thin them: ten seconds become one point"),
            choice(Some(Reduction::Delete), "Delete them"),
        ]
    }

    /// The days in the form.
    pub fn days(&self) -> u32 {
        self.series.rule.map_or(USUAL_DAYS, |rule| rule.after_days)
    }
}

/// `POST /settings/series`: how long series are kept.
pub async fn set_series(
    Admin(caller): Admin,
    State(state): State<AppState>,
    RawForm(body): RawForm,
) -> Result<Redirect> {
    let field = |name: &str| form::field(&body, name).unwrap_or_default().trim().to_owned();
    match field("reduction").as_str() {
        "keep" => retention::remove(&state, &caller).await?,
        word => {
            let reduction = word.parse().map_err(Error::Invalid)?;
            let bad = |_| Error::Invalid(format!("days: {:?} is no whole number", field("days")));
            let after_days = field("days").parse().map_err(bad)?;
            retention::set(&state, &caller, Rule { after_days, reduction }).await?;
        }
    }
    Ok(Redirect::to("/settings#series"))
}
