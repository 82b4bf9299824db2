//! The alert section of the settings page and its form.

use axum::{
    extract::{RawForm, State},
    response::Redirect,
};
use url::form_urlencoded;

use crate::{
    alerts::{self, Thresholds, model::AlertRule},
    app::{
        error::{Error, Result},
        state::AppState,
    },
    auth::{
        caller::{Admin, Caller},
        model::Scope,
    },
    web::time_ago::{self, RelativeTime},
};

/// The alert section of the page.
#[derive(Debug)]
pub struct AlertsPart {
    rule: AlertRule,
    may_manage: bool,
}

impl AlertsPart {
    /// Loads the current rule.
    pub async fn read(state: &AppState, caller: &Caller) -> Result<Self> {
        let rule = crate::alerts::store::rule(&state.db.read).await?;
        Ok(Self { rule, may_manage: caller.scope >= Scope::Admin })
    }

    /// Whether the user may change the rule.
    pub fn may_manage(&self) -> bool {
        self.may_manage
    }

    /// Returns who set the rule, and when.
    pub fn set_by(&self) -> Option<(&str, RelativeTime)> {
        Some((self.rule.set_by.as_deref()?, time_ago::ago(self.rule.set_at_ms)))
    }

    /// Returns how long an agent may be away, minutes.
    pub fn away(&self) -> String {
        minutes(self.rule.rule.agent_away_s)
    }

    /// Returns how long the queue may stand still, minutes.
    pub fn standstill(&self) -> String {
        minutes(self.rule.rule.queue_standstill_s)
    }
}

/// Formats minutes as briefly as possible: 5, 0.5.
fn minutes(seconds: u32) -> String {
    let minutes = format!("{:.3}", f64::from(seconds) / 60.0);
    minutes.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn seconds(field: &str, text: &str) -> Result<u32> {
    let bad = || Error::Invalid(format!("{field}: {text:?} is not a number of minutes"));
    let minutes: f64 = text.trim().parse().map_err(|_| bad())?;
    let seconds = (minutes * 60.0).round();
    if !(0.0..=f64::from(u32::MAX)).contains(&seconds) {
        return Err(bad());
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked above")]
    Ok(seconds as u32)
}

/// `POST /settings/alerts`: sets the alert thresholds.
pub async fn set_rule(Admin(caller): Admin, State(state): State<AppState>, RawForm(body): RawForm) -> Result<Redirect> {
    let field = |name: &str| {
        let found = form_urlencoded::parse(&body).find(|(field, _)| field == name);
        seconds(name, &found.map(|(_, text)| text.into_owned()).unwrap_or_default())
    };
    let rule = Thresholds { agent_away_s: field("agent_away")?, queue_standstill_s: field("queue_standstill")? };
    alerts::api::set(&state, &caller, rule).await?;
    Ok(Redirect::to("/settings#alerts"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_accepts_the_values_that_it_shows() {
        for (stored, shown) in [(300, "5"), (30, "0.5"), (1, "0.017"), (900, "15"), (36_000, "600")] {
            assert_eq!(minutes(stored), shown);
            assert_eq!(seconds("a", shown).expect("minutes"), stored);
        }
        for bad in ["", "soon", "-1", "NaN", "1e99"] {
            assert!(seconds("a", bad).expect_err(bad).to_string().starts_with("a: "));
        }
    }
}
