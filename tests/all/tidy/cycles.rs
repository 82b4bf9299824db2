//! No circles: files that use each other can be understood only together.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use super::{crates, expand, is_modifier, production_part};

#[test]
fn imports_form_no_large_cycle() {
    const MAX_CIRCLE: usize = 4;
    for (folder, files) in crates() {
        let folder = Path::new(folder).join("src").display().to_string();
        let files: Vec<_> = files.iter().filter(|(file, _)| Path::new(file).starts_with(&folder)).cloned().collect();
        let graph = imports(&folder, &files);
        for file in graph.keys() {
            let cycle: Vec<_> =
                reachable(&graph, file).into_iter().filter(|other| reachable(&graph, other).contains(file)).collect();
            assert!(cycle.len() <= MAX_CIRCLE, "these files use each other: {cycle:?}");
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
            // What a module re-exports from its own files is its table of contents.
            let is_contents = public && path.starts_with(&format!("{own}::"));
            if !is_contents && !by_module.contains_key(&path) {
                used.insert(path);
            }
        }
        used.extend(code_paths(text).iter().filter_map(|path| {
            let (first, mut rest) = path.split_once("::")?;
            let base = match first {
                "crate" => String::new(),
                "self" => own.clone(),
                "super" => {
                    let mut above = parent(&own);
                    while let Some(further) = rest.strip_prefix("super::") {
                        (above, rest) = (parent(above), further);
                    }
                    above.to_owned()
                }
                name => names.get(name).cloned().or_else(|| child(&own, name, &by_module))?,
            };
            Some(if base.is_empty() { rest.to_owned() } else { format!("{base}::{rest}") })
        }));
        let targets = used.iter().filter_map(|path| owner(path, &by_module, &aliases));
        graph.insert(file.clone(), targets.filter(|other| other != file).collect());
    }
    graph
}

/// The path of the module that a module is in.
fn parent(path: &str) -> &str {
    path.rsplit_once("::").map_or("", |(above, _)| above)
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
    let code =
        code.split('\n').filter(|line| !is_use(line)).collect::<Vec<_>>().join("\n").replace("pub(in crate::", "(");
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
