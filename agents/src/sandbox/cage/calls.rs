//! A seccomp filter for system calls that a sandboxed program must not make.
//!
//! They reach what Landlock does not protect: other control groups, keys, namespaces, and limits and memory of other
//! processes. They fail with `ENOSYS`, as on a kernel without them, which every runtime handles.

use std::io;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

/// `clone3` can start a process in another control group (`CLONE_INTO_CGROUP`), and its arguments are in memory, where
/// a filter can't see them. Libraries fall back to `clone`.
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

/// Network access; `io_uring` could open sockets unseen by the filter.
const NETWORK: &[i64] = &[libc::SYS_socket, libc::SYS_io_uring_setup];

/// A filter ready to be installed.
pub(super) struct Filter(BpfProgram);

impl std::fmt::Debug for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Filter").field(&self.0.len()).finish()
    }
}

/// Builds the filter, with or without network access.
pub(super) fn filter(is_offline: bool) -> io::Result<Filter> {
    let network = if is_offline { NETWORK } else { &[] };
    let mut rules: std::collections::BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.iter().chain(network).map(|&call| (call, Vec::new())).collect();
    let build = || {
        // Limits of other processes; pid 0 is the caller.
        let others = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0)?;
        rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![others])?]);
        let refusal = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
        SeccompFilter::new(rules, SeccompAction::Allow, refusal, std::env::consts::ARCH.try_into()?)?.try_into()
    };
    build().map(Filter).map_err(|fault: seccompiler::BackendError| io::Error::other(fault))
}

impl Filter {
    /// Installs the filter for the calling thread, permanently. Requires no-new-privs. Makes one system call.
    ///
    /// Allows speculative execution, which older kernels would disable for a filtered program: it would slow down the
    /// measured program.
    #[expect(unsafe_code, reason = "libraries install filters without SECCOMP_FILTER_FLAG_SPEC_ALLOW")]
    pub(super) fn install(&self) -> io::Result<()> {
        let length = u16::try_from(self.0.len()).map_err(|_| io::Error::from_raw_os_error(libc::E2BIG))?;
        let program = libc::sock_fprog { len: length, filter: self.0.as_ptr().cast_mut().cast() };
        // SAFETY: `program` points to as many instructions as it states, in the kernel's layout (`#[repr(C)]`); the
        // kernel copies them and does not change them.
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
