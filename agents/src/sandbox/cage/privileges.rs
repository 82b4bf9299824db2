//! Drops privileges permanently. Makes system calls only, so it is safe between fork and exec.

use std::io;

use nix::libc;
use nix::sys::prctl::set_no_new_privs;
use nix::sys::resource::{Resource, setrlimit};

/// `CAP_DAC_READ_SEARCH`: reads files of other users.
const READ_SEARCH: u32 = 2;

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

/// Drops all capabilities, prevents gaining new ones, and disables core dumps.
///
/// An agent that runs as root often starts programs in folders of other users, which root can't enter without
/// `CAP_DAC_READ_SEARCH`. That one stays if Landlock limits what can be read (`is_confined`).
pub(super) fn drop_all(is_confined: bool) -> io::Result<()> {
    set_no_new_privs()?;
    let remaining = if is_confined { 1 << READ_SEARCH } else { 0 };
    bound(remaining);
    hold_only(remaining)?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    Ok(())
}

/// Limits the capabilities of all programs executed from here on. Only a privileged process may, and needs to, do this.
#[expect(unsafe_code, reason = "no library sets capabilities without allocating, which a forked process must not")]
fn bound(remaining: u32) {
    for capability in (0..CAPABILITIES).filter(|&number| number >= 32 || remaining & (1 << number) == 0) {
        // SAFETY: numbers are passed, no memory.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
    }
    // SAFETY: numbers are passed, no memory.
    unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) };
}

#[expect(unsafe_code, reason = "no library sets capabilities without allocating, which a forked process must not")]
fn hold_only(remaining: u32) -> io::Result<()> {
    let header = Header { version: VERSION_3, pid: 0 };
    let held = held()? & remaining;
    let sets = [Sets { effective: held, permitted: held, inheritable: 0 }, Sets::default()];
    // SAFETY: both pointers are to live values of the kernel's layout for version 3: a header and two sets.
    let result = unsafe { libc::syscall(libc::SYS_capset, std::ptr::from_ref(&header), std::ptr::from_ref(&sets)) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the first 32 permitted capabilities of the calling process.
#[expect(unsafe_code, reason = "no library reads capabilities without allocating, which a forked process must not")]
fn held() -> io::Result<u32> {
    let mut header = Header { version: VERSION_3, pid: 0 };
    let mut sets = [Sets::default(); 2];
    // SAFETY: both pointers are to live values of the kernel's layout for version 3: a header and two sets.
    let result =
        unsafe { libc::syscall(libc::SYS_capget, std::ptr::from_mut(&mut header), std::ptr::from_mut(&mut sets)) };
    if result == 0 { Ok(sets[0].permitted) } else { Err(io::Error::last_os_error()) }
}
