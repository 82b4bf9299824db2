//! Checks the database in the background when the server starts. What it finds is an alert, and `/readyz` reports
//! damage.

use std::path::Path;

use brewbench_wire::now_ms;

use crate::{
    app::{
        alert_cache::ActiveAlert,
        db::{self, FILE, OpenError},
        state::AppState,
    },
    maintenance,
};

/// The kind of the alert that SQLite found damage.
pub const DAMAGED: &str = "database.damaged";

/// The chapter that says what to do.
const HELP: &str = "/docs/guide/operations";

/// Checks once, until the server stops.
pub async fn work(state: AppState) {
    if state.db.log_is_lost {
        let sentence = "The server was killed and the database's write-ahead log was removed before this start: the \
            last results are missing. Compare with a backup.";
        report(&state, "database.log_lost", sentence.to_owned());
    }
    let file = state.config.data.join(FILE);
    let found = tokio::select! {
        () = state.shutdown.cancelled() => return,
        found = damage(&file) => found,
    };
    match found {
        Ok(None) => {}
        Ok(Some(first)) => {
            let sentence = format!(
                "The database is damaged. Stop the server, and restore a backup or check what is left with `brewbench \
                 check`. SQLite reports: {first}"
            );
            report(&state, DAMAGED, sentence);
        }
        Err(fault) => tracing::error!(%fault, "failed to check the database"),
    }
}

/// Returns the first problem of the database's structure.
async fn damage(file: &Path) -> Result<Option<String>, OpenError> {
    // A connection of its own: the check reads the whole file, and pages must not wait for it.
    let pool = db::open_existing(file).await?;
    let found = maintenance::store::quick_damage(&pool).await;
    pool.close().await;
    match found {
        Ok(first) => Ok(first),
        Err(fault) if maintenance::integrity_check::is_damage(&fault) => Ok(Some(fault.to_string())),
        Err(fault) => Err(OpenError::Sqlite(file.to_owned(), fault)),
    }
}

fn report(state: &AppState, kind: &'static str, sentence: String) {
    tracing::error!(kind, "{sentence}");
    let now = now_ms();
    let (subject, href) = (String::new(), HELP.to_owned());
    state.active_alerts.add(ActiveAlert { kind, subject, sentence, href, since_ms: now, raised_at_ms: now });
}
