//! The walls of the house, read off its sources: who may know whom, where SQL and I/O may stand.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Folders with sources of ours, from the root of the repository.
const FOLDERS: [&str; 3] = ["src", "agents", "tests"];

/// The slices of the server, and the tables that each writes.
const SLICES: [(&str, &[&str]); 17] = [
    ("web", &[]),
    ("auth", &["user", "passkey", "invite", "session", "token", "audit"]),
    ("catalog", &["target", "target_colour", "machine_size", "scenario_revision"]),
    ("fleet", &["agent"]),
    (
        "runs",
        &[
            "run",
            "run_phase",
            "run_summary",
            "run_evidence",
            "run_series",
            "run_series_reduced",
            "run_part",
            "run_label",
            "saved_view",
        ],
    ),
    ("baselines", &["baseline", "baseline_run"]),
    ("differences", &["accepted_difference"]),
    ("experiments", &["experiment"]),
    ("dispatch", &[]),
    ("compare", &[]),
    ("gate", &[]),
    ("reports", &[]),
    ("shares", &["share"]),
    ("trends", &["trend_judgement"]),
    ("keeping", &["series_rule"]),
    ("alerts", &["alert_rule", "alert", "experiment_told", "webhook", "webhook_delivery"]),
    ("dashboard", &[]),
];

/// Folders that are no slices: what all of them use, and what uses all of them.
const OUTSIDE: [&str; 6] = ["cli", "demo", "limits", "listener", "together", "underway"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All `.rs` files below a folder as (path from the root, text).
pub fn sources(folder: &str) -> Vec<(String, String)> {
    let mut files = Vec::new();
    visit(&root().join(folder), &mut files);
    assert!(!files.is_empty(), "no sources in {folder}");
    files.sort();
    let name = |path: &Path| path.strip_prefix(root()).expect("below the root").display().to_string();
    files.iter().map(|path| (name(path), fs::read_to_string(path).expect("sources are text"))).collect()
}

fn visit(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        // In a simulation only tests live, which hold the whole server in their hands.
        if path.is_dir() && !path.ends_with("target") && !path.ends_with("simulation") {
            visit(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
}

/// A file without its unit tests and without comments.
pub fn production_part(text: &str) -> String {
    let text = text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or_default();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// Fails if a file below a folder mentions one of these in what it does.
#[track_caller]
fn forbid(folder: &str, words: &[&str], why: &str) {
    for (file, text) in sources(folder) {
        forbid_in(&file, &production_part(&text), words, why);
    }
}

#[track_caller]
fn forbid_in(file: &str, text: &str, words: &[&str], why: &str) {
    for (number, line) in text.lines().enumerate() {
        for word in words {
            assert!(!mentions(line, word), "{file}: {word} in {line:?} (about line {}): {why}", number + 1);
        }
    }
}

/// Whether a line has a word that is not the end of a longer one.
fn mentions(line: &str, word: &str) -> bool {
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_'))
}

#[test]
fn agents_know_nothing_of_the_server() {
    let words = ["brewbench::", "sqlx", "askama", "webauthn"];
    forbid("agents", &words, "the daemon runs on other machines and stays small");
    let manifest = fs::read_to_string(root().join("agents/Cargo.toml")).expect("a manifest");
    for word in ["sqlx", "askama", "webauthn", "axum", "path = \"..\""] {
        assert!(!manifest.contains(word), "agents/Cargo.toml: {word}");
    }
}

#[test]
fn a_slice_does_not_know_the_server_that_holds_it() {
    for (slice, _) in SLICES {
        let folder = format!("src/{slice}");
        forbid(
            &folder,
            &["crate::server", "server::Server", "crate::demo", "crate::cli"],
            "slices are below the server",
        );
        for (file, text) in sources(&folder) {
            for part in grouped_uses(&text) {
                assert!(!part.starts_with("server"), "{file}: uses crate::{part}");
            }
        }
    }
}

/// The parts of `use crate::{…}`, flat: `a::{b, c}` gives `a::b` and `a::c`.
fn grouped_uses(text: &str) -> Vec<String> {
    let text = production_part(text);
    let mut uses = Vec::new();
    for statement in text.split("use crate::").skip(1) {
        let statement = statement.split(';').next().unwrap_or_default();
        expand("", statement, &mut uses);
    }
    uses
}

fn expand(prefix: &str, tree: &str, uses: &mut Vec<String>) {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        if !tree.is_empty() {
            uses.push(format!("{prefix}{tree}"));
        }
        return;
    };
    let (head, rest) = (&tree[..open], &tree[open + 1..]);
    let inner = rest.rfind('}').map_or(rest, |end| &rest[..end]);
    let (mut depth, mut start) = (0_usize, 0);
    for (at, letter) in inner.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&format!("{prefix}{head}"), &inner[start..at], uses);
                start = at + 1;
            }
            _ => {}
        }
    }
    expand(&format!("{prefix}{head}"), &inner[start..], uses);
}

/// Fails if a slice uses one of these modules of the crate, in whatever way it is written.
#[track_caller]
fn must_not_use(folder: &str, modules: &[&str]) {
    for (file, text) in sources(folder) {
        let used = grouped_uses(&text);
        for module in modules {
            let bad = used.iter().find(|used| *used == module || used.starts_with(&format!("{module}::")));
            assert!(bad.is_none(), "{file}: uses crate::{}", bad.map_or("", String::as_str));
            forbid_in(
                &file,
                &production_part(&text),
                &[&format!("crate::{module}::")],
                "the arrow points the other way",
            );
        }
    }
}

#[test]
fn a_nested_use_is_read_to_its_leaves() {
    let uses = grouped_uses("use crate::{\n    auth::{self, api::{a, b}},\n    db::Db,\n};\nuse crate::web;\n");
    assert_eq!(uses, ["auth::self", "auth::api::a", "auth::api::b", "db::Db", "web"]);
}

#[test]
fn the_arrows_between_slices_point_one_way() {
    must_not_use("src/web", &["auth", "catalog", "fleet", "experiments", "dispatch", "compare"]);
    must_not_use("src/auth", &["catalog", "fleet", "runs", "experiments", "dispatch", "compare"]);
    must_not_use("src/catalog", &["fleet", "runs", "experiments", "dispatch", "compare"]);
    must_not_use("src/fleet", &["runs", "experiments", "dispatch", "compare"]);
    must_not_use("src/runs", &["experiments", "dispatch"]);
    must_not_use("src/experiments", &["dispatch"]);
    must_not_use("src/baselines", &["experiments", "dispatch", "compare", "fleet"]);
    must_not_use("src/differences", &["experiments", "dispatch", "compare", "fleet", "baselines"]);
    must_not_use("src/compare", &["dispatch", "fleet", "gate", "reports", "shares", "trends"]);
    for above in ["src/gate", "src/reports", "src/shares"] {
        must_not_use(above, &["experiments", "dispatch", "fleet"]);
    }
    must_not_use("src/trends", &["experiments", "dispatch", "fleet"]);
    must_not_use("src/keeping", &["experiments", "dispatch", "compare", "gate", "reports", "shares", "trends"]);
    must_not_use("src/alerts", &["compare", "gate", "reports", "shares", "trends", "baselines", "keeping"]);
    must_not_use("src/dashboard", &["dispatch"]);
    for below in ["auth", "catalog", "fleet", "runs", "experiments", "dispatch", "compare", "trends", "keeping"] {
        must_not_use(&format!("src/{below}"), &["alerts"]);
    }
    for (slice, _) in SLICES.iter().filter(|(slice, _)| *slice != "dashboard") {
        must_not_use(&format!("src/{slice}"), &["dashboard"]);
    }
}

#[test]
fn commands_speak_to_a_server_and_not_to_its_store() {
    must_not_use("src/cli", &["db", "state"]);
    forbid("src/cli", &["queries::", "pages::", "::queries", "::pages"], "commands go through the JSON API");
}

#[test]
fn sql_stands_in_queries_and_nothing_of_the_web_does() {
    for (file, text) in sources("src") {
        let text = production_part(&text);
        let queries = file.ends_with("/queries.rs") || file.contains("/queries/");
        if queries {
            forbid_in(&file, &text, &["axum", "askama", "StatusCode"], "queries know no web");
        } else if file != "src/db.rs" {
            forbid_in(&file, &text, &["sqlx::query", "query_as!", "query!(", "QueryBuilder"], "SQL stands in queries");
        }
    }
}

#[test]
fn a_slice_writes_its_own_tables_only() {
    for (file, text) in sources("src") {
        let text = production_part(&text).to_lowercase();
        let words: Vec<_> = text
            .split(|letter: char| !(letter.is_alphanumeric() || letter == '_'))
            .filter(|word| !word.is_empty())
            .collect();
        for (slice, tables) in SLICES {
            for table in tables.iter().filter(|_| !file.starts_with(&format!("src/{slice}/"))) {
                let writes = [["insert", "into", table], ["delete", "from", table]];
                let written = words.windows(3).any(|three| writes.iter().any(|write| three == write))
                    || words.windows(3).any(|three| three[0] == "update" && three[1] == *table && three[2] == "set");
                assert!(!written, "{file} writes the table {table}, which belongs to {slice}");
            }
        }
    }
}

/// What a file opens with.
fn header(text: &str) -> String {
    text.lines().take_while(|line| line.starts_with("//!")).collect::<Vec<_>>().join("\n")
}

#[test]
fn files_that_call_themselves_pure_do_no_io() {
    let words = [
        "std::fs",
        "std::process",
        "TcpStream",
        "TcpListener",
        "UdpSocket",
        "UnixStream",
        "tokio",
        "sqlx",
        "reqwest",
        "axum",
        "Instant::now",
        "now_ms()",
    ];
    let all = sources("src").into_iter().chain(sources("agents/src"));
    let pure: Vec<_> = all.filter(|(_, text)| header(text).contains("Pure.")).collect();
    assert!(pure.len() > 100, "only {} files were found", pure.len());
    for (file, text) in pure {
        forbid_in(&file, &production_part(&text), &words, "this file calls itself pure");
    }
}

#[test]
fn every_folder_has_its_place() {
    for entry in fs::read_dir(root().join("src")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let is_known = SLICES.iter().any(|(slice, _)| *slice == name) || OUTSIDE.contains(&name.as_str());
        assert!(
            !path.is_dir() || is_known,
            "src/{name} is neither a slice nor outside of them: add it to tests/all/tidy.rs"
        );
    }
}

#[test]
fn every_file_says_what_it_is_and_no_lint_is_silenced_for_good() {
    let silenced = ["#[", "allow("].concat();
    let whole = ["#![", "allow("].concat();
    for (file, text) in FOLDERS.iter().flat_map(|folder| sources(folder)) {
        assert!(text.starts_with("//!"), "{file} does not open with //!");
        assert!(
            !text.contains(&silenced) && !text.contains(&whole),
            "{file}: write expect(…, reason) instead of allow"
        );
    }
}
