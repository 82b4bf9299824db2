//! Copies what a build has made. A build is untrusted: what it names must be in its own folder.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Most bytes of the artifacts of one build.
const MOST_BYTES: u64 = 2 << 30;

/// Copies files and folders of a tree by their relative paths. The error is a sentence.
pub fn copy(tree: &Path, paths: &[String], to: &Path) -> Result<(), String> {
    let root = tree.canonicalize().map_err(|error| format!("can't find {}: {error}", tree.display()))?;
    let mut copier = Copier { root: &root, left: MOST_BYTES };
    for path in paths {
        copier.copy(&root.join(path), &to.join(path)).map_err(|why| format!("the artifact {path}: {why}"))?;
    }
    Ok(())
}

/// Returns the bytes of all files below a folder.
pub fn bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}

struct Copier<'a> {
    root: &'a Path,
    left: u64,
}

impl Copier<'_> {
    fn copy(&mut self, from: &Path, to: &Path) -> Result<(), String> {
        // Without links, so that nothing outside of the tree is read. Nothing of the build runs any more.
        let real = from.canonicalize().map_err(|error| error.to_string())?;
        if !real.starts_with(self.root) {
            return Err("it leads out of the repository".to_owned());
        }
        let metadata = fs::metadata(&real).map_err(|error| error.to_string())?;
        let folder = if metadata.is_dir() { to } else { to.parent().unwrap_or(to) };
        create_folders(folder).map_err(|error| error.to_string())?;
        if metadata.is_dir() {
            for entry in fs::read_dir(&real).map_err(|error| error.to_string())? {
                let entry = entry.map_err(|error| error.to_string())?;
                // A link to a folder above would be copied without end.
                let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
                if is_link && entry.path().canonicalize().is_ok_and(|real| real.is_dir()) {
                    return Err(format!("{} is a link to a folder", entry.file_name().display()));
                }
                self.copy(&entry.path(), &to.join(entry.file_name()))?;
            }
            return Ok(());
        }
        if !metadata.is_file() {
            return Err("it is neither a file nor a folder".to_owned());
        }
        self.left = self.left.checked_sub(metadata.len()).ok_or("the artifacts have more than 2 GiB")?;
        copy_file(&real, to, metadata.permissions().mode() & 0o111 != 0).map_err(|error| error.to_string())
    }
}

/// Creates folders that all may enter, whatever the agent's umask is.
fn create_folders(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    folder.parent().map_or(Ok(()), create_folders)?;
    fs::create_dir(folder)?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))
}

/// Copies a file to the disk, readable by all.
fn copy_file(from: &Path, to: &Path, is_program: bool) -> io::Result<()> {
    let (mut from, mut new) = (File::open(from)?, File::create(to)?);
    io::copy(&mut from, &mut new)?;
    new.set_permissions(fs::Permissions::from_mode(if is_program { 0o755 } else { 0o644 }))?;
    new.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_leads_out_of_the_tree_is_not_copied() {
        let folder = tempfile::tempdir().expect("a folder");
        let (tree, to) = (folder.path().join("tree"), folder.path().join("to"));
        fs::create_dir_all(tree.join("bin/sub")).expect("folders");
        fs::write(tree.join("bin/api"), "program").expect("a file");
        fs::set_permissions(tree.join("bin/api"), fs::Permissions::from_mode(0o700)).expect("a mode");
        fs::write(folder.path().join("secret"), "secret").expect("a file");
        symlink("/etc/passwd", tree.join("out")).expect("a link");
        symlink("../../../secret", tree.join("bin/sub/out")).expect("a link");
        symlink("..", tree.join("round")).expect("a link");
        symlink("bin/api", tree.join("within")).expect("a link");
        let copied = |path: &str| copy(&tree, &[path.to_owned()], &to);
        assert_eq!((copied("bin/api"), copied("within")), (Ok(()), Ok(())));
        assert_eq!(fs::metadata(to.join("bin/api")).expect("a file").permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read_to_string(to.join("within")).expect("a file"), "program");
        for (path, why) in [
            ("out", "the artifact out: it leads out of the repository"),
            ("bin", "the artifact bin: it leads out of the repository"),
            ("round", "the artifact round: it leads out of the repository"),
            ("missing", "the artifact missing: No such file or directory (os error 2)"),
        ] {
            assert_eq!(copied(path), Err(why.to_owned()));
        }
    }
}
