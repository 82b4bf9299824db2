//! What the settings page shows of alerts, and its form for them.

use axum::{
    extract::{RawForm, State},
    response::Redirect,
};
use url::form_urlencoded;

use crate::{
    alerts::{self, Rule, model::AlertRule},
    app::{
        error::{Error, Result},
        state::AppState,
    },
    auth::{
        caller::{Admin, Caller},
        model::Scope,
    },
    web::time_ago::{self, Moment},
};

/// What the page shows of them.
#[derive(Debug)]
pub struct AlertsPart {
    rule: AlertRule,
    may_manage: bool,
}

impl AlertsPart {
    /// As things are.
    pub async fn read(state: &AppState, caller: &Caller) -> Result<Self> {
        let rule = crate::alerts::store::rule(&state.db.read).await?;
        Ok(Self { rule, may_manage: caller.scope >= Scope::Admin })
    }

    /// Whether who looks may do something about it.
    pub fn may_manage(&self) -> bool {
        self.may_manage
    }

    /// Who said so, and when.
    pub fn set_by(&self) -> Option<(&str, Moment)> {
        Some((self.rule.set_by.as_deref()?, time_ago::ago(self.rule.set_at_ms)))
    }

    /// How long an agent may be away, minutes.
    pub fn away(&self) -> String {
        minutes(self.rule.rule.agent_away_s)
    }

    /// How long runs may wait that nobody begins, minutes.
    pub fn standstill(&self) -> String {
        minutes(self.rule.rule.queue_standstill_s)
    }
}

/// As short as it can be said: 5, 0.5.
fn minutes(seconds: u32) -> String {
    let minutes = format!("{:.3}", f64::from(seconds) / 60.0);
    minutes.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn seconds(field: &str, text: &str) -> Result<u32> {
    let bad = || Error::Invalid(format!("{field}: {text:?} is no number of minutes"));
    let minutes: f64 = text.trim().parse().map_err(|_| bad())?;
    let seconds = (minutes * 60.0).round();
    if !(0.0..=f64::from(u32::MAX)).contains(&seconds) {
        return Err(bad());
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "looked at right above")]
    Ok(seconds as u32)
}

/// `POST /settings/alerts`: from when on something is an alert.
pub async fn set_rule(Admin(caller): Admin, State(state): State<AppState>, RawForm(body): RawForm) -> Result<Redirect> {
    let field = |name: &str| {
        let found = form_urlencoded::parse(&body).find(|(field, _)| field == name);
        seconds(name, &found.map(|(_, text)| text.into_owned()).unwrap_or_default())
    };
    let rule = Rule { agent_away_s: field("agent_away")?, queue_standstill_s: field("queue_standstill")? };
    alerts::api::set(&state, &caller, rule).await?;
    Ok(Redirect::to("/settings#alerts"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_form_shows_is_what_it_takes() {
        for (of_a_rule, shown) in [(300, "5"), (30, "0.5"), (1, "0.017"), (900, "15"), (36_000, "600")] {
            assert_eq!(minutes(of_a_rule), shown);
            assert_eq!(seconds("a", shown).expect("minutes"), of_a_rule);
        }
        for bad in ["", "soon", "-1", "NaN", "1e99"] {
            assert!(seconds("a", bad).expect_err(bad).to_string().starts_with("a: "));
        }
    }
}
