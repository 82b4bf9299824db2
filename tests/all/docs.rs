//! The documentation tells the truth: its links lead somewhere, its commands and files are valid, its generated pages
//! are current.

mod executed;
mod generated;
mod reader;
mod snippets;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use brewbench::{
    docs::{book::BOOK, render::render},
    results::import::folder,
};
use brewbench_agent::target::manifest;
use brewbench_cli::config_file;
use reqwest::StatusCode;

use crate::{
    harness::{App, root},
    tidy::{production_part, sources},
};

fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap_or_else(|fault| panic!("{file}: {fault}"))
}

/// Every Markdown file that users read: the README and the chapters.
fn files() -> Vec<String> {
    let chapters = BOOK.chapters().map(|chapter| format!("docs/{}.md", chapter.path));
    ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"]
        .map(str::to_owned)
        .into_iter()
        .chain(chapters)
        .collect()
}

/// The fenced blocks of a language: their file and text.
fn blocks_in(language: &str) -> Vec<(String, String)> {
    let of = |file: String| {
        let found = snippets::blocks(&read(&file)).into_iter().filter(|block| block.language == language);
        found.map(move |block| (file.clone(), block.text)).collect::<Vec<_>>()
    };
    let all: Vec<_> = files().into_iter().flat_map(of).collect();
    assert!(!all.is_empty(), "no block of {language}");
    all
}

#[tokio::test]
async fn every_chapter_is_served_without_a_login() {
    let app = App::start().await;
    let visitor = app.anonymous().in_browser();
    for chapter in BOOK.chapters() {
        let page = visitor.get(&chapter.href()).await.ok().text();
        assert!(page.contains("<h1>") && page.contains(r#"aria-current="page""#), "{}: {page}", chapter.path);
    }
    assert!(visitor.get("/docs").await.ok().text().contains("<h1>brewbench</h1>"));
    assert_eq!(visitor.get("/docs/guide/nothing").await.status, StatusCode::NOT_FOUND);
    assert_eq!(visitor.get("/docs/..%2fCargo.toml").await.status, StatusCode::NOT_FOUND);
    let found = visitor.get("/docs/search?q=minimum+eff").await.ok().text();
    assert!(found.contains("/docs/guide/statistics") && found.contains("<mark>"), "{found}");
    let hostile = visitor.get("/docs/search?q=%22%3Cscript%3E+AND+(").await.ok().text();
    assert!(hostile.contains("&#60;script&#62; AND (") && !hostile.contains("<script> AND"), "{hostile}");
    let nothing = visitor.get("/docs/search?q=zyzzyva").await.ok().text();
    assert!(nothing.contains("No section contains"), "{nothing}");
}

#[test]
fn every_link_between_chapters_leads_somewhere() {
    let mut anchors = BTreeMap::new();
    for chapter in BOOK.chapters() {
        let ids: BTreeSet<String> =
            render(chapter.text(), &chapter.path).sections.into_iter().map(|section| section.id).collect();
        anchors.insert(chapter.href(), ids);
    }
    for chapter in BOOK.chapters() {
        let html = render(chapter.text(), &chapter.path).html.to_string();
        for link in html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            let (page, anchor) = link.split_once('#').unwrap_or((link, ""));
            if page.is_empty() || page.contains("://") {
                continue;
            }
            let ids = anchors.get(page).unwrap_or_else(|| panic!("{}: no chapter {link}", chapter.path));
            assert!(anchor.is_empty() || ids.contains(anchor), "{}: no heading {link}", chapter.path);
        }
    }
}

#[test]
fn every_page_is_explained_by_a_chapter() {
    let mut named = 0;
    for (file, text) in sources("src") {
        let chapters = ["guide/", "reference/", "getting-started/"].map(|folder| format!("\"{folder}"));
        for start in &chapters {
            for rest in production_part(&text).split(start.as_str()).skip(1) {
                let path = format!("{}{}", start.trim_matches('"'), rest.split('"').next().unwrap_or_default());
                let (path, anchor) = path.split_once('#').unwrap_or((&path, ""));
                let (chapter, _) = BOOK.find(path).unwrap_or_else(|| panic!("{file}: no chapter {path}"));
                let sections = render(chapter.text(), path).sections;
                assert!(
                    anchor.is_empty() || sections.iter().any(|section| section.id == anchor),
                    "{file}: {path}#{anchor}"
                );
                named += 1;
            }
        }
    }
    assert!(named > 15, "only {named} chapters are named");
}

#[test]
fn every_link_of_the_readme_leads_to_a_file() {
    let readme = read("README.md");
    assert!(readme.lines().count() <= 120, "{} lines", readme.lines().count());
    for link in readme.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
        assert!(link.starts_with("http") || root().join(link).exists(), "README.md: {link}");
    }
}

#[test]
fn every_manifest_and_configuration_file_is_one() {
    for (file, text) in blocks_in("toml") {
        let folder = tempfile::tempdir().expect("a folder");
        if text.starts_with("[server]") {
            let config = folder.path().join("brewbench.toml");
            fs::write(&config, &text).expect("a file");
            config_file::check(&config).unwrap_or_else(|fault| panic!("{file}: {fault}\n{text}"));
            continue;
        }
        fs::create_dir_all(folder.path().join("bin")).expect("a folder");
        for file in ["vmlinuz", "initrd.cpio"] {
            fs::write(folder.path().join(file), "").expect("a file");
        }
        fs::write(folder.path().join("target.toml"), &text).expect("a manifest");
        let (manifests, errors) = manifest::load(folder.path());
        assert!(manifests.len() == 1 && errors.is_empty(), "{file}: {errors:?}\n{text}");
    }
}

#[test]
fn every_index_is_one_and_every_other_json_parses() {
    let summary = fs::read_to_string(root().join("samples/published/index.json")).expect("an index");
    assert!(summary.contains("\"file\""));
    for (file, text) in blocks_in("json") {
        let value: serde_json::Value =
            serde_json::from_str(&text).unwrap_or_else(|fault| panic!("{file}: {fault}\n{text}"));
        if value.is_array() {
            let fault = folder::read(&text, &[]).expect_err("the file is missing");
            assert!(fault.contains("not in the folder"), "{file}: {fault}");
        }
    }
}

#[test]
fn every_file_that_is_named_exists() {
    for file in files() {
        let text = read(&file);
        for name in text.split('`').skip(1).step_by(2) {
            let path = name.split(['#', ' ']).next().unwrap_or_default();
            let known =
                ["src/", "agents/", "tests/", "templates/", "migrations/", "scripts/", "action/", "samples/", "bench/"];
            let is_pattern = path.contains(['*', '{', 'N']) || path.contains("MODULE") || path.contains("NOUN");
            if known.iter().any(|start| path.starts_with(start)) && !is_pattern && file != "CHANGELOG.md" {
                assert!(root().join(path).exists(), "{file}: `{name}`");
            }
        }
    }
}

/// The path of a file that a test writes when `BREWBENCH_WRITE_DOCS` is set, and otherwise compares.
fn current(file: &str, text: &str) {
    let path: PathBuf = root().join(file);
    if std::env::var_os("BREWBENCH_WRITE_DOCS").is_some() {
        fs::write(path, text).expect("the docs can be written");
        return;
    }
    let is = fs::read_to_string(path).unwrap_or_default();
    let line = is.lines().zip(text.lines()).position(|(is, should)| is != should).unwrap_or_default();
    assert!(is == text, "{file} is not current, from line {}: `make docs` writes it", line + 1);
}
