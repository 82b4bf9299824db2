//! Which file or folder keeps the user of a program from its files. For messages: the kernel decides, and knows more
//! rules than the mode of a file.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use super::group_of_device;
use super::user::User;
use crate::sandbox::ProgramRole;
use crate::sandbox::process::is_script;

/// The bit of a mode with which everybody may enter a folder or execute a file.
const ENTER: u32 = 0o1;

/// What a program needs to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Be started. The agent opens a program that is no script, so the folders above may be closed.
    Start,
    /// Read.
    Read,
    /// Write.
    Write,
}

/// Explains why the user of a role has no such access to a file or folder; `None` if it can, or if that is the
/// agent's user. Missing files are reported elsewhere.
pub fn obstacle(role: ProgramRole, path: &Path, access: Access) -> Option<String> {
    let user = User::for_role(role)?;
    let path = path.canonicalize().ok()?;
    let closed = closed_folder(user, &path).filter(|_| access != Access::Start || is_script(&path));
    let wanted = match access {
        Access::Start => ENTER,
        // It may know what it needs of a folder that it can't list.
        Access::Read if path.is_dir() => ENTER,
        Access::Read => 0o4,
        Access::Write if path.is_dir() => 0o2 | ENTER,
        Access::Write => 0o2,
    };
    let (shown, number) = (path.display(), user.uid());
    let whose = format!("the user of {}s ({number})", role.as_str());
    if let Some(folder) = closed {
        let folder = folder.display();
        return Some(format!("{whose} can't enter {folder}: run `chmod o+x {folder}`, or move {shown}"));
    }
    if may(user, &path, wanted) {
        return None;
    }
    Some(match access {
        Access::Start | Access::Read => format!("{whose} can't read {shown}: run `chmod o+rX {shown}`"),
        Access::Write if is_device(&path) => format!("{whose} can't use {shown}: run `chmod o+rw {shown}`"),
        Access::Write => format!("{whose} can't write {shown}: run `chown {number} {shown}`"),
    })
}

/// Whether the user of a role can't pass through the folders above a file.
pub fn is_closed(role: ProgramRole, path: &Path) -> bool {
    let path = path.canonicalize();
    User::for_role(role).zip(path.ok()).is_some_and(|(user, path)| closed_folder(user, &path).is_some())
}

/// Returns the outermost folder above a path that a user can't enter.
fn closed_folder(user: User, path: &Path) -> Option<&Path> {
    path.ancestors().skip(1).filter(|folder| !may(user, folder, ENTER)).last()
}

/// Whether the mode of a file allows this; assumed of a file with an access list.
fn may(user: User, path: &Path, wanted: u32) -> bool {
    let Ok(file) = path.metadata() else { return true };
    let shift = if file.uid() == user.uid().as_raw() {
        6
    } else if file.gid() == user.gid().as_raw() || group_of_device(path).is_some() {
        3
    } else {
        0
    };
    (file.mode() >> shift) & wanted == wanted || has_access_list(path)
}

fn is_device(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.file_type().is_char_device())
}

fn has_access_list(path: &Path) -> bool {
    rustix::fs::getxattr(path, "system.posix_acl_access", &mut [0_u8; 0][..]).is_ok()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_first_closed_folder_and_what_opens_it_are_named() {
        let Some(user) = User::for_role(ProgramRole::Target) else { return };
        let number = user.uid();
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("below/file");
        fs::create_dir(folder.path().join("below")).expect("a folder");
        fs::write(&file, "").expect("a file");
        let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
        let whose = format!("the user of targets ({number}) can't");
        let of = |access| obstacle(ProgramRole::Target, &file, access);

        set(folder.path(), 0o700);
        let (closed, shown) = (folder.path().display(), file.display());
        let expected = format!("{whose} enter {closed}: run `chmod o+x {closed}`, or move {shown}");
        assert_eq!(of(Access::Read), Some(expected.clone()));
        fs::write(&file, "#!/bin/sh").expect("a file");
        assert_eq!(of(Access::Start), Some(expected), "its interpreter opens it");
        fs::write(&file, "\x7fELF").expect("a file");
        set(&file, 0o711);
        assert_eq!(of(Access::Start), None);
        assert!(is_closed(ProgramRole::Target, &file) && !is_closed(ProgramRole::Target, folder.path()));

        set(folder.path(), 0o711);
        set(&file, 0o640);
        assert_eq!(of(Access::Read), Some(format!("{whose} read {shown}: run `chmod o+rX {shown}`")));
        set(&file, 0o644);
        assert_eq!(of(Access::Read), None);
        assert_eq!(of(Access::Write), Some(format!("{whose} write {shown}: run `chown {number} {shown}`")));
        nix::unistd::chown(&file, Some(user.uid()), None).expect("an owner");
        assert_eq!(of(Access::Write), None);
    }
}
