//! Everything about a machine, its settings and a target that may affect a run, as named facts.
//!
//! Names are dotted: `cpu.model`, `memory.bytes`, `target.env.LANG`; kernel settings keep the kernel's names,
//! `net.core.somaxconn`. Amounts of memory are in bytes, as their names say. Unreadable facts are omitted.
//!
//! - [`cpu`]: hardware, which does not change while the agent runs, so it is read once.
//! - [`settings`]: may change at any time, so they are read for every run: some sixty small files, in less than a
//!   millisecond.
//! - [`target`]: the program under test; [`secret`]: hides secrets.

pub mod cpu;
pub mod secret;
pub mod settings;
pub mod target;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use brewbench_wire::PROTOCOL;

use crate::sandbox::cores;

/// Facts by name.
pub type Facts = BTreeMap<String, String>;

/// The machine below a root folder: `/` except in tests.
#[derive(Clone, Debug)]
pub struct Environment {
    root: PathBuf,
    lasting: Facts,
}

impl Environment {
    /// Reads the facts that do not change.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        let mut lasting = cpu::facts(&root);
        lasting.insert("cpu.usable".to_owned(), cores::allowed().len().to_string());
        lasting.insert("brewbench.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        lasting.insert("brewbench.protocol".to_owned(), PROTOCOL.to_string());
        Self { root, lasting }
    }

    /// Returns all current facts.
    pub fn facts(&self) -> Facts {
        let mut facts = self.lasting.clone();
        facts.extend(settings::facts(&self.root));
        facts
    }
}

/// Adds the facts that are known.
fn put(facts: &mut Facts, known: impl IntoIterator<Item = (impl Into<String>, Option<String>)>) {
    facts.extend(known.into_iter().filter_map(|(name, value)| Some((name.into(), value?))));
}

/// Reads a file with a single value; `None` if it is empty or can't be read.
fn line(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" ")).filter(|text| !text.is_empty())
}

/// Returns the folders with this name followed by a number, sorted by that number.
fn numbered(folder: &Path, name: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let number = |path: &PathBuf| path.file_name()?.to_str()?.strip_prefix(name)?.parse::<u32>().ok();
    let mut found: Vec<_> = entries.map(|entry| entry.path()).filter_map(|path| Some((number(&path)?, path))).collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Creates a fake machine from files by path.
    pub(crate) fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        root
    }

    #[test]
    fn this_machine_has_the_main_facts() {
        let environment = Environment::new("/");
        let begun = std::time::Instant::now();
        let facts = environment.facts();
        println!("{} facts took {} µs", facts.len(), begun.elapsed().as_micros());
        for name in ["cpu.model", "cpu.usable", "kernel.release", "memory.bytes", "load.before", "limit.open_files"] {
            assert!(facts.get(name).is_some_and(|value| !value.is_empty()), "{name}: {facts:#?}");
        }
        assert_eq!(facts["brewbench.protocol"], PROTOCOL.to_string());
    }

    #[test]
    fn an_empty_machine_has_few_facts() {
        let root = machine(&[]);
        let facts = Environment::new(root.path()).facts();
        let names: Vec<_> = facts.keys().map(String::as_str).collect();
        assert_eq!(names, ["brewbench.protocol", "brewbench.version", "cpu.model", "cpu.usable", "kernel.cgroups"]);
    }
}
