//! The audit log page, for administrators.

use askama::Template;
use askama_web::WebTemplate;
use axum::extract::State;
use url::form_urlencoded::Serializer;

use crate::{
    app::{
        error::{QueryParams, Result},
        state::AppState,
    },
    auth::{
        api::audit::page,
        audit::{AuditFilter, EntryList},
        caller::Admin,
        pages::parts::{Places, shell},
    },
    web::shell::Shell,
};

const HERE: &str = "/audit";

/// The audit log page.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "auth/audit.html")]
pub struct Page {
    shell: Shell,
    places: Places,
    list: EntryList,
    wanted: AuditFilter,
}

impl Page {
    fn is_filtered(&self) -> bool {
        !self.query(&[]).is_empty()
    }

    fn next(&self) -> Option<String> {
        let after = self.list.next?.to_string();
        Some(format!("{HERE}?{}", self.query(&[("after", &after)])))
    }

    fn export(&self, format: &str) -> String {
        format!("/api/v1/audit/export?{}", self.query(&[("format", format)]))
    }

    /// Returns the query string of the filters and further parameters.
    fn query(&self, more: &[(&str, &str)]) -> String {
        let AuditFilter { actor, action, from, to, .. } = &self.wanted;
        let mut query = Serializer::new(String::new());
        for (name, value) in [("actor", actor), ("action", action), ("from", from), ("to", to)] {
            if let Some(value) = value.as_deref().filter(|value| !value.is_empty()) {
                query.append_pair(name, value);
            }
        }
        for (name, value) in more {
            query.append_pair(name, value);
        }
        query.finish()
    }
}

/// `GET /audit`
pub async fn show(
    Admin(caller): Admin,
    State(state): State<AppState>,
    QueryParams(wanted): QueryParams<AuditFilter>,
) -> Result<Page> {
    let list = page(&state.db, &wanted.range()?).await?;
    let (shell, places) = (shell("Audit log", &caller), Places::new(HERE, &caller));
    Ok(Page { shell, places, list, wanted })
}
