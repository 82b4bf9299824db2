//! The architecture, checked in the sources: which modules may use which, and where SQL and I/O are allowed.

mod cycles;
mod mentions;
mod schemas;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use crate::harness::root;

/// The modules of the server in their order, and the tables that each writes. A module may use those before it.
/// Three modules write `run`: `runs` the request and the phase, `results` the results, `dispatch` the lease.
const MODULES: [(&str, &[&str]); 29] = [
    ("app", &[]),
    ("web", &[]),
    ("metrics", &[]),
    ("auth", &["user", "passkey", "invite", "session", "token", "audit"]),
    ("docs", &[]),
    ("catalog", &["target", "target_colour", "machine_size", "scenario_revision"]),
    ("fleet", &["agent"]),
    ("runs", &["run", "run_phase", "run_label"]),
    (
        "results",
        &[
            "run",
            "run_phase",
            "run_label",
            "run_summary",
            "run_evidence",
            "run_series",
            "run_series_reduced",
            "run_part",
            "profile",
        ],
    ),
    ("distributed", &["run_part"]),
    ("live", &[]),
    ("baselines", &["baseline", "baseline_run"]),
    ("differences", &["accepted_difference"]),
    ("placement", &[]),
    ("compare", &["comparison_inputs"]),
    ("profiles", &[]),
    ("experiments", &["experiment"]),
    ("dispatch", &["run", "run_phase", "lease"]),
    ("trends", &["trend_annotation", "trend_pin"]),
    ("gate", &[]),
    ("reports", &[]),
    ("shares", &["share"]),
    ("alerts", &["alert_rule", "alert", "experiment_announced", "webhook", "webhook_delivery"]),
    ("maintenance", &["series_rule"]),
    ("settings", &[]),
    ("search", &[]),
    ("dashboard", &[]),
    ("mcp", &[]),
    ("lib", &[]),
];

/// Modules below all others, which may use each other.
const BASE: [&str; 3] = ["app", "web", "metrics"];

/// Files that may use all modules.
const ASSEMBLY: [&str; 3] = ["src/app/server.rs", "src/app/local_admin.rs", "src/lib.rs"];

/// The commands.
const COMMANDS: &str = "crates/cli/src";

/// The crates of the repository: the folder of each and its Rust files, as (path from the root, text).
fn crates() -> &'static BTreeMap<String, Vec<(String, String)>> {
    static CRATES: LazyLock<BTreeMap<String, Vec<(String, String)>>> = LazyLock::new(|| {
        let (mut manifests, mut files) = (BTreeSet::new(), Vec::new());
        visit(root(), &mut manifests, &mut files);
        let mut crates: BTreeMap<String, Vec<_>> = manifests.iter().map(|folder| (name(folder), Vec::new())).collect();
        for path in files {
            let owner = path.ancestors().find(|folder| manifests.contains(*folder)).expect("the root is a crate");
            let text = fs::read_to_string(&path).expect("sources are text");
            crates.get_mut(&name(owner)).expect("a crate").push((name(&path), text));
        }
        crates
    });
    &CRATES
}

/// A path from the root of the repository; empty for the root.
fn name(path: &Path) -> String {
    path.strip_prefix(root()).expect("below the root").display().to_string()
}

/// Finds the folders of crates and all Rust files, but in hidden folders and in what Cargo builds.
fn visit(folder: &Path, manifests: &mut BTreeSet<PathBuf>, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.is_dir() && !hidden && !path.join("CACHEDIR.TAG").exists() {
            visit(&path, manifests, files);
        } else if path.ends_with("Cargo.toml") {
            manifests.insert(folder.to_owned());
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
}

/// All Rust files.
fn all_files() -> impl Iterator<Item = &'static (String, String)> {
    crates().values().flatten()
}

/// All Rust files below a folder.
pub fn sources(folder: &str) -> Vec<(String, String)> {
    let files: Vec<_> = all_files().filter(|(file, _)| Path::new(file).starts_with(folder)).cloned().collect();
    assert!(!files.is_empty(), "no sources in {folder}");
    files
}

/// The Rust files of all crates that are built into programs and libraries: those below each `src/`.
fn production_files() -> impl Iterator<Item = &'static (String, String)> {
    let is_below = |folder: &str, file: &str| Path::new(file).starts_with(Path::new(folder).join("src"));
    crates().iter().flat_map(move |(folder, files)| files.iter().filter(move |(file, _)| is_below(folder, file)))
}

/// A check that sees too few files proves nothing: each file that a `mod` line declares must be among them.
#[test]
fn every_declared_module_is_seen() {
    let seen: BTreeSet<&str> = all_files().map(|(file, _)| file.as_str()).collect();
    for (folder, files) in crates() {
        let mut declared = 0;
        for (file, text) in files {
            for module in declared_modules(text) {
                declared += 1;
                let places = module_places(file, module);
                assert!(
                    places.iter().any(|place| seen.contains(place.as_str())),
                    "{file}: mod {module}: {places:?} unseen"
                );
            }
        }
        assert!(files.len() > declared, "{folder}/: {} files for {declared} modules and a root", files.len());
    }
}

/// The modules that a file declares and that are files of their own.
fn declared_modules(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().zip(text.lines().skip(1));
    lines.filter(|(before, _)| !before.trim_start().starts_with("#[path")).filter_map(|(_, line)| {
        let line = line.strip_prefix("pub ").or_else(|| line.strip_prefix("pub(crate) ")).unwrap_or(line);
        line.strip_prefix("mod ")?.strip_suffix(';')
    })
}

/// Where the file of a module may be.
fn module_places(file: &str, module: &str) -> Vec<String> {
    let path = Path::new(file);
    let folder = path.parent().unwrap_or(path);
    // The root of a program, a library or a test has its modules beside it, as `mod.rs` has.
    [folder.to_owned(), path.with_extension("")]
        .iter()
        .flat_map(|folder| [format!("{module}.rs"), format!("{module}/mod.rs")].map(|end| folder.join(end)))
        .map(|place| place.display().to_string())
        .collect()
}

/// A file without its unit tests and without comments.
pub fn production_part(text: &str) -> String {
    let text = text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or_default();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The Rust files below a folder without their tests. A simulation is a test that uses the complete server.
fn production(folder: &str) -> impl Iterator<Item = (String, String)> {
    let files = sources(folder).into_iter().filter(|(file, _)| !file.contains("/simulation/"));
    files.map(|(file, text)| (file, production_part(&text)))
}

/// Fails if production code below a folder mentions one of these words.
#[track_caller]
fn forbid(folder: &str, words: &[&str], why: &str) {
    for (file, text) in production(folder) {
        forbid_in(&file, &text, words, why);
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
    forbid("agents", &words, "agents run on other machines and stay small");
    let manifest = fs::read_to_string(root().join("agents/Cargo.toml")).expect("a manifest");
    for word in ["sqlx", "askama", "webauthn", "axum", "path = \"..\""] {
        assert!(!manifest.contains(word), "agents/Cargo.toml: {word}");
    }
}

/// The server compiles beside the agent: only its tests use one.
#[test]
fn the_server_knows_nothing_of_agents_and_commands() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("a manifest");
    let (built, _) = manifest.split_once("[dev-dependencies]").expect("dependencies of tests");
    for word in ["brewbench-agent =", "brewbench-cli ="] {
        assert!(!built.contains(word), "Cargo.toml: {word}");
    }
}

#[test]
fn shared_crates_know_neither_server_nor_agent_and_only_io_and_load_do_io() {
    let io = ["std::fs", "std::net::Tcp", "std::process", "tokio", "reqwest", "Instant::now"];
    for folder in crates().keys().filter(|folder| folder.starts_with("crates/") && *folder != "crates/cli") {
        forbid(folder, &["brewbench::", "brewbench_agent"], "server, agents and commands share this crate");
        let mut dependencies = vec!["sqlx", "askama", "axum", "brewbench-agent", "path = \"../..\""];
        if !["crates/io", "crates/load"].contains(&folder.as_str()) {
            forbid(&format!("{folder}/src"), &io, "this crate is pure");
            dependencies.extend(["tokio", "reqwest", "brewbench-io"]);
        }
        let manifest = fs::read_to_string(root().join(folder).join("Cargo.toml")).expect("a manifest");
        for word in dependencies {
            assert!(!manifest.contains(word), "{folder}/Cargo.toml: {word}");
        }
    }
}

/// Flattens `use CRATE::{…}`: `a::{b, c}` becomes `a::b` and `a::c`.
fn grouped_uses(text: &str, name: &str) -> Vec<String> {
    let text = production_part(text);
    let mut uses = Vec::new();
    for statement in text.split(&format!("use {name}::")).skip(1) {
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

#[test]
fn nested_uses_are_flattened() {
    let text = "use crate::{\n    auth::{self, api::{a, b}},\n    db::Db,\n};\nuse crate::web;\n";
    let uses = grouped_uses(text, "crate");
    assert_eq!(uses, ["auth::self", "auth::api::a", "auth::api::b", "db::Db", "web"]);
}

/// The position of a module in the order.
fn rank(module: &str) -> usize {
    let known = MODULES.iter().position(|(name, _)| *name == module);
    known.unwrap_or_else(|| panic!("src/{module} is not in the order: add it to MODULES in tests/all/tidy.rs"))
}

/// The module of a file of the server: `src/runs/model.rs` is in `runs`.
fn module(file: &str) -> &str {
    let below = file.strip_prefix("src/").unwrap_or(file);
    below.split('/').next().unwrap_or(below).trim_end_matches(".rs")
}

/// Whether a file has pages or JSON handlers, by its place. It may use any module, and nothing else depends on it.
fn is_surface(file: &str) -> bool {
    ["/pages.rs", "/pages/", "/api.rs", "/api/"].iter().any(|part| file.contains(part))
}

#[test]
fn modules_depend_on_those_before_them() {
    let mut count = 0;
    for (file, text) in production("src") {
        if ASSEMBLY.contains(&file.as_str()) {
            continue;
        }
        let (own, surface) = (module(&file), is_surface(&file));
        for used in paths(&text, "crate") {
            let other = used.split("::").next().unwrap_or(&used);
            if other == own || !MODULES.iter().any(|(name, _)| *name == other) {
                continue;
            }
            count += 1;
            assert!(!used.starts_with("app::server"), "{file}: uses crate::{used}");
            let in_order = rank(other) < rank(own) || (BASE.contains(&own) && BASE.contains(&other));
            assert!(surface || in_order, "{file}: uses crate::{used}, which comes later in the order");
        }
    }
    assert!(count > 1_000, "only {count} uses were found");
}

/// All paths of a crate that a file uses: in `use CRATE::{…}` and in code. Its own crate is `crate`.
fn paths(text: &str, name: &str) -> Vec<String> {
    let code = production_part(text);
    let mut all = grouped_uses(text, name);
    for rest in code.split(&format!("{name}::")).skip(1).filter(|rest| !rest.starts_with('{')) {
        let end = rest.find(|letter: char| !(letter.is_alphanumeric() || "_:".contains(letter))).unwrap_or(rest.len());
        all.push(rest[..end].trim_end_matches(':').to_owned());
    }
    all
}

#[test]
fn commands_speak_to_a_server_and_not_to_its_store() {
    let demo = format!("{COMMANDS}/demo");
    let mut count = 0;
    for (file, text) in production(COMMANDS).filter(|(file, _)| !file.starts_with(&demo)) {
        for used in paths(&text, "brewbench") {
            count += 1;
            assert!(!used.starts_with("app::db") && !used.starts_with("app::state"), "{file}: uses brewbench::{used}");
        }
    }
    assert!(count > 100, "only {count} uses were found");
    forbid(COMMANDS, &["store::", "pages::", "::store", "::pages"], "commands go through the JSON API");
}

#[test]
fn sql_stands_in_store_and_nothing_of_the_web_does() {
    for (file, text) in production("src") {
        if file.ends_with("/store.rs") || file.contains("/store/") {
            forbid_in(&file, &text, &["axum", "askama", "StatusCode"], "store modules must not depend on the web");
        } else if file != "src/app/db.rs" {
            forbid_in(
                &file,
                &text,
                &["sqlx::query", "query_as!", "query!(", "QueryBuilder"],
                "SQL belongs in store modules",
            );
        }
    }
}

#[test]
fn a_slice_writes_its_own_tables_only() {
    for (file, text) in production("src") {
        let text = text.to_lowercase();
        let words: Vec<_> = text
            .split(|letter: char| !(letter.is_alphanumeric() || letter == '_'))
            .filter(|word| !word.is_empty())
            .collect();
        let tables: BTreeSet<_> = MODULES.iter().flat_map(|(_, tables)| *tables).collect();
        let own = MODULES.iter().find(|(name, _)| *name == module(&file)).map_or(&[][..], |(_, tables)| *tables);
        for table in tables.into_iter().filter(|table| !own.contains(table)) {
            {
                let writes = [["insert", "into", table], ["delete", "from", table]];
                let written = words.windows(3).any(|three| writes.iter().any(|write| three == write))
                    || words.windows(3).any(|three| three[0] == "update" && three[1] == *table && three[2] == "set");
                assert!(!written, "{file} writes the table {table}, which belongs to another module");
            }
        }
    }
}

/// The leading `//!` comment of a file.
fn header(text: &str) -> String {
    text.lines().take_while(|line| line.starts_with("//!")).collect::<Vec<_>>().join("\n")
}

#[test]
fn files_that_call_themselves_pure_do_no_io() {
    let words = [
        "std::fs",
        "process::Command",
        "Command::new",
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
        "async fn",
        "AppState",
    ];
    let pure: Vec<_> = production_files().filter(|(_, text)| header(text).contains("Pure.")).collect();
    assert!(pure.len() > 100, "only {} files were found", pure.len());
    for (file, text) in pure {
        forbid_in(file, &production_part(text), &words, "the header of this file says Pure");
    }
}

#[test]
fn every_module_is_in_the_order() {
    for entry in fs::read_dir(root().join("src")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        assert!(rank(&name) < MODULES.len());
    }
}

#[test]
fn every_file_has_a_header_and_no_lint_is_allowed() {
    let silenced = ["#[", "allow("].concat();
    let inner = ["#![", "allow("].concat();
    for (file, text) in all_files() {
        assert!(text.starts_with("//!"), "{file} does not start with //!");
        assert!(
            !text.contains(&silenced) && !text.contains(&inner),
            "{file}: write expect(…, reason) instead of allow"
        );
    }
}

/// Maximum and 95th percentile of the lines of files and functions.
const MAX_FILE: usize = 450;
const USUAL_FILE: usize = 350;
const MAX_FUNCTION: usize = 60;
const USUAL_FUNCTION: usize = 45;

/// Functions that are plain lists with one line per item.
const PLAIN_LISTS: [(&str, &str); 6] = [
    ("src/auth/audit.rs", "as_str"),
    ("src/runs/store/row.rs", "read"),
    ("src/runs/store/row.rs", "try_from"),
    ("src/results/verdict/limits/table.rs", "definition"),
    ("src/results/store/endings.rs", "update"),
    ("src/results/store/imports.rs", "bound"),
];

#[test]
fn files_and_functions_fit_a_screen() {
    let (mut files, mut functions) = (Vec::new(), Vec::new());
    for (file, text) in production_files() {
        let lines = text.lines().count();
        assert!(lines <= MAX_FILE, "{file} has {lines} lines: split it");
        files.push(lines);
        for (name, lines) in function_lengths(&production_part(text)) {
            let is_list = PLAIN_LISTS.contains(&(file.as_str(), name.as_str()));
            assert!(lines <= MAX_FUNCTION || is_list, "{file}: {name} has {lines} lines");
            functions.push(lines);
        }
    }
    assert!(files.len() > 400 && functions.len() > 3_000, "{} files, {} functions", files.len(), functions.len());
    let p95 = |mut all: Vec<usize>| {
        all.sort_unstable();
        all[all.len() * 95 / 100]
    };
    assert!(p95(files) <= USUAL_FILE);
    assert!(p95(functions) <= USUAL_FUNCTION);
}

/// The functions of formatted code with their numbers of lines, including the signature.
fn function_lengths(code: &str) -> Vec<(String, usize)> {
    let lines: Vec<_> = code.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let bare = line.trim_start();
        let Some(at) = bare.find("fn ").filter(|at| bare[..*at].split_whitespace().all(is_modifier)) else { continue };
        let indent = &line[..line.len() - bare.len()];
        let (end, declared) = (format!("{indent}}}"), format!("{indent})"));
        let name = bare[at + 3..].split(['(', '<']).next().unwrap_or_default();
        let is_end = |line: &str| line == end || line.starts_with(&declared) && line.ends_with(';');
        let Some(length) = lines[start..].iter().position(|line| is_end(line)) else { continue };
        let one_line = line.ends_with('}') || line.ends_with(';');
        found.push((name.to_owned(), if one_line { 1 } else { length + 1 }));
    }
    found
}

fn is_modifier(word: &str) -> bool {
    word.starts_with("pub") || matches!(word, "async" | "const" | "unsafe" | "extern")
}

/// The first segments of the URLs of pages.
fn first_segments() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for (_, text) in sources("src") {
        let code = production_part(&text);
        for rest in code.split(".route(").skip(1) {
            let Some(path) = rest.trim_start().strip_prefix("\"/").and_then(|rest| rest.split('"').next()) else {
                continue;
            };
            let first = path.split('/').next().unwrap_or_default();
            if !first.is_empty() && first != "api" && !first.starts_with('{') {
                all.insert(first.to_owned());
            }
        }
    }
    all
}

#[test]
fn urls_modules_templates_and_tests_share_their_names() {
    let map = "docs/contributing/architecture.md";
    let architecture = fs::read_to_string(root().join(map)).expect(map);
    let exceptions: BTreeMap<_, _> = architecture
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| `/")?.split('`');
            Some((cells.next()?.to_owned(), cells.nth(1)?.to_owned()))
        })
        .collect();
    let segments = first_segments();
    assert!(segments.len() > 20, "{segments:?}");
    for segment in &segments {
        let module = exceptions.get(segment).unwrap_or(segment);
        assert!(root().join("src").join(module).is_dir(), "/{segment}: src/{module} is no module");
        if exceptions.contains_key(segment) {
            continue;
        }
        assert!(root().join("templates").join(module).is_dir(), "/{segment}: there is no templates/{module}");
        assert!(
            root().join(format!("tests/all/{module}.rs")).is_file(),
            "/{segment}: there is no tests/all/{module}.rs"
        );
    }
    for segment in exceptions.keys() {
        assert!(segments.contains(segment), "{map} lists /{segment}, which no route has");
    }
}
