//! What an identity covers: named digests, from which one digest is made.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use brewbench_wire::hex;
use brewbench_wire::target::Code;
use sha2::{Digest, Sha256};

use super::tree::{self, Budget};
use crate::host::environment::Facts;
use crate::target::fingerprint::Fingerprints;

/// How identities are made; part of each, so that another way makes other identities.
const SCHEME: &str = "1";

/// Files whose digests are facts of a run.
const MAX_FACTS: usize = 40;

/// Digits of such a digest.
const FACT_DIGITS: usize = 12;

/// Collects what an identity covers.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    fingerprints: &'a Fingerprints,
    budget: Budget,
    /// Digests of texts and files by name.
    digests: BTreeMap<String, String>,
    /// Names that are files.
    files: BTreeSet<String>,
    read: BTreeSet<PathBuf>,
    unknown: Option<String>,
}

impl<'a> Parts<'a> {
    pub(super) fn new(fingerprints: &'a Fingerprints) -> Self {
        let digests = BTreeMap::from([("scheme".to_owned(), SCHEME.to_owned())]);
        Self {
            fingerprints,
            budget: Budget::new(),
            digests,
            files: BTreeSet::new(),
            read: BTreeSet::new(),
            unknown: None,
        }
    }

    /// Adds a text.
    pub(super) fn text(&mut self, name: &str, text: &str) {
        self.digests.insert(name.to_owned(), hex(&Sha256::digest(text)));
    }

    /// Adds arguments and variables as the manifest has them: placeholders are the same in each run.
    pub(super) fn settings(&mut self, command: &[String], env: &BTreeMap<String, String>) {
        let mut text = String::new();
        for word in command.iter().chain(env.iter().flat_map(|(name, value)| [name, value])) {
            text.push_str(word);
            text.push('\0');
        }
        self.text("settings", &format!("{} {text}", command.len()));
    }

    /// Adds a file of any size: what a command names is read anyway when it starts.
    pub(super) fn file(&mut self, name: &str, path: &Path) {
        if !self.read.insert(path.to_owned()) {
            return;
        }
        match self.fingerprints.compute(path) {
            Ok(sha256) => {
                self.digests.insert(format!("file {name}"), sha256);
                self.files.insert(name.to_owned());
            }
            Err(error) => self.miss(format!("{} can't be read: {error}", path.display())),
        }
    }

    /// Adds all files below a folder, except those that `is_left_out` names.
    pub(super) fn folder(&mut self, name: &str, folder: &Path, is_left_out: &dyn Fn(&Path) -> bool) {
        if !self.read.insert(folder.to_owned()) {
            return;
        }
        match tree::files(folder, &mut self.budget, is_left_out) {
            Ok(files) => {
                for (own, path) in files {
                    self.file(&if name.is_empty() { own } else { format!("{name}/{own}") }, &path);
                }
            }
            Err(fault) => self.miss(format!("folder {}: {fault}", folder.display())),
        }
    }

    /// Adds the files below a folder that match one of these patterns; each must match one.
    pub(super) fn matching(&mut self, folder: &Path, patterns: &[String]) {
        let all = match tree::files(folder, &mut Budget { files: usize::MAX, bytes: u64::MAX }, &|_| false) {
            Ok(all) => all,
            Err(fault) => return self.miss(format!("folder {}: {fault}", folder.display())),
        };
        for pattern in patterns {
            let mut matching = all.iter().filter(|(name, _)| tree::matches(pattern, name)).peekable();
            if matching.peek().is_none() {
                self.miss(format!("identity: {pattern:?} matches no file"));
            }
            for (name, path) in matching {
                if let Err(fault) = self.budget.spend(fs::metadata(path).map_or(0, |metadata| metadata.len())) {
                    return self.miss(format!("identity: {pattern:?}: {fault}"));
                }
                self.file(name, path);
            }
        }
    }

    /// Returns what a command prints. The error is a part of a sentence.
    pub(super) fn output(&self, command: &[String], folder: &Path) -> Result<String, String> {
        self.fingerprints.output(command, folder)
    }

    /// Notes that something is not covered; the first reason is reported.
    pub(super) fn miss(&mut self, why: String) {
        self.unknown.get_or_insert(why);
    }

    /// Forgets what is not covered: the manifest says what counts.
    pub(super) fn forgive(&mut self) {
        self.unknown = None;
    }

    /// Returns the digest of everything.
    pub(super) fn code(&self) -> Code {
        let mut all = Sha256::new();
        for (name, digest) in &self.digests {
            all.update(format!("{name}\0{digest}\n"));
        }
        let short = |why: &String| why.replace(char::is_control, " ").chars().take(120).collect();
        Code { sha256: hex(&all.finalize()), unknown: self.unknown.as_ref().map(short) }
    }

    /// Returns facts that show which file differs.
    pub(super) fn facts(&self, code: Option<&Code>) -> Facts {
        let mut facts = Facts::new();
        if let Some(Code { sha256, unknown }) = code {
            facts.insert("target.code".to_owned(), sha256.clone());
            facts.extend(unknown.iter().map(|why| ("target.code_unknown".to_owned(), why.clone())));
        }
        let known = self.files.iter().filter_map(|name| Some((name, self.digests.get(&format!("file {name}"))?)));
        let digest = |sha256: &String| sha256.chars().take(FACT_DIGITS).collect();
        facts.extend(known.take(MAX_FACTS).map(|(name, sha256)| (format!("target.file.{name}"), digest(sha256))));
        facts
    }
}
