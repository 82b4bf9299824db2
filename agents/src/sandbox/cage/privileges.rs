//! Giving up privileges for good. All of it are system calls, so it may be done between fork and exec.

use std::io;

use nix::libc;
use nix::sys::prctl::set_no_new_privs;
use nix::sys::resource::{Resource, setrlimit};

/// `CAP_DAC_READ_SEARCH`: reads what belongs to other users.
const READ_SEARCH: u32 = 2;

/// The kernel has fewer capabilities than this.
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

/// Gives up all capabilities and the ways to new ones, and the right to leave core dumps.
///
/// An agent that runs as root often starts programs from the folders of other users, which root can't enter without a
/// capability. Where Landlock limits what is read (`is_confined`), that one stays.
pub(super) fn drop_all(is_confined: bool) -> io::Result<()> {
    set_no_new_privs()?;
    let kept = if is_confined { 1 << READ_SEARCH } else { 0 };
    bound(kept);
    hold_only(kept)?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    Ok(())
}

/// What no program that is executed from here on can get. Only who has capabilities may, and needs to, do this.
#[expect(unsafe_code, reason = "no library sets capabilities without allocating, which a forked process must not")]
fn bound(kept: u32) {
    for capability in (0..CAPABILITIES).filter(|&number| number >= 32 || kept & (1 << number) == 0) {
        // SAFETY: numbers are passed, no memory.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
    }
    // SAFETY: numbers are passed, no memory.
    unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) };
}

#[expect(unsafe_code, reason = "no library sets capabilities without allocating, which a forked process must not")]
fn hold_only(kept: u32) -> io::Result<()> {
    let header = Header { version: VERSION_3, pid: 0 };
    let held = held()? & kept;
    let sets = [Sets { effective: held, permitted: held, inheritable: 0 }, Sets::default()];
    // SAFETY: both pointers are to live values of the kernel's layout for version 3: a header and two sets.
    let result = unsafe { libc::syscall(libc::SYS_capset, std::ptr::from_ref(&header), std::ptr::from_ref(&sets)) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The first 32 of the capabilities that the calling process may use.
#[expect(unsafe_code, reason = "no library reads capabilities without allocating, which a forked process must not")]
fn held() -> io::Result<u32> {
    let mut header = Header { version: VERSION_3, pid: 0 };
    let mut sets = [Sets::default(); 2];
    // SAFETY: both pointers are to live values of the kernel's layout for version 3: a header and two sets.
    let result =
        unsafe { libc::syscall(libc::SYS_capget, std::ptr::from_mut(&mut header), std::ptr::from_mut(&mut sets)) };
    if result == 0 { Ok(sets[0].permitted) } else { Err(io::Error::last_os_error()) }
}
