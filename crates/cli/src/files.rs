//! Reads files and standard input of the user, with limits on size and kind.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use anyhow::{Context, anyhow, bail, ensure};
use brewbench_wire::{reports::encoding, scenario::unpack::is_ignored};
use nix::libc::O_NONBLOCK;

/// The largest input; more than a server accepts.
const MAX_MIB: u64 = 64;

/// Opens a regular file. A pipe without a writer would block, and a device may be endless.
pub fn regular(path: &Path) -> anyhow::Result<File> {
    let shown = path.display();
    let file = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path);
    let file = file.with_context(|| format!("cannot read {shown}"))?;
    let kind = file.metadata().with_context(|| format!("cannot read {shown}"))?.file_type();
    ensure!(!kind.is_dir(), "{shown} is a folder; give a file");
    ensure!(kind.is_file(), "{shown} is a pipe or a device; give a regular file");
    Ok(file)
}

/// Reads the bytes of a file.
pub fn bytes(path: &Path) -> anyhow::Result<Vec<u8>> {
    read_all(regular(path)?).with_context(|| format!("cannot read {}", path.display()))
}

/// Reads the text of a file.
pub fn text(path: &Path) -> anyhow::Result<String> {
    encoding::text(bytes(path)?).map_err(|fault| anyhow!("{} {fault}", path.display()))
}

/// Returns a note as typed, or standard input for `-`.
pub fn read_note(typed: String) -> anyhow::Result<String> {
    if typed != "-" {
        return Ok(typed);
    }
    let piped = read_all(io::stdin()).context("cannot read the note")?;
    String::from_utf8(piped).context("the note is not UTF-8 text")
}

/// Calls `with` for each file below a folder, with its path relative to `top`; hidden files and packages are left out.
pub fn walk(
    top: &Path,
    folder: &Path,
    with: &mut dyn FnMut(String, &Path) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let cannot = || format!("cannot read {}", folder.display());
    let mut entries: Vec<_> = fs::read_dir(folder).and_then(Iterator::collect).with_context(cannot)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let name = utf8(path.strip_prefix(top).unwrap_or(&path))?.to_owned();
        if is_ignored(&name) {
            continue;
        }
        // A link may lead out of the folder: what it names is read, but not walked.
        if entry.file_type().with_context(cannot)?.is_dir() { walk(top, &path, with)? } else { with(name, &path)? }
    }
    Ok(())
}

/// Returns a path as text.
pub fn utf8(path: &Path) -> anyhow::Result<&str> {
    path.to_str().with_context(|| format!("the name {} is not UTF-8", path.display()))
}

fn read_all(from: impl Read) -> anyhow::Result<Vec<u8>> {
    let limit = MAX_MIB << 20;
    let mut bytes = Vec::new();
    from.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        bail!("larger than {MAX_MIB} MiB");
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipes_devices_folders_and_large_files_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        for path in [pipe.as_path(), Path::new("/dev/zero")] {
            let error = bytes(path).expect_err("no file").to_string();
            assert_eq!(error, format!("{} is a pipe or a device; give a regular file", path.display()));
        }
        assert!(bytes(folder.path()).expect_err("a folder").to_string().contains("is a folder"));

        let large = folder.path().join("large");
        File::create(&large).expect("a file").set_len((MAX_MIB << 20) + 1).expect("a sparse file");
        assert!(format!("{:#}", bytes(&large).expect_err("large")).contains("larger than 64 MiB"));
        let binary = folder.path().join("binary");
        std::fs::write(&binary, [0xff]).expect("a file");
        assert!(text(&binary).expect_err("binary").to_string().contains("UTF-8"));
    }

    #[test]
    fn a_typed_note_is_unchanged() {
        assert_eq!(read_note("- a list".to_owned()).expect("a note"), "- a list");
    }
}
