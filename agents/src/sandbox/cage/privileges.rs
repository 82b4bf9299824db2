//! Drops privileges permanently, and becomes another user. Makes system calls only, so it is safe between fork and
//! exec.

use std::io;

use nix::libc;
use nix::sys::prctl::set_no_new_privs;
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::Gid;

use super::user::User;

/// Upper limit of the kernel's capabilities.
const CAPABILITIES: libc::c_ulong = 64;

/// Version 3 of the structures: two words of 32 capabilities.
const VERSION_3: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    pid: libc::c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Drops all capabilities, prevents gaining new ones, disables core dumps, and becomes another user if there is one,
/// with these groups in addition to that user's.
pub(super) fn drop_all(user: Option<User>, groups: &[Gid]) -> io::Result<()> {
    set_no_new_privs()?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    bound();
    if let Some(user) = user {
        become_user(user, groups)?;
    }
    hold_none()
}

/// Makes no use of libc's functions, which change all threads of a process: of a forked one there is no other.
#[expect(unsafe_code, reason = "libraries take locks that another thread may have held at the fork")]
fn become_user(user: User, groups: &[Gid]) -> io::Result<()> {
    let (uid, gid) = (user.uid().as_raw(), user.gid().as_raw());
    let checked = |result: libc::c_long| if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    // SAFETY: `groups` is a live slice of its length; `Gid` has the layout of the kernel's number
    // (`repr(transparent)`).
    checked(unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) })?;
    // SAFETY: numbers are passed, no memory.
    checked(unsafe { libc::syscall(libc::SYS_setresgid, gid, gid, gid) })?;
    // SAFETY: numbers are passed, no memory.
    checked(unsafe { libc::syscall(libc::SYS_setresuid, uid, uid, uid) })
}

/// Empties the set of capabilities of all programs executed from here on. Only a privileged process may, and needs to,
/// do this.
#[expect(unsafe_code, reason = "no library sets capabilities without allocating, which a forked process must not")]
fn bound() {
    for capability in 0..CAPABILITIES {
        // SAFETY: numbers are passed, no memory.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
    }
    // SAFETY: numbers are passed, no memory.
    unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) };
}

#[expect(unsafe_code, reason = "no library sets capabilities without allocating, which a forked process must not")]
fn hold_none() -> io::Result<()> {
    let header = Header { version: VERSION_3, pid: 0 };
    let sets = [Sets::default(); 2];
    // SAFETY: both pointers are to live values of the kernel's layout for version 3: a header and two sets.
    let result = unsafe { libc::syscall(libc::SYS_capset, std::ptr::from_ref(&header), std::ptr::from_ref(&sets)) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
