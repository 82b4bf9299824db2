//! Every command of the README and the chapters runs, in order, against the site that the docs start.
//!
//! Without k6 or the bundled targets, the test prints the reason and passes.

use std::{collections::BTreeSet, process::Command};

use brewbench_cli::Cli;
use clap::{CommandFactory, error::ErrorKind};

use super::{
    files, read,
    reader::Reader,
    root,
    snippets::{self, Step, blocks, commands, steps, words},
};

/// The chapter whose server and agent are the site of all others.
const FIRST: &str = "docs/getting-started/server.md";

/// Commands that do not run here, by their start, and why. Their targets, packages and flags are checked.
const NOT_RUN: [(&str, &str); 4] = [
    ("brewbench trend pin", "pins belong to users, and the token of the book to none; `tests/all/trends.rs` runs it"),
    ("brewbench trend unpin", "as `brewbench trend pin`"),
    ("make ", "builds in release mode or runs for minutes; `make --dry-run` and clap check the line"),
    ("cargo run ", "builds in release mode and runs for minutes; the package must exist"),
];

fn not_run(command: &str) -> Option<&'static str> {
    NOT_RUN.iter().map(|(start, _)| *start).find(|start| command.starts_with(start))
}

/// The Markdown files in the order in which they are followed.
fn in_order() -> Vec<String> {
    let rest = files().into_iter().filter(|file| file != FIRST);
    [FIRST.to_owned()].into_iter().chain(rest).collect()
}

#[tokio::test]
async fn every_command_of_the_docs_does_what_they_say() {
    let Some(mut reader) = Reader::new().await else { return };
    let (mut faults, mut executed) = (Vec::new(), 0);
    for file in in_order() {
        let steps = steps(&read(&file));
        if steps.is_empty() {
            continue;
        }
        reader.begin(&file).await;
        for step in steps {
            match step {
                Step::Save { name, text } => reader.save(&name, &text).await,
                Step::Run(command) if not_run(&command.text).is_some() => {}
                Step::Run(command) => {
                    executed += 1;
                    if let Err(fault) = reader.run(&command).await {
                        let fault = format!("{file}:{}: {}\n{fault}", command.line, command.text);
                        eprintln!("{fault}");
                        faults.push(fault);
                    }
                }
            }
        }
        reader.end().await;
    }
    reader.finish_all().await;
    assert!(faults.is_empty(), "{} commands lie\n\n{}", faults.len(), faults.join("\n\n"));
    assert!(executed > 90, "only {executed} commands were executed");
}

/// All commands of the docs with their files.
fn all_commands() -> Vec<(String, snippets::Command)> {
    let of = |file: String| {
        let found: Vec<_> = blocks(&read(&file)).iter().flat_map(commands).collect();
        found.into_iter().map(move |command| (file.clone(), command))
    };
    files().into_iter().flat_map(of).collect()
}

/// Fails if clap refuses a command.
#[track_caller]
fn understand(place: &str, words: &[String]) {
    match Cli::command().try_get_matches_from(words) {
        Ok(_) => {}
        Err(fault) if fault.kind() == ErrorKind::DisplayHelp => {}
        Err(fault) => panic!("{place}: {fault}"),
    }
}

#[test]
fn every_command_is_understood() {
    let mut starts = BTreeSet::new();
    for (file, snippets::Command { line, text, codes, .. }) in all_commands() {
        let place = format!("{file}:{line}: {text}");
        let words = words(&text);
        starts.extend(not_run(&text));
        match words[0].as_str() {
            // The docs show an invalid command line, too.
            "brewbench" if codes == [2] => assert!(Cli::command().try_get_matches_from(&words).is_err(), "{place}"),
            "brewbench" => understand(&place, &words),
            "make" => {
                // `make` expands the line and finds its targets without doing anything.
                let arguments = words[1..].iter().map(String::as_str);
                let mut make = Command::new("make");
                make.arg("--dry-run").args(arguments).current_dir(root()).env_remove("MAKEFLAGS");
                let done = make.output().expect("make");
                assert!(done.status.success(), "{place}: {}", String::from_utf8_lossy(&done.stderr));
                if words[1] == "demo" {
                    let flags = words.iter().find_map(|word| word.strip_prefix("ARGS=")).unwrap_or_default();
                    let demo = ["brewbench", "demo"].into_iter().chain(flags.split_whitespace());
                    understand(&place, &demo.map(str::to_owned).collect::<Vec<_>>());
                }
            }
            "cargo" => {
                let package = words.iter().skip_while(|word| *word != "--package").nth(1).expect("a package");
                let folder = package.strip_prefix("brewbench-").unwrap_or(package);
                let manifest = read(&format!("{folder}/Cargo.toml"));
                assert!(manifest.contains(&format!("name = \"{package}\"")), "{place}");
            }
            "curl" => {}
            other => panic!("{place}: nothing checks {other:?}"),
        }
    }
    let unused: Vec<_> = NOT_RUN.iter().filter(|(start, _)| !starts.contains(start)).collect();
    assert!(unused.is_empty(), "no command of the docs begins like this: {unused:?}");
}
