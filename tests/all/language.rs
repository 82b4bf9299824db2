//! What users and contributors read is plain English: no words that the glossary avoids, no sentence of more than 30
//! words.

use std::{fs, path::Path};

use brewbench::docs::book::BOOK;
use brewbench_cli::Cli;
use clap::{Command, CommandFactory};
use serde_json::Value;

use crate::{
    harness::{App, root},
    tidy::sources,
};

/// Words and phrases of `docs/contributing/glossary.md` that are never the right ones.
const AVOIDED: [&str; 26] = [
    "told",
    "anew",
    "whoever",
    "nevertheless",
    "meanwhile",
    "hold it against",
    "held against",
    "made up",
    "look over",
    "looks over",
    "mend",
    "mended",
    "by chance",
    "ended badly",
    "dial in",
    "dials in",
    "speaks against",
    "speak against",
    "wishes",
    "obituary",
    "courier",
    "roster",
    "for want of",
    "held to",
    "so many",
    "crew",
];

/// The longest sentence in pages and help, words.
const MAX_WORDS: usize = 30;

/// Fails for each avoided word in a text.
fn avoided(place: &str, text: &str, faults: &mut Vec<String>) {
    let text = text.to_lowercase();
    let is_letter = |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    for word in AVOIDED {
        for (at, _) in text.match_indices(word) {
            let (before, after) = (text[..at].chars().next_back(), text[at + word.len()..].chars().next());
            if !is_letter(before) && !is_letter(after) {
                let line = text[..at].matches('\n').count() + 1;
                faults.push(format!("{place}:{line}: \"{word}\""));
            }
        }
    }
}

/// Fails for each sentence of more than [`MAX_WORDS`] words.
fn long_sentences(place: &str, text: &str, faults: &mut Vec<String>) {
    for sentence in text.split_inclusive(['.', ':', ';', '?', '!', '|']).flat_map(|part| part.split("\n\n")) {
        let count = sentence.split_whitespace().filter(|word| word.contains(char::is_alphabetic)).count();
        if count > MAX_WORDS {
            let start: Vec<&str> = sentence.split_whitespace().take(12).collect();
            faults.push(format!("{place}: {count} words: {} …", start.join(" ")));
        }
    }
}

#[track_caller]
fn none(faults: &[String]) {
    assert!(
        faults.is_empty(),
        "{} faults; docs/contributing/glossary.md has the terms\n{}",
        faults.len(),
        faults.join("\n")
    );
}

/// The words of a template: without tags, attributes but those that users read, and what Askama replaces.
fn words_of_template(text: &str) -> String {
    let (mut words, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(['<', '{']) {
        words.push_str(&rest[..at]);
        let (end, skipped) = match &rest[at..] {
            part if part.starts_with("{{") => ("}}", 2),
            part if part.starts_with("{%") => ("%}", 2),
            part if part.starts_with("{#") => ("#}", 2),
            part if part.starts_with("<script") => ("</script>", 9),
            part if part.starts_with('<') => (">", 1),
            _ => ("", 1),
        };
        // Inline elements and values stay inside their sentence; blocks end it.
        let is_block = [
            "<p", "</p", "<li", "</li", "<h", "</h", "<t", "</t", "<d", "</d", "<option", "<label", "<button",
            "<section", "{% else", "{%- else", "{% if", "{%- if", "{% end", "{%- end", "{% match", "{% when",
            "{%- when",
        ]
        .iter()
        .any(|start| rest[at..].starts_with(start));
        words.push_str(if is_block {
            "\n\n"
        } else if end == "}}" {
            " x "
        } else {
            ""
        });
        let tail = &rest[at + 1..];
        rest = tail.find(end).map_or("", |close| &tail[close + skipped.min(end.len().max(1))..]);
    }
    words + rest
}

fn templates() -> Vec<(String, String)> {
    fn visit(folder: &Path, all: &mut Vec<(String, String)>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                visit(&path, all);
            } else {
                all.push((path.display().to_string(), fs::read_to_string(&path).expect("a template")));
            }
        }
    }
    let mut all = Vec::new();
    visit(&root().join("templates"), &mut all);
    assert!(all.len() > 50, "{} templates", all.len());
    all
}

#[test]
fn pages_are_in_plain_english() {
    let mut faults = Vec::new();
    for (file, text) in templates() {
        avoided(&file, &text, &mut faults);
        long_sentences(&file, &words_of_template(&text), &mut faults);
    }
    none(&faults);
}

#[test]
fn help_is_in_plain_english() {
    fn visit(command: &Command, path: &str, faults: &mut Vec<String>) {
        let texts = [command.get_about(), command.get_long_about(), command.get_after_help()];
        let arguments = command.get_arguments().flat_map(|argument| {
            [argument.get_help(), argument.get_long_help()]
                .into_iter()
                .flatten()
                .map(|help| (argument.get_id().to_string(), help.to_string()))
        });
        let own = texts.into_iter().flatten().map(|text| (String::new(), text.to_string()));
        for (argument, text) in own.chain(arguments) {
            let place = format!("{path} {argument}");
            avoided(&place, &text, faults);
            long_sentences(&place, &text, faults);
        }
        for command in command.get_subcommands() {
            visit(command, &format!("{path} {}", command.get_name()), faults);
        }
    }
    let mut faults = Vec::new();
    visit(&Cli::command(), "brewbench", &mut faults);
    none(&faults);
}

#[tokio::test]
async fn the_api_describes_itself_in_plain_english() {
    fn visit(place: &str, value: &Value, faults: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    match value.as_str() {
                        Some(text) if matches!(name.as_str(), "description" | "summary" | "title") => {
                            avoided(place, text, faults);
                            long_sentences(place, text, faults);
                        }
                        _ => visit(&format!("{place}/{name}"), value, faults),
                    }
                }
            }
            Value::Array(values) => values.iter().for_each(|value| visit(place, value, faults)),
            _ => {}
        }
    }
    let app = App::start().await;
    let document = app.reader().await.get("/api/v1/openapi.json").await.ok().json();
    let mut faults = Vec::new();
    visit("openapi", &document, &mut faults);
    none(&faults);
}

#[test]
fn the_docs_are_in_plain_english() {
    let mut faults = Vec::new();
    for chapter in BOOK.chapters().filter(|chapter| chapter.path != "contributing/glossary") {
        avoided(&chapter.path, chapter.text(), &mut faults);
    }
    for file in ["README.md", "CONTRIBUTING.md", "SECURITY.md"] {
        let path = root().join(file);
        avoided(file, &fs::read_to_string(path).expect("a file"), &mut faults);
    }
    none(&faults);
}

/// The sentences of comments.
fn comments(text: &str) -> String {
    let comment =
        |line: &str| line.trim_start().strip_prefix("//").map(|rest| rest.trim_start_matches(['/', '!']).to_owned());
    // Code between two comments ends a sentence.
    text.lines().map(|line| comment(line).unwrap_or_else(|| "\n".to_owned()) + "\n").collect()
}

#[test]
fn tests_are_in_plain_english() {
    let mut faults = Vec::new();
    for (file, text) in sources("tests/all") {
        // This file lists the words.
        if file != "tests/all/language.rs" {
            // Names are sentences, too: `_` separates their words.
            avoided(&file, &text.replace('_', " "), &mut faults);
        }
        long_sentences(&file, &comments(&text), &mut faults);
    }
    none(&faults);
}

#[test]
fn errors_logs_and_comments_avoid_the_words_that_the_glossary_avoids() {
    let mut faults = Vec::new();
    for folder in ["src", "agents", "crates", "bench", "testing"] {
        for (file, text) in sources(folder) {
            avoided(&file, &text, &mut faults);
        }
    }
    none(&faults);
}
