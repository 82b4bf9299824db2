//! The sections of the settings page for backups and for the retention of time series.

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
        proven::Proven,
    },
    maintenance::{
        retention::{self, Reduction, Retention, RetentionRule},
        store::Backup,
    },
    web::{
        form,
        format::{self, Figure},
        time_ago::{self, RelativeTime},
    },
};

/// The days in the form while no rule is set.
const DEFAULT_DAYS: u32 = 365;

/// The sections of the page.
#[derive(Debug)]
pub struct RetentionPart {
    backup: Option<Backup>,
    series: Retention,
    may_manage: bool,
}

/// An option for old time series.
#[derive(Debug)]
pub struct Choice {
    /// The value in the form.
    pub word: &'static str,
    /// The label.
    pub label: &'static str,
    /// Whether it is the current rule.
    pub is_chosen: bool,
}

impl RetentionPart {
    /// Loads the last backup and the current rule.
    pub async fn read(state: &AppState, caller: &Caller) -> Result<Self> {
        Ok(Self {
            backup: crate::maintenance::store::last_backup(&state.db.read).await?,
            series: retention::current(state).await?,
            may_manage: caller.scope >= Scope::Admin,
        })
    }

    /// Whether the user may change the rule.
    pub fn may_manage(&self) -> bool {
        self.may_manage
    }

    /// Returns when the last backup was made, by whom, and its size.
    pub fn last_backup(&self) -> Option<(RelativeTime, &str, Figure)> {
        let Backup { at_ms, actor, bytes } = self.backup.as_ref()?;
        Some((time_ago::ago(Some(*at_ms)), actor, format::bytes(bytes.map(|bytes| bytes as f64))))
    }

    /// Describes the current rule.
    pub fn series(&self) -> String {
        self.series.rule.as_ref().map_or_else(|| "kept forever".to_owned(), RetentionRule::describe)
    }

    /// Returns who set the rule, and when.
    pub fn set_by(&self) -> Option<(&str, RelativeTime)> {
        Some((self.series.set_by.as_deref()?, time_ago::ago(self.series.set_at_ms)))
    }

    /// Returns the options.
    pub fn choices(&self) -> [Choice; 3] {
        let now = self.series.rule.map(|rule| rule.reduction);
        let choice = |reduction: Option<Reduction>, label| Choice {
            word: reduction.map_or("keep", Reduction::as_str),
            label,
            is_chosen: now == reduction,
        };
        [
            choice(None, "Keep forever"),
            choice(Some(Reduction::Downsample), "Downsample to one point per 10 seconds"),
            choice(Some(Reduction::Delete), "Delete"),
        ]
    }

    /// Returns the days in the form.
    pub fn days(&self) -> u32 {
        self.series.rule.map_or(DEFAULT_DAYS, |rule| rule.after_days)
    }
}

/// `POST /settings/series`: sets the retention of time series.
pub async fn set_series(
    admin: Proven<Admin>,
    State(state): State<AppState>,
    RawForm(body): RawForm,
) -> Result<Redirect> {
    let field = |name: &str| form::field(&body, name).unwrap_or_default().trim().to_owned();
    match field("reduction").as_str() {
        "keep" => retention::remove(&state, &admin.by()).await?,
        word => {
            let reduction = word.parse().map_err(Error::Invalid)?;
            let bad = |_| Error::Invalid(format!("days: {:?} is not a whole number", field("days")));
            let after_days = field("days").parse().map_err(bad)?;
            retention::set(&state, &admin.by(), RetentionRule { after_days, reduction }).await?;
        }
    }
    Ok(Redirect::to("/settings#series"))
}
