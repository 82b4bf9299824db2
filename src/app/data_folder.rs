//! Keeps the data folder private: other users of the machine cannot read it, and symbolic links in it are refused.

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

/// The file with the server's public URL.
pub const ADDRESS_FILE: &str = "public-url";

/// Prefixes of our own files. Other files in the folder are not touched.
const OWN: [&str; 7] = [FILE, secrets_key::FILE, "lock", ADDRESS_FILE, ".backup-", ".restore-", ".handing-out-"];

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// Any access for the group or for others.
const OTHERS_MASK: u32 = 0o077;
/// The mode of shared folders such as `/tmp`: sticky and world-writable.
const SHARED_MODE: u32 = 0o1002;

/// Creates the folder if it is missing, and removes access for others to it and our files in it.
pub fn make_private(folder: &Path) -> Result<(), OpenError> {
    let fault = |fault| OpenError::Folder(folder.to_owned(), fault);
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder).map_err(fault)?;
    let metadata = fs::metadata(folder).map_err(fault)?;
    if metadata.permissions().mode() & SHARED_MODE == SHARED_MODE {
        return Err(OpenError::Shared(folder.to_owned()));
    }
    // The folder comes first: after that nobody else can replace a file in it.
    restrict(folder, &metadata, FOLDER_MODE);
    for entry in fs::read_dir(folder).map_err(fault)? {
        let entry = entry.map_err(fault)?;
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if name != AGENT && !OWN.iter().any(|own| name.starts_with(own)) {
            continue;
        }
        // A file that has disappeared was a temporary file.
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        if metadata.is_symlink() {
            return Err(OpenError::Link(path));
        }
        restrict(&path, &metadata, if metadata.is_dir() { FOLDER_MODE } else { FILE_MODE });
    }
    Ok(())
}

/// Removes access for others. A failure is logged: the file system may not support modes, or the owner may differ.
fn restrict(path: &Path, metadata: &Metadata, mode: u32) {
    if metadata.permissions().mode() & OTHERS_MASK == 0 {
        return;
    }
    match fs::set_permissions(path, Permissions::from_mode(mode)) {
        Ok(()) => tracing::info!(path = %path.display(), "removed access for other users"),
        Err(fault) => tracing::warn!(path = %path.display(), %fault, "other users can read this; change its mode"),
    }
}

/// Fails if the path is a symbolic link.
pub fn refuse_link(file: &Path) -> Result<(), OpenError> {
    match fs::symlink_metadata(file) {
        Ok(about) if about.is_symlink() => Err(OpenError::Link(file.to_owned())),
        _ => Ok(()),
    }
}

/// Creates an empty private file if it is missing. SQLite uses the same mode for the files beside it.
pub fn make_file(file: &Path) -> io::Result<()> {
    match File::options().write(true).create_new(true).mode(FILE_MODE).open(file) {
        Err(fault) if fault.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        created => created.map(drop),
    }
}

/// Writes a small file atomically and syncs it to disk.
pub fn write(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    let mut draft = NamedTempFile::new_in(folder)?;
    draft.write_all(text.as_bytes())?;
    draft.as_file().sync_all()?;
    draft.persist(folder.join(name))?;
    File::open(folder)?.sync_all()
}
