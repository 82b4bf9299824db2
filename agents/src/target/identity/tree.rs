//! The files of a folder, in a fixed order and bounded, and patterns that choose some of them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files and bytes that may still be read.
#[derive(Debug)]
pub(super) struct Budget {
    pub(super) files: usize,
    pub(super) bytes: u64,
}

/// More than this is not read for one identity: an agent reads it again whenever something in it changes.
pub(super) const MAX_FILES: usize = 10_000;

/// See [`MAX_FILES`].
pub(super) const MAX_BYTES: u64 = 256 << 20;

impl Budget {
    pub(super) fn new() -> Self {
        Self { files: MAX_FILES, bytes: MAX_BYTES }
    }

    /// Takes a file of this length from it. Fails with a part of a sentence if it is too large.
    pub(super) fn spend(&mut self, bytes: u64) -> Result<(), String> {
        let left = self.files.checked_sub(1).zip(self.bytes.checked_sub(bytes));
        (self.files, self.bytes) = left.ok_or_else(|| {
            format!("it has more than {MAX_FILES} files or {} MiB; name what matters in `identity`", MAX_BYTES >> 20)
        })?;
        Ok(())
    }
}

/// Names that say nothing about a program's behaviour: version control, editors, and what tools write themselves. A
/// virtual environment is covered by what pip lists.
const BY_PRODUCTS: [&str; 14] = [
    ".DS_Store",
    ".cache",
    ".git",
    ".hg",
    ".idea",
    ".mypy_cache",
    ".nyc_output",
    ".pytest_cache",
    ".ruff_cache",
    ".svn",
    ".tox",
    ".venv",
    ".vscode",
    "__pycache__",
];

/// A server's database, in its data folder. It is no code, and it must not even be opened: where agent and server are one
/// process, closing the file would release SQLite's locks, and another program could remove the log that the server uses.
const DATABASE: &str = "brewbench.db";

fn is_by_product(name: &str) -> bool {
    let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
    BY_PRODUCTS.contains(&name)
        || name.starts_with(DATABASE)
        || name.ends_with('~')
        || matches!(extension, Some("pyc" | "log" | "swp"))
}

/// Returns the files below a folder with their paths relative to it, sorted. Leaves out by-products and what
/// `is_left_out` names. The error is a part of a sentence.
pub(super) fn files(
    root: &Path,
    budget: &mut Budget,
    is_left_out: &dyn Fn(&Path) -> bool,
) -> Result<Vec<(String, PathBuf)>, String> {
    let (mut found, mut entered) = (Vec::new(), BTreeSet::new());
    let mut open = vec![(String::new(), root.to_owned())];
    while let Some((name, folder)) = open.pop() {
        let fault = |error: std::io::Error| format!("{} can't be read: {error}", folder.display());
        let metadata = fs::metadata(&folder).map_err(fault)?;
        // A link may lead back.
        if !entered.insert((metadata.dev(), metadata.ino())) {
            continue;
        }
        // What else a server keeps there changes all the time.
        if folder != root && folder.join(DATABASE).exists() {
            continue;
        }
        for entry in fs::read_dir(&folder).map_err(fault)? {
            let path = entry.map_err(fault)?.path();
            let own = path.file_name().map(|own| own.to_string_lossy().into_owned()).unwrap_or_default();
            if is_by_product(&own) || is_left_out(&path) {
                continue;
            }
            let name = if name.is_empty() { own } else { format!("{name}/{own}") };
            match fs::metadata(&path) {
                Ok(metadata) if metadata.is_dir() => open.push((name, path)),
                Ok(metadata) if metadata.is_file() => {
                    budget.spend(metadata.len())?;
                    found.push((name, path));
                }
                // Sockets and links to nothing hold no code.
                _ => {}
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Whether a relative path matches a pattern: `*` and `?` stand for letters of one name, `**` for any folders. A
/// pattern that matches a folder matches what is below it.
pub(super) fn matches(pattern: &str, path: &str) -> bool {
    let pattern: Vec<&str> = pattern.trim_start_matches("./").trim_end_matches('/').split('/').collect();
    let path: Vec<&str> = path.split('/').collect();
    matches_names(&pattern, &path)
}

fn matches_names(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern, path) {
        ([], _) => true,
        (["**", rest @ ..], _) if matches_names(rest, path) => true,
        (["**", ..], [_, below @ ..]) => matches_names(pattern, below),
        ([first, rest @ ..], [name, below @ ..]) => {
            matches_name(first.as_bytes(), name.as_bytes()) && matches_names(rest, below)
        }
        (_, []) => false,
    }
}

fn matches_name(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        ([b'*', rest @ ..], _) if matches_name(rest, name) => true,
        ([b'*', ..], [_, below @ ..]) => matches_name(pattern, below),
        ([b'?', rest @ ..], [_, below @ ..]) => matches_name(rest, below),
        ([first, rest @ ..], [letter, below @ ..]) => first == letter && matches_name(rest, below),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_other_tools() {
        for (pattern, path) in [
            ("app.py", "app.py"),
            ("*.py", "app.py"),
            ("lib/**", "lib/a/b.py"),
            ("lib", "lib/a/b.py"),
            ("**/*.js", "a.js"),
            ("**/*.js", "a/b/c.js"),
            ("./src/?.rb", "src/a.rb"),
        ] {
            assert!(matches(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [("*.py", "lib/app.py"), ("app.py", "app.pyx"), ("lib/**/*.py", "app.py"), ("?", "ab")] {
            assert!(!matches(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn a_folder_is_read_once_in_order_and_not_beyond_the_bound() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        for folder in ["b/__pycache__", ".git"] {
            fs::create_dir_all(root.join(folder)).expect("folders");
        }
        for name in ["b/y.py", "b/__pycache__/y.pyc", "a.py", ".git/HEAD", "out.log"] {
            fs::write(root.join(name), name).expect("a file");
        }
        fs::create_dir_all(root.join("data/agent")).expect("folders");
        for name in ["data/brewbench.db", "data/agent/key", "brewbench.db-wal"] {
            fs::write(root.join(name), name).expect("a file");
        }
        std::os::unix::fs::symlink("..", root.join("b/up")).expect("a link");
        let names = |files: Vec<(String, PathBuf)>| files.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        let all = files(root, &mut Budget::new(), &|_| false).expect("files");
        assert_eq!(names(all), ["a.py", "b/y.py"]);
        let mut small = Budget { files: 1, bytes: 100 };
        let fault = files(root, &mut small, &|_| false).expect_err("two files");
        assert!(fault.contains("name what matters in `identity`"), "{fault}");
    }
}
