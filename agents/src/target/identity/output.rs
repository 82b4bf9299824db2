//! What a command prints: a version, or an identity that the owner of a target computes.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a command may take.
const LIMIT: Duration = Duration::from_secs(10);

/// Pause between two looks at a command that runs.
const PAUSE: Duration = Duration::from_millis(5);

/// Maximum bytes of its output.
const MAX_BYTES: u64 = 4 << 10;

/// Returns what a command prints in a folder. The error is a part of a sentence.
pub(in crate::target) fn output(command: &[String], folder: &Path) -> Result<String, String> {
    let (program, arguments) = command.split_first().ok_or("program is missing")?;
    let path = Path::new(program);
    let path = if path.components().count() > 1 { folder.join(path) } else { path.to_owned() };
    let (out, written) = std::io::pipe().map_err(|error| error.to_string())?;
    let errors = written.try_clone().map_err(|error| error.to_string())?;
    let mut started = Command::new(&path);
    started.args(arguments).current_dir(folder).stdin(Stdio::null()).stdout(written).stderr(errors);
    let mut child = started.spawn().map_err(|error| format!("can't start {program}: {error}"))?;
    // The pipe ends once the command has exited.
    drop(started);
    let deadline = Instant::now() + LIMIT;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < deadline => sleep(PAUSE),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("{program} took more than {} s", LIMIT.as_secs()));
            }
            Err(error) => return Err(format!("{program}: {error}")),
        }
    };
    let mut text = Vec::new();
    out.take(MAX_BYTES).read_to_end(&mut text).map_err(|error| format!("{program}: {error}"))?;
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    if status.success() && !text.is_empty() { Ok(text) } else { Err(format!("{program} printed nothing or failed")) }
}
