//! The folder of a manifest, which several targets may share.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::parts::Parts;
use crate::target::manifest;
use crate::target::manifest::Program;

/// The manifest's folder, which other targets may share.
pub(super) struct Own<'a> {
    pub(super) folder: &'a Path,
    /// Files and folders that other manifests name.
    pub(super) others: BTreeSet<PathBuf>,
    /// Those that this one names.
    pub(super) named: BTreeSet<PathBuf>,
    /// Where the target writes.
    pub(super) written: &'a [PathBuf],
}

impl Own<'_> {
    /// Adds a folder with code. Of a folder that several targets share, a part is one target's.
    pub(super) fn add(&self, parts: &mut Parts<'_>, folder: &Path, is_shared: bool) {
        match folder.strip_prefix(self.folder) {
            Ok(below) => match below.components().next().filter(|_| is_shared) {
                Some(first) => self.add_all(parts, &self.folder.join(first)),
                None => self.add_all(parts, self.folder),
            },
            Err(_) => self.add_all(parts, folder),
        }
    }

    pub(super) fn add_all(&self, parts: &mut Parts<'_>, folder: &Path) {
        let name = folder.strip_prefix(self.folder).unwrap_or(folder).display().to_string();
        parts.folder(&name, folder, &|path| self.is_left_out(path, folder));
    }

    fn is_left_out(&self, path: &Path, root: &Path) -> bool {
        let is_foreign =
            || path.ancestors().take_while(|above| *above != root).any(|above| self.others.contains(above));
        let is_named = || self.named.iter().any(|named| named.starts_with(path) || path.starts_with(named));
        let is_written = self.written.iter().any(|written| path.starts_with(written));
        is_written || is_foreign() && !is_named() || is_manifest(path, self.folder)
    }
}

/// Whether a file is a manifest: its description and its limits say nothing about the program.
fn is_manifest(path: &Path, folder: &Path) -> bool {
    path.parent() == Some(folder)
        && path.extension().is_some_and(|extension| extension == "toml")
        && manifest::read(path).is_ok()
}

/// Returns the files and folders of a shared folder that belong to these programs: those that they name, and the
/// folders in it where those are.
pub(super) fn claims(programs: &[&Program]) -> BTreeSet<PathBuf> {
    let mut all = BTreeSet::new();
    for program in programs {
        let words = program.command.iter().chain(program.env.values());
        for word in words.flat_map(|word| word.split_whitespace()) {
            all.extend(existing(word, std::slice::from_ref(&program.folder)));
            // A module of Python: `shop.main:app`.
            let module = word.split(':').next().unwrap_or_default().replace('.', "/");
            let first = module.split('/').next().unwrap_or_default();
            let is_name = |name: &str| !name.is_empty() && !name.contains("..");
            let modules = [format!("{module}.py"), first.to_owned()];
            let modules = modules.iter().filter(|name| is_name(name)).map(|name| program.folder.join(name));
            all.extend(modules.filter(|path| path.exists() && *path != program.folder));
        }
    }
    let folders: BTreeSet<&PathBuf> = programs.iter().map(|program| &program.folder).collect();
    let first = |path: &PathBuf, folder: &Path| Some(folder.join(path.strip_prefix(folder).ok()?.components().next()?));
    let parents: Vec<PathBuf> =
        folders.iter().flat_map(|folder| all.iter().filter_map(|path| first(path, folder))).collect();
    all.extend(parents);
    all.retain(|path| folders.iter().all(|folder| !folder.starts_with(path)));
    all
}

/// Returns the files and folders that a word names: as a whole, or in a part such as that of `--config=a.toml`.
pub(super) fn existing(word: &str, folders: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let separated = word.split([',', '=', ':', ';']);
    for part in std::iter::once(word).chain(separated).map(|part| part.trim_end_matches('*')) {
        if part.contains('{') || part.bytes().all(|byte| b"./".contains(&byte)) {
            continue;
        }
        let paths = folders.iter().map(|folder| folder.join(part.trim_start_matches("./")));
        found.extend(paths.filter(|path| path.exists()).map(|path| normal(&path)).take(1));
    }
    found
}

/// Removes a trailing slash or dot.
pub(super) fn normal(path: &Path) -> PathBuf {
    path.components().collect()
}
