//! Whether guests run with KVM here. A device that opens proves nothing: without nested virtualisation, a virtual
//! machine may have one with which no guest starts.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use super::qemu::PROGRAM;
use crate::sandbox::ProgramRole;
use crate::sandbox::cage::access::{self, Access};

/// Maximum time of the firmware until it finds nothing to boot; it takes a tenth of a second.
const PATIENCE: Duration = Duration::from_secs(10);

/// The last line of the firmware's log, on a machine without disks.
const LAST_LINE: &str = "No bootable device.";

/// Starts the firmware of an empty machine with the CPU of this one; it logs to QEMU's debug port.
const EMPTY_MACHINE: &str = "-accel kvm -cpu host -machine q35 -m 32 -nodefaults -no-user-config -display none \
    -debugcon stdio -global isa-debugcon.iobase=0x402";

/// Checks once a process whether the firmware of an empty machine runs with KVM. The error is a sentence.
pub async fn check() -> Result<(), &'static str> {
    static CHECKED: OnceCell<Result<(), String>> = OnceCell::const_new();
    let checked = CHECKED.get_or_init(|| async {
        std::fs::File::options()
            .read(true)
            .write(true)
            .open("/dev/kvm")
            .map_err(|error| format!("/dev/kvm: {error}"))?;
        access::obstacle(ProgramRole::Target, Path::new("/dev/kvm"), Access::Write).map_or(Ok(()), Err)?;
        boots().await
    });
    checked.await.as_ref().copied().map_err(String::as_str)
}

async fn boots() -> Result<(), String> {
    let mut command = Command::new(PROGRAM);
    command.args(EMPTY_MACHINE.split_whitespace()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut qemu = command.kill_on_drop(true).spawn().map_err(|error| format!("can't start {PROGRAM}: {error}"))?;
    let (Some(log), Some(errors)) = (qemu.stdout.take(), qemu.stderr.take()) else {
        return Err("QEMU has no output".to_owned());
    };
    let mut log = BufReader::new(log).lines();
    let booted = timeout(PATIENCE, async {
        while let Ok(Some(line)) = log.next_line().await {
            if line.starts_with(LAST_LINE) {
                return true;
            }
        }
        false
    });
    match booted.await {
        Ok(true) => Ok(()),
        Ok(false) => {
            let mut errors = BufReader::new(errors).lines();
            let first = errors.next_line().await.ok().flatten().unwrap_or_default();
            let first = first.strip_prefix(PROGRAM).unwrap_or(&first).trim_start_matches(": ").to_owned();
            Err(format!("/dev/kvm opens, but QEMU can't use it: {first}"))
        }
        Err(_) => Err(format!("/dev/kvm opens, but a guest does not start within {} s", PATIENCE.as_secs())),
    }
}
