//! A seccomp filter for system calls that a sandboxed program must not make.
//!
//! They reach what Landlock does not protect: other control groups, keys, namespaces, and limits and memory of other
//! processes. They fail with `ENOSYS`, as on a kernel without them, which every runtime handles.

use std::collections::BTreeMap;
use std::io;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    sock_filter,
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

/// Namespaces, by flags of `clone`. Inside of a new user namespace a program has capabilities.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Network access; `io_uring` could open sockets unseen by the filter.
const NETWORK: &[i64] = &[libc::SYS_socket, libc::SYS_io_uring_setup];

/// `io_uring` would open sockets with a path.
const LOCAL_SOCKETS: &[i64] = &[libc::SYS_io_uring_setup];

/// Calls that change owner, times and extended attributes of files, mostly by path, which Landlock does not protect.
const METADATA: &[i64] = &[
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchownat,
    libc::SYS_fchown,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
    FILE_SETATTR,
];
// The same numbers on all architectures; not every C library names them.
const FCHMODAT2: i64 = 452;
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const FILE_SETATTR: i64 = 469;

/// Older forms of these calls.
#[cfg(target_arch = "x86_64")]
const OLD_METADATA: &[i64] =
    &[libc::SYS_chmod, libc::SYS_chown, libc::SYS_lchown, libc::SYS_utime, libc::SYS_utimes, libc::SYS_futimesat];
#[cfg(not(target_arch = "x86_64"))]
const OLD_METADATA: &[i64] = &[];

/// Calls that change how other processes of the same user are scheduled, and the argument with the process.
const SCHEDULING: [(i64, u8); 5] = [
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setattr, 0),
];

/// System calls with this bit have another number for the same purpose: the x32 interface of x86-64.
const X32: u32 = 0x4000_0000;

/// What a program is refused beyond what every program is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refused {
    /// Any network.
    pub network: bool,
    /// What the agent's user may do to its files and processes.
    pub agents_user: bool,
    /// Sockets with a path.
    pub local_sockets: bool,
}

/// A filter ready to be installed.
pub(super) struct Filter(BpfProgram);

impl std::fmt::Debug for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Filter").field(&self.0.len()).finish()
    }
}

/// Builds the filter.
pub(super) fn filter(refused: Refused) -> io::Result<Filter> {
    let build = || {
        let refusal = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
        let arch = std::env::consts::ARCH.try_into()?;
        SeccompFilter::new(rules(refused)?, SeccompAction::Allow, refusal, arch)?.try_into()
    };
    let program: BpfProgram = build().map_err(|fault: seccompiler::BackendError| io::Error::other(fault))?;
    Ok(Filter(without_x32(program)))
}

fn rules(refused: Refused) -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    use SeccompCmpOp::{Eq, MaskedEq, Ne};
    let Refused { network, agents_user, local_sockets } = refused;
    let when = |argument, operator, value| {
        SeccompRule::new(vec![SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?])
    };
    let has_bits = |argument, bits: u64| when(argument, MaskedEq(bits), bits);
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    let mut refuse = |calls: &[i64]| rules.extend(calls.iter().map(|&call| (call, Vec::new())));
    refuse(REFUSED);
    if agents_user {
        refuse(METADATA);
        refuse(OLD_METADATA);
    }
    if local_sockets {
        refuse(LOCAL_SOCKETS);
        rules.insert(libc::SYS_socket, vec![when(0, Eq, libc::AF_UNIX.unsigned_abs().into())?]);
    }
    if network {
        rules.extend(NETWORK.iter().map(|&call| (call, Vec::new())));
    }
    let flags = NAMESPACES.map(|flag| has_bits(0, flag.unsigned_abs().into()));
    rules.insert(libc::SYS_clone, flags.into_iter().collect::<Result<_, _>>()?);
    // Limits of other processes; pid 0 is the caller.
    rules.insert(libc::SYS_prlimit64, vec![when(0, Ne, 0)?]);
    if agents_user {
        for (call, argument) in SCHEDULING {
            rules.insert(call, vec![when(argument, Ne, 0)?]);
        }
        // An open file may get another mode, but not one with which other users start it as the agent's.
        let ids = [libc::S_ISUID, libc::S_ISGID].map(|bit| has_bits(1, bit.into()));
        rules.insert(libc::SYS_fchmod, ids.into_iter().collect::<Result<_, _>>()?);
        // Times of an open file, for which the path is null. Half of an address may be zero.
        let halves = |half| SeccompCondition::new(1, SeccompCmpArgLen::Qword, half, 0);
        rules.insert(libc::SYS_utimensat, vec![SeccompRule::new(vec![halves(Ne)?])?]);
    }
    Ok(rules)
}

/// Refuses the x32 interface before anything else: the rules know each call by one number.
#[expect(clippy::cast_possible_truncation, reason = "constants of the kernel that fit, as wide as libc has them")]
fn without_x32(program: BpfProgram) -> BpfProgram {
    let instruction = |code: u32, jt, jf, k| sock_filter { code: code as u16, jt, jf, k };
    let number = std::mem::offset_of!(libc::seccomp_data, nr) as u32;
    let refusal = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    let mut all = vec![
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, number),
        instruction(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, X32),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, refusal),
    ];
    all.extend(program);
    all
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
