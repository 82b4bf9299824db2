//! The architecture, checked in the sources: which modules may use which, and where SQL and I/O are allowed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Folders with sources, relative to the root of the repository.
const FOLDERS: [&str; 4] = ["src", "agents", "crates", "tests"];

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
    ("cli", &[]),
    ("lib", &[]),
];

/// Modules below all others, which may use each other.
const BASE: [&str; 3] = ["app", "web", "metrics"];

/// Files that may use all modules.
const ASSEMBLY: [&str; 5] =
    ["src/app/server.rs", "src/app/state.rs", "src/app/local_admin.rs", "src/lib.rs", "src/main.rs"];

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
        // Simulations contain only tests, which use the complete server.
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

/// Fails if production code below a folder mentions one of these words.
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
    forbid("agents", &words, "agents run on other machines and stay small");
    let manifest = fs::read_to_string(root().join("agents/Cargo.toml")).expect("a manifest");
    for word in ["sqlx", "askama", "webauthn", "axum", "path = \"..\""] {
        assert!(!manifest.contains(word), "agents/Cargo.toml: {word}");
    }
}

#[test]
fn statistics_know_nothing_of_what_they_are_used_for() {
    let words = ["brewbench", "std::fs", "tokio", "Instant::now"];
    forbid("crates/statistics", &words, "the statistics are pure and usable by others");
}

#[test]
fn the_wire_knows_neither_side_and_does_no_io() {
    let words = ["brewbench_agent", "brewbench::", "std::fs", "std::net::Tcp", "std::process", "tokio", "reqwest"];
    forbid("crates/wire", &words, "what both sides exchange is data");
}

/// Flattens `use crate::{…}`: `a::{b, c}` becomes `a::b` and `a::c`.
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

#[test]
fn nested_uses_are_flattened() {
    let uses = grouped_uses("use crate::{\n    auth::{self, api::{a, b}},\n    db::Db,\n};\nuse crate::web;\n");
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

/// Whether a file has pages or JSON handlers. It may use any module, and nothing else depends on it.
fn is_surface(file: &str, text: &str) -> bool {
    let by_name = ["/pages.rs", "/pages/", "/api.rs", "/api/"].iter().any(|part| file.contains(part));
    by_name || mentions(&production_part(text), "axum") || mentions(&production_part(text), "askama")
}

#[test]
fn modules_depend_on_those_before_them() {
    let mut count = 0;
    for (file, text) in sources("src") {
        if ASSEMBLY.contains(&file.as_str()) {
            continue;
        }
        let (own, surface) = (module(&file), is_surface(&file, &text));
        for used in paths(&text) {
            let other = used.split("::").next().unwrap_or(&used);
            if other == own || !MODULES.iter().any(|(name, _)| *name == other) {
                continue;
            }
            count += 1;
            assert!(own == "cli" || !used.starts_with("app::server"), "{file}: uses crate::{used}");
            assert!(own == "cli" || other != "cli", "{file}: uses crate::{used}");
            let in_order = rank(other) < rank(own) || (BASE.contains(&own) && BASE.contains(&other));
            assert!(surface || in_order, "{file}: uses crate::{used}, which comes later in the order");
        }
    }
    assert!(count > 1_000, "only {count} uses were found");
}

/// All paths of its crate that a file uses: in `use crate::{…}` and in code.
fn paths(text: &str) -> Vec<String> {
    let code = production_part(text);
    let mut all = grouped_uses(text);
    for rest in code.split("crate::").skip(1).filter(|rest| !rest.starts_with('{')) {
        let end = rest.find(|letter: char| !(letter.is_alphanumeric() || "_:".contains(letter))).unwrap_or(rest.len());
        all.push(rest[..end].trim_end_matches(':').to_owned());
    }
    all
}

#[test]
fn commands_speak_to_a_server_and_not_to_its_store() {
    for (file, text) in sources("src/cli").into_iter().filter(|(file, _)| !file.starts_with("src/cli/demo")) {
        for used in paths(&text) {
            assert!(!used.starts_with("app::db") && !used.starts_with("app::state"), "{file}: uses crate::{used}");
        }
    }
    forbid("src/cli", &["store::", "pages::", "::store", "::pages"], "commands go through the JSON API");
}

#[test]
fn sql_stands_in_store_and_nothing_of_the_web_does() {
    for (file, text) in sources("src") {
        let text = production_part(&text);
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
    for (file, text) in sources("src") {
        let text = production_part(&text).to_lowercase();
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
        "async fn",
        "AppState",
    ];
    let all = sources("src").into_iter().chain(sources("agents/src")).chain(sources("crates"));
    let pure: Vec<_> = all.filter(|(_, text)| header(text).contains("Pure.")).collect();
    assert!(pure.len() > 100, "only {} files were found", pure.len());
    for (file, text) in pure {
        forbid_in(&file, &production_part(&text), &words, "the header of this file says Pure");
    }
}

#[test]
fn every_module_is_in_the_order() {
    for entry in fs::read_dir(root().join("src")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        assert!(name == "main" || rank(&name) < MODULES.len());
    }
}

#[test]
fn every_file_has_a_header_and_no_lint_is_allowed() {
    let silenced = ["#[", "allow("].concat();
    let inner = ["#![", "allow("].concat();
    for (file, text) in FOLDERS.iter().flat_map(|folder| sources(folder)) {
        assert!(text.starts_with("//!"), "{file} does not start with //!");
        assert!(
            !text.contains(&silenced) && !text.contains(&inner),
            "{file}: write expect(…, reason) instead of allow"
        );
    }
}

/// Maximum and 95th percentile of the lines of files and functions.
const LONGEST_FILE: usize = 450;
const USUAL_FILE: usize = 350;
const LONGEST_FUNCTION: usize = 60;
const USUAL_FUNCTION: usize = 45;

/// Functions that are plain lists with one line per item.
const PLAIN_LISTS: [(&str, &str); 6] = [
    ("src/auth/audit.rs", "as_str"),
    ("src/runs/store/row.rs", "read"),
    ("src/runs/store/row.rs", "try_from"),
    ("src/results/verdict/limits/table.rs", "about"),
    ("src/results/store/endings.rs", "update"),
    ("src/results/store/imports.rs", "bound"),
];

#[test]
fn files_and_functions_fit_a_screen() {
    let (mut files, mut functions) = (Vec::new(), Vec::new());
    for (file, text) in sources("src").into_iter().chain(sources("agents/src")).chain(sources("crates")) {
        let lines = text.lines().count();
        assert!(lines <= LONGEST_FILE, "{file} has {lines} lines: split it");
        files.push(lines);
        for (name, lines) in function_lengths(&production_part(&text)) {
            let is_list = PLAIN_LISTS.contains(&(file.as_str(), name.as_str()));
            assert!(lines <= LONGEST_FUNCTION || is_list, "{file}: {name} has {lines} lines");
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
        let end = format!("{}}}", &line[..line.len() - bare.len()]);
        let name = bare[at + 3..].split(['(', '<']).next().unwrap_or_default();
        let Some(length) = lines[start..].iter().position(|line| *line == end) else { continue };
        let one_line = line.ends_with('}') || line.ends_with(';');
        found.push((name.to_owned(), if one_line { 1 } else { length + 1 }));
    }
    found
}

fn is_modifier(word: &str) -> bool {
    word.starts_with("pub") || matches!(word, "async" | "const" | "unsafe" | "extern")
}

#[test]
fn imports_form_no_large_cycle() {
    const LARGEST: usize = 4;
    for (folder, others) in [("src", 400), ("agents/src", 90), ("crates/statistics/src", 10)] {
        let files = sources(folder);
        assert!(files.len() > others);
        let graph = imports(folder, &files);
        for file in graph.keys() {
            let cycle: Vec<_> =
                reachable(&graph, file).into_iter().filter(|other| reachable(&graph, other).contains(file)).collect();
            assert!(cycle.len() <= LARGEST, "these files use each other: {cycle:?}");
        }
    }
}

type Graph = BTreeMap<String, BTreeSet<String>>;

/// The files whose items each file uses. Naming a module (`mod x;`, `use crate::x;`) does not count.
fn imports(folder: &str, files: &[(String, String)]) -> Graph {
    let by_module: BTreeMap<String, &String> =
        files.iter().map(|(file, _)| (module_path(folder, file), file)).collect();
    let aliases = re_exports(folder, files);
    let mut graph = Graph::new();
    for (file, text) in files.iter().filter(|(file, _)| !file.contains("/tests") && !file.ends_with("/testing.rs")) {
        let own = module_path(folder, file);
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        let mut used = BTreeSet::new();
        for (path, alias, public) in use_items(text, &own, files, folder) {
            names.insert(alias, path.clone());
            if !public && !by_module.contains_key(&path) {
                used.insert(path);
            }
        }
        used.extend(code_paths(text).iter().filter_map(|path| {
            let (first, rest) = path.split_once("::")?;
            let base = match first {
                "crate" => String::new(),
                "self" => own.clone(),
                "super" => own.rsplit_once("::").map_or(String::new(), |(above, _)| above.to_owned()),
                name => names.get(name).cloned().or_else(|| child(&own, name, &by_module))?,
            };
            Some(if base.is_empty() { rest.to_owned() } else { format!("{base}::{rest}") })
        }));
        let targets = used.iter().filter_map(|path| owner(path, &by_module, &aliases));
        graph.insert(file.clone(), targets.filter(|other| other != file).collect());
    }
    graph
}

/// The path of a module declared in a file.
fn child(own: &str, name: &str, modules: &BTreeMap<String, &String>) -> Option<String> {
    let path = if own.is_empty() { name.to_owned() } else { format!("{own}::{name}") };
    modules.contains_key(&path).then_some(path)
}

/// `src/runs/model.rs` is `runs::model`.
fn module_path(folder: &str, file: &str) -> String {
    let below = file.trim_start_matches(folder).trim_start_matches('/').trim_end_matches(".rs");
    let path = below.trim_end_matches("/mod").replace('/', "::");
    if matches!(path.as_str(), "lib" | "main" | "mod") { String::new() } else { path }
}

/// The file that defines the item of a path, resolving re-exports.
fn owner(path: &str, modules: &BTreeMap<String, &String>, aliases: &BTreeMap<String, String>) -> Option<String> {
    let mut path = path.to_owned();
    for _ in 0..4 {
        let Some(next) = aliases.get(&path) else { break };
        path.clone_from(next);
    }
    let parts: Vec<_> = path.split("::").collect();
    (1..=parts.len()).rev().find_map(|end| modules.get(&parts[..end].join("::"))).map(|file| (*file).clone())
}

/// The paths that `pub use` re-exports, with their original paths.
fn re_exports(folder: &str, files: &[(String, String)]) -> BTreeMap<String, String> {
    let mut aliases = BTreeMap::new();
    for (file, text) in files {
        let own = module_path(folder, file);
        for (path, alias, public) in use_items(text, &own, files, folder) {
            if public {
                aliases.insert(if own.is_empty() { alias } else { format!("{own}::{alias}") }, path);
            }
        }
    }
    aliases
}

/// The items of its own crate that a file imports: path, name, and whether it is re-exported.
fn use_items(text: &str, own: &str, files: &[(String, String)], folder: &str) -> Vec<(String, String, bool)> {
    let code = production_part(text);
    let mut items = Vec::new();
    let mut rest = code.as_str();
    while let Some(at) = rest.find("use ") {
        let starts_line = rest[..at].rsplit('\n').next().unwrap_or_default();
        let public = starts_line.starts_with("pub");
        let is_statement = starts_line.split_whitespace().all(is_modifier) && !starts_line.starts_with(' ');
        let end = rest[at..].find(';').map_or(rest.len(), |end| at + end);
        if is_statement {
            let mut flat = Vec::new();
            expand("", &rest[at + 4..end], &mut flat);
            for path in flat {
                let (path, name) =
                    path.split_once(" as ").unwrap_or((&path, path.rsplit("::").next().unwrap_or(&path)));
                let path = path.trim_end_matches("::self");
                let name = if name == "self" { path.rsplit("::").next().unwrap_or(path) } else { name };
                if let Some(absolute) = absolute(path, own, files, folder) {
                    items.push((absolute, name.to_owned(), public));
                }
            }
        }
        rest = &rest[(if is_statement { end } else { at + 4 }).min(rest.len())..];
    }
    items
}

/// Resolves a path from the root of the crate; none for paths of other crates.
fn absolute(path: &str, own: &str, files: &[(String, String)], folder: &str) -> Option<String> {
    let mut base: Vec<&str> = own.split("::").filter(|part| !part.is_empty()).collect();
    let mut parts = path.split("::").peekable();
    match *parts.peek()? {
        "crate" => {
            parts.next();
            base.clear();
        }
        "self" => drop(parts.next()),
        "super" => {
            while parts.next_if_eq(&"super").is_some() {
                base.pop();
            }
        }
        first => {
            let child = format!("{}::{first}", base.join("::"));
            let child = child.trim_start_matches("::");
            files.iter().find(|(file, _)| module_path(folder, file) == child)?;
        }
    }
    base.extend(parts);
    Some(base.join("::"))
}

/// Paths of at least two parts in code, without `use` statements.
fn code_paths(text: &str) -> BTreeSet<String> {
    let code = production_part(text);
    let is_use = |line: &&str| line.split_whitespace().find(|word| !is_modifier(word)) == Some("use");
    let code = code.split('\n').filter(|line| !is_use(line)).collect::<Vec<_>>().join("\n");
    let word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    let words = code.split(|letter| !word(letter)).map(|word| word.trim_matches(':'));
    words.filter(|word| word.contains("::") && word.starts_with(char::is_lowercase)).map(str::to_owned).collect()
}

fn reachable(graph: &Graph, from: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let mut next = vec![from.to_owned()];
    while let Some(file) = next.pop() {
        for other in graph.get(&file).into_iter().flatten() {
            if all.insert(other.clone()) {
                next.push(other.clone());
            }
        }
    }
    all
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
