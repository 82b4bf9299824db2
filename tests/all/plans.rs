//! No statement scans all runs: SQLite explains the query plan of each statement in the sources.

use std::collections::BTreeSet;

use brewbench_wire::Phase;
use sqlx::{AssertSqlSafe, Row};

use crate::{harness::App, tidy::sources};

/// Statements that scan the runs in their order and end with the first match.
const ALLOWED_SCANS: [&str; 1] = ["select id from run where deleted_at is null limit 1"];

#[tokio::test]
async fn no_statement_scans_all_runs() {
    let app = App::start().await;
    let mut checked = 0;
    for (path, text) in sources("src") {
        for statement in statements(&text).into_iter().filter(|statement| names_runs(statement)) {
            let explain = AssertSqlSafe(format!("explain query plan {statement}"));
            let rows = sqlx::query(explain).fetch_all(&app.state.db.read).await;
            let rows = rows.unwrap_or_else(|fault| panic!("{path}: {statement}: {fault}"));
            let steps: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
            let scans = |step: &String| step.starts_with("SCAN run") && !step.contains("INDEX run_");
            assert!(
                !steps.iter().any(scans) || ALLOWED_SCANS.contains(&statement.as_str()),
                "{path}: {statement}: {steps:?}"
            );
            checked += 1;
        }
    }
    assert!(checked > 40, "only {checked} statements were found");
}

/// However many runs a version has, a second import of a file is found by the digest of the file.
#[tokio::test]
async fn the_same_file_is_found_by_its_digest() {
    let app = App::start().await;
    let (_, text) = sources("src").into_iter().find(|(path, _)| path.ends_with("store/imports.rs")).expect("the file");
    let statement = text.split("const SAME: &str = \"").nth(1).and_then(|rest| rest.split("\";").next());
    let explain = AssertSqlSafe(format!("explain query plan {}", statement.expect("the statement")));
    let rows = sqlx::query(explain).fetch_all(&app.state.db.read).await.expect("a plan");
    let steps: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
    assert!(steps[0].contains("USING INDEX run_summary_sha256") && steps[1].contains("(id=?)"), "{steps:?}");
}

/// SQL has no constants: its lists of phases repeat those of the type, which may not drift apart.
#[test]
fn lists_of_phases_in_sql_are_those_of_the_type() {
    let names = |is_in: fn(Phase) -> bool| -> BTreeSet<&str> {
        Phase::ALL.into_iter().filter(|phase| is_in(*phase)).map(Phase::as_str).collect()
    };
    let known = [names(Phase::is_final), names(Phase::is_held)];
    let mut checked = 0;
    for (path, text) in sources("src") {
        for list in text.split(" in (").skip(1).filter_map(|rest| rest.split_once(')')).map(|(list, _)| list) {
            let words: BTreeSet<&str> = list.split(',').map(|word| word.trim().trim_matches('\'')).collect();
            if words.len() > 2 && words.iter().all(|word| word.parse::<Phase>().is_ok()) {
                assert!(known.contains(&words), "{path}: {list}");
                checked += 1;
            }
        }
    }
    assert!(checked > 10, "only {checked} lists were found");
}

/// The SQL that is checked at build time, on one line each.
fn statements(text: &str) -> Vec<String> {
    let calls = text
        .split("sqlx::query")
        .skip(1)
        .filter(|call| ["!", "_as!", "_scalar!", "_as::<"].iter().any(|kind| call.starts_with(kind)));
    let literal = |call: &str| {
        let (from, end) = match (call.find("r#\""), call.find('"')) {
            (Some(raw), Some(plain)) if raw < plain => (raw + 3, "\"#"),
            (_, Some(plain)) => (plain + 1, "\""),
            (_, None) => return None,
        };
        // A statement that names the columns of a spec takes them from a constant.
        let sql = call[from..].split(end).next()?.replace("{SELECTED}", "run.*");
        let line = sql.lines().map(|line| line.split("--").next().unwrap_or_default());
        Some(line.collect::<Vec<_>>().join(" ").split_whitespace().collect::<Vec<_>>().join(" "))
    };
    calls.filter_map(literal).collect()
}

fn names_runs(statement: &str) -> bool {
    let words: Vec<&str> = statement.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect();
    words.windows(2).any(|pair| matches!(pair[0], "from" | "join" | "update") && pair[1] == "run")
}
