//! What users name or pipe in: read whole, but neither without end nor for ever.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use anyhow::{Context, anyhow, bail, ensure};
use brewbench_agent::reports::encoding;
use nix::libc::O_NONBLOCK;

/// Larger than all that a server takes.
const MOST_MIB: u64 = 64;

/// Opens a regular file. A pipe that nobody writes to would block, and a device may have no end.
pub fn regular(path: &Path) -> anyhow::Result<File> {
    let shown = path.display();
    let file = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path);
    let file = file.with_context(|| format!("{shown} can't be read"))?;
    let kind = file.metadata().with_context(|| format!("{shown} can't be read"))?.file_type();
    ensure!(!kind.is_dir(), "{shown} is a folder; name a file");
    ensure!(kind.is_file(), "{shown} is a pipe or a device; name a regular file");
    Ok(file)
}

/// The bytes of a file.
pub fn bytes(path: &Path) -> anyhow::Result<Vec<u8>> {
    whole(regular(path)?).with_context(|| format!("{} can't be read", path.display()))
}

/// The text of a file.
pub fn text(path: &Path) -> anyhow::Result<String> {
    encoding::text(bytes(path)?).map_err(|fault| anyhow!("{} {fault}", path.display()))
}

/// A note as it was typed, or what is piped in where that is `-`.
pub fn note(typed: String) -> anyhow::Result<String> {
    if typed != "-" {
        return Ok(typed);
    }
    let piped = whole(io::stdin()).context("the note can't be read")?;
    String::from_utf8(piped).context("the note is not UTF-8 text")
}

fn whole(from: impl Read) -> anyhow::Result<Vec<u8>> {
    let most = MOST_MIB << 20;
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        bail!("it is larger than {MOST_MIB} MiB");
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipes_devices_folders_and_endless_files_are_refused_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        for path in [pipe.as_path(), Path::new("/dev/zero")] {
            let error = bytes(path).expect_err("no file").to_string();
            assert_eq!(error, format!("{} is a pipe or a device; name a regular file", path.display()));
        }
        assert!(bytes(folder.path()).expect_err("a folder").to_string().contains("is a folder"));

        let large = folder.path().join("large");
        File::create(&large).expect("a file").set_len((MOST_MIB << 20) + 1).expect("a sparse file");
        assert!(format!("{:#}", bytes(&large).expect_err("large")).contains("larger than 64 MiB"));
        let binary = folder.path().join("binary");
        std::fs::write(&binary, [0xff]).expect("a file");
        assert!(text(&binary).expect_err("binary").to_string().contains("UTF-8"));
    }

    #[test]
    fn a_typed_note_is_taken_as_it_is() {
        assert_eq!(note("- a list".to_owned()).expect("a note"), "- a list");
    }
}
