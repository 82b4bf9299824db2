//! The data folder is its owner's alone: what hashes and secrets lie in it, nobody else on the machine reads, and what lies
//! elsewhere is not taken for a part of it.

use std::{
    fs::{self, DirBuilder, File, Metadata, Permissions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::Path,
};

use tempfile::NamedTempFile;

use crate::app::{
    db::{FILE, OpenError},
    secrets_key,
};

/// The folder of an agent in the server's own process.
const AGENT: &str = "agent";

/// How the names of our own files begin. Others that lie here are left as they are.
const OWN: [&str; 7] = [FILE, secrets_key::FILE, "lock", "public-url", ".backup-", ".restore-", ".handing-out-"];

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// Read, write or enter for the group or for others.
const OF_OTHERS: u32 = 0o077;
/// Everybody may put files into it, as in `/tmp`.
const EVERYBODYS: u32 = 0o1002;

/// Makes the folder if need be, and closes it and what of ours is in it to everybody else.
pub fn make_private(folder: &Path) -> Result<(), OpenError> {
    let fault = |fault| OpenError::Folder(folder.to_owned(), fault);
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder).map_err(fault)?;
    let about = fs::metadata(folder).map_err(fault)?;
    if about.permissions().mode() & EVERYBODYS == EVERYBODYS {
        return Err(OpenError::Everybodys(folder.to_owned()));
    }
    // First the folder: from then on nobody can put something else in the place of a file.
    close(folder, &about, FOLDER_MODE);
    for entry in fs::read_dir(folder).map_err(fault)? {
        let entry = entry.map_err(fault)?;
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if name != AGENT && !OWN.iter().any(|own| name.starts_with(own)) {
            continue;
        }
        // What is gone by now was a draft.
        let Ok(about) = fs::symlink_metadata(&path) else { continue };
        if about.is_symlink() {
            return Err(OpenError::Link(path));
        }
        close(&path, &about, if about.is_dir() { FOLDER_MODE } else { FILE_MODE });
    }
    Ok(())
}

/// On a disk that knows no modes, or where somebody else is the owner, it stays as it is, and that is told.
fn close(path: &Path, about: &Metadata, mode: u32) {
    if about.permissions().mode() & OF_OTHERS == 0 {
        return;
    }
    match fs::set_permissions(path, Permissions::from_mode(mode)) {
        Ok(()) => tracing::info!(path = %path.display(), "others could read this; now they can't"),
        Err(fault) => tracing::warn!(path = %path.display(), %fault, "others can read this"),
    }
}

/// Fails if this is a symbolic link.
pub fn refuse_link(file: &Path) -> Result<(), OpenError> {
    match fs::symlink_metadata(file) {
        Ok(about) if about.is_symlink() => Err(OpenError::Link(file.to_owned())),
        _ => Ok(()),
    }
}

/// Makes an empty file if there is none, for nobody else to read. SQLite makes what it puts beside it alike.
pub fn make_file(file: &Path) -> io::Result<()> {
    match File::options().write(true).create_new(true).mode(FILE_MODE).open(file) {
        Err(fault) if fault.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map(drop),
    }
}

/// Writes a small file, whole or not at all; on return it is on disk.
pub fn write(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    let mut draft = NamedTempFile::new_in(folder)?;
    draft.write_all(text.as_bytes())?;
    draft.as_file().sync_all()?;
    draft.persist(folder.join(name))?;
    File::open(folder)?.sync_all()
}
