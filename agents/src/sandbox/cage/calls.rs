//! System calls that a caged program can't make: a seccomp filter.
//!
//! They lead where Landlock does not look: into another control group, to keys, namespaces, limits and memory of other
//! processes. The kernel answers as if it did not have them, which every runtime is prepared for.

use std::io;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

/// `clone3` can start a process in another control group (`CLONE_INTO_CGROUP`), and a filter can't see its arguments:
/// they are in memory. Libraries fall back on `clone`.
const REFUSED: &[i64] = &[
    libc::SYS_clone3,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_open_by_handle_at,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_bpf,
];

/// Without these there is no network; `io_uring` could open sockets behind the filter's back.
const NETWORK: &[i64] = &[libc::SYS_socket, libc::SYS_io_uring_setup];

/// A filter that is ready to be installed.
pub(super) struct Filter(BpfProgram);

impl std::fmt::Debug for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Filter").field(&self.0.len()).finish()
    }
}

/// The filter for a caged program, which may have a network or not.
pub(super) fn filter(is_offline: bool) -> io::Result<Filter> {
    let network = if is_offline { NETWORK } else { &[] };
    let mut rules: std::collections::BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.iter().chain(network).map(|&call| (call, Vec::new())).collect();
    let build = || {
        // Limits of other processes; one's own are process 0.
        let others = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0)?;
        rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![others])?]);
        let refusal = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
        SeccompFilter::new(rules, SeccompAction::Allow, refusal, std::env::consts::ARCH.try_into()?)?.try_into()
    };
    build().map(Filter).map_err(|fault: seccompiler::BackendError| io::Error::other(fault))
}

impl Filter {
    /// Installs it for the calling thread, for good. It must have given up new privileges. Makes one system call.
    ///
    /// Older kernels would also switch off speculation for a filtered program, which costs some of its speed: what is
    /// measured must not depend on that.
    #[expect(unsafe_code, reason = "libraries install filters without SECCOMP_FILTER_FLAG_SPEC_ALLOW")]
    pub(super) fn install(&self) -> io::Result<()> {
        let length = u16::try_from(self.0.len()).map_err(|_| io::Error::from_raw_os_error(libc::E2BIG))?;
        let program = libc::sock_fprog { len: length, filter: self.0.as_ptr().cast_mut().cast() };
        // SAFETY: `program` points to as many instructions as it says, of the kernel's layout (`#[repr(C)]`), which the
        // kernel copies and does not change.
        let result = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW,
                std::ptr::from_ref(&program),
            )
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}
