//! What the contributors' documentation mentions exists: files, tests and items of the code.

use std::{fs, path::Path};

use super::{all_files, root};

/// The documents with names of the code.
const DOCUMENTS: [&str; 4] = [
    "docs/contributing/architecture.md",
    "docs/contributing/extending.md",
    "docs/contributing/development.md",
    "agents/README.md",
];

/// Words that begin the definition of an item; `pub` also that of a field.
const DEFINITIONS: [&str; 10] =
    ["fn", "pub", "struct", "enum", "trait", "type", "const", "static", "mod", "macro_rules!"];

/// The texts in backticks of a document, without blocks of code.
fn mentions(document: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(document)).expect(document);
    let mut prose = String::new();
    let mut is_block = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_block = !is_block;
        } else if !is_block {
            prose.push_str(line);
            prose.push(' ');
        }
    }
    prose.split('`').skip(1).step_by(2).flat_map(alternatives).collect()
}

/// `a/{b,c}.rs` is `a/b.rs` and `a/c.rs`.
fn alternatives(text: &str) -> Vec<String> {
    let parts = text.split_once('{').and_then(|(head, rest)| Some((head, rest.split_once('}')?)));
    let Some((head, (list, tail))) = parts.filter(|(_, (list, _))| list.contains(',')) else {
        return vec![text.to_owned()];
    };
    list.split(',').map(|one| format!("{head}{}{tail}", one.trim())).collect()
}

#[test]
fn every_path_exists() {
    let mut count = 0;
    for document in DOCUMENTS {
        for mention in mentions(document) {
            let path = mention.split(['#', ' ', ':']).next().unwrap_or_default();
            let is_pattern = path.contains(['*', '{', '<', '$'])
                || ["MODULE", "NOUN", "NNNN", "NEW"].iter().any(|word| path.contains(word));
            let first = path.split('/').next().unwrap_or_default();
            if path.contains('/') && !is_pattern && !first.is_empty() && root().join(first).is_dir() {
                count += 1;
                let beside = Path::new(document).parent().map(|folder| root().join(folder).join(path));
                let exists = root().join(path).exists() || beside.is_some_and(|path| path.exists());
                assert!(exists, "{document}: `{mention}`");
            }
        }
    }
    assert!(count > 200, "only {count} paths were found");
}

#[test]
fn every_link_to_a_file_leads_to_one() {
    let mut count = 0;
    for document in DOCUMENTS {
        let text = fs::read_to_string(root().join(document)).expect(document);
        let folder = Path::new(document).parent().expect("a folder");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            if !link.is_empty() && !link.contains("://") {
                count += 1;
                assert!(root().join(folder).join(link).exists(), "{document}: {link}");
            }
        }
    }
    assert!(count > 5, "only {count} links were found");
}

/// Test names are sentences: they have three underscores or more. `module::item` names an item.
#[test]
fn every_test_and_item_exists() {
    let is_name = |text: &str| !text.is_empty() && text.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    let mut count = 0;
    for document in DOCUMENTS {
        for mention in mentions(document) {
            let mention = mention.trim_end_matches("()");
            let parts: Vec<_> = mention.split("::").collect();
            let is_sentence =
                parts.len() == 1 && mention.matches('_').count() > 2 && mention.starts_with(char::is_lowercase);
            if !parts.iter().all(|part| is_name(part)) || !(is_sentence || parts.len() > 1) {
                continue;
            }
            count += 1;
            let last = parts[parts.len() - 1];
            assert!(is_defined(last), "{document}: `{mention}`");
        }
    }
    assert!(count > 40, "only {count} names were found");
}

/// Whether a file is named so, or some file defines an item of this name.
fn is_defined(name: &str) -> bool {
    let file = format!("/{name}.rs");
    let starts = DEFINITIONS.map(|word| format!("{word} {name}"));
    let ends = |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_');
    all_files().any(|(path, text)| {
        path.ends_with(&file)
            || starts.iter().any(|start| text.match_indices(start).any(|(at, _)| ends(&text[at + start.len()..])))
    })
}
