//! The state folder is private to the agent's user: it holds the agent's key and the results.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, bail};

/// World-writable, as `/tmp` is.
const SHARED: u32 = 0o002;

/// Creates the folder and closes it to other users. Fails if others could have written to it.
pub fn make_private(folder: &Path) -> anyhow::Result<()> {
    let shown = folder.display();
    fs::create_dir_all(folder).with_context(|| format!("the state folder {shown} can't be created"))?;
    let mode = fs::metadata(folder)?.permissions().mode();
    if mode & SHARED != 0 {
        bail!("the state folder {shown} is world-writable; name another with --state, or run `chmod 700 {shown}`");
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
        .with_context(|| format!("the state folder {shown} can't be made private"))?;
    for entry in fs::read_dir(folder).with_context(|| format!("the state folder {shown} can't be read"))? {
        let path = entry?.path();
        if path.is_symlink() {
            bail!("{} is a symbolic link, which is not allowed in the state folder; remove it", path.display());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("a folder").permissions().mode() & 0o777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("mode set");
    }

    #[test]
    fn a_new_or_existing_folder_is_closed_to_other_users() {
        let parent = tempfile::tempdir().expect("a folder");
        let state = parent.path().join("a/state");
        make_private(&state).expect("created");
        assert_eq!(mode(&state), 0o700);
        set_mode(&state, 0o755);
        make_private(&state).expect("closed");
        assert_eq!(mode(&state), 0o700);
    }

    #[test]
    fn a_folder_others_could_have_written_to_is_refused() {
        let state = tempfile::tempdir().expect("a folder");
        for name in ["work", "spool", "key"] {
            let link = state.path().join(name);
            symlink("/etc", &link).expect("a link");
            let refused = make_private(state.path()).expect_err("a link").to_string();
            assert!(refused.contains(&format!("/{name} is a symbolic link")), "{refused}");
            fs::remove_file(link).expect("removed");
        }
        set_mode(state.path(), 0o1777);
        let refused = make_private(state.path()).expect_err("shared").to_string();
        assert!(refused.contains("is world-writable"), "{refused}");
        assert_eq!(mode(state.path()), 0o777);
    }
}
