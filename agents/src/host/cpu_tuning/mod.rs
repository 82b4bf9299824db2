//! Pins the CPU frequency for a run, if the agent's owner enables it: governor `performance`, turbo off.
//!
//! The previous settings are written to a file in the agent's state folder *before* they are changed, and restored
//! after the run. If the agent is killed, its next start restores them, or `brewbench agent restore`, which the systemd
//! unit runs when the agent has ended. Settings that were changed by others are left alone. After a reboot nothing is
//! restored, because the kernel starts with its defaults.

mod record;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use record::{Change, ChangeRecord};

/// Mount point of sysfs.
pub const SYSFS: &str = "/sys";

/// Pins the CPU frequency.
#[derive(Debug)]
pub struct CpuTuning {
    sysfs: PathBuf,
    state: PathBuf,
}

/// The CPU frequency is pinned until this is dropped.
#[derive(Debug)]
pub struct Pinned {
    state: PathBuf,
}

impl CpuTuning {
    /// Checks that the settings can be changed, by writing their current values. The error is a sentence for the user.
    /// Needs the mount point of sysfs and the agent's state folder.
    pub fn new(sysfs: impl Into<PathBuf>, state: impl Into<PathBuf>) -> Result<Self, String> {
        let tuning = Self { sysfs: sysfs.into(), state: state.into() };
        let settings = settings(&tuning.sysfs);
        if settings.is_empty() {
            return Err(
                "CPU frequency and turbo can't be set on this machine, as is usual for virtual machines: start \
                        the agent without --cpu-tuning"
                    .to_owned(),
            );
        }
        for (path, wanted) in &settings {
            let current = read(path).map_err(|error| format!("can't read {}: {error}", path.display()))?;
            if current == *wanted {
                continue;
            }
            if let Some(available) = available(path)
                && !available.iter().any(|governor| governor == wanted)
            {
                let path = path.display();
                return Err(format!(
                    "{path} supports {}, but not {wanted:?}: start the agent without --cpu-tuning",
                    available.join(", ")
                ));
            }
            fs::write(path, &current).map_err(|error| {
                let path = path.display();
                format!("--cpu-tuning can't write {path}: {error}; start the agent as root, or without the flag")
            })?;
        }
        Ok(tuning)
    }

    /// Pins the frequency. The error is a sentence; the settings are unchanged then.
    pub fn pin(&self) -> Result<Pinned, String> {
        let lock = lock(&self.state).map_err(|error| format!("can't lock {}: {error}", self.state.display()))?;
        let mut changes = Vec::new();
        for (path, wanted) in settings(&self.sysfs) {
            let before = read(&path).map_err(|error| format!("can't read {}: {error}", path.display()))?;
            if before != wanted {
                changes.push(Change { path, before, set: wanted.to_owned() });
            }
        }
        let record = ChangeRecord::new(changes);
        record.save(&self.state).map_err(|error| format!("can't write to {}: {error}", self.state.display()))?;
        drop(lock);
        let pinned = Pinned { state: self.state.clone() };
        for Change { path, set, .. } in &record.changes {
            // On failure, dropping `pinned` restores what was changed before.
            fs::write(path, set).map_err(|error| format!("can't write {set:?} to {}: {error}", path.display()))?;
        }
        Ok(pinned)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        log_restored(&restore(&self.state));
    }
}

/// Logs the result of restoring settings.
pub fn log_restored(restored: &io::Result<Restored>) {
    match restored {
        Ok(Restored { back, left_alone }) if !left_alone.is_empty() => {
            tracing::warn!(?left_alone, back = back.len(), "CPU settings were changed by others during the run");
        }
        Ok(_) => {}
        Err(error) => tracing::error!(%error, "failed to restore the CPU settings changed by --cpu-tuning"),
    }
}

/// The result of restoring settings.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Restored.
    pub back: Vec<PathBuf>,
    /// Changed by others since, and left alone.
    pub left_alone: Vec<PathBuf>,
}

/// Restores the settings changed by an agent with this state folder, unless it has done so itself. Does nothing when
/// called again. Fails if the kernel refuses; it can be retried then.
pub fn restore(state: &Path) -> io::Result<Restored> {
    let mut restored = Restored::default();
    let _lock = match lock(state) {
        Ok(lock) => lock,
        // Without a state folder there is nothing to restore.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(restored),
        Err(error) => return Err(error),
    };
    let Some(record) = ChangeRecord::load(state)? else { return Ok(restored) };
    if record.is_from_this_boot() {
        for Change { path, before, set } in record.changes.into_iter().rev() {
            // The CPU may have been switched off since.
            if read(&path).is_ok_and(|now| now == set) {
                fs::write(&path, before)?;
                restored.back.push(path);
            } else {
                restored.left_alone.push(path);
            }
        }
    }
    ChangeRecord::remove(state)?;
    Ok(restored)
}

/// Returns the files to write and their values: turbo first, as it affects the governors.
fn settings(sysfs: &Path) -> Vec<(PathBuf, &'static str)> {
    let cpu = sysfs.join("devices/system/cpu");
    let turbo = [(cpu.join("intel_pstate/no_turbo"), "1"), (cpu.join("cpufreq/boost"), "0")];
    let policies = fs::read_dir(cpu.join("cpufreq")).into_iter().flatten().flatten();
    let mut governors: Vec<_> = policies.map(|policy| policy.path().join("scaling_governor")).collect();
    governors.sort();
    let all = turbo.into_iter().chain(governors.into_iter().map(|path| (path, "performance")));
    all.filter(|(path, _)| path.exists()).collect()
}

/// Returns the governors that a policy supports; `None` for other settings.
fn available(path: &Path) -> Option<Vec<String>> {
    if !path.ends_with("scaling_governor") {
        return None;
    }
    let text = read(&path.with_file_name("scaling_available_governors")).ok()?;
    Some(text.split_whitespace().map(str::to_owned).collect())
}

fn read(path: &Path) -> io::Result<String> {
    Ok(fs::read_to_string(path)?.trim().to_owned())
}

/// Locks the settings: a killed agent and its successor may restore at the same time.
fn lock(state: &Path) -> io::Result<File> {
    let file = File::create(state.join("steady.lock"))?;
    file.lock()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::environment::tests::machine;

    const CPU: &str = "sys/devices/system/cpu";

    /// Creates a machine with two policies, turbo, and a state folder.
    fn fixture() -> tempfile::TempDir {
        let policy = |number: u32, file: &str| format!("{CPU}/cpufreq/policy{number}/{file}");
        let files = [
            (policy(0, "scaling_governor"), "powersave\n"),
            (policy(0, "scaling_available_governors"), "performance powersave\n"),
            (policy(1, "scaling_governor"), "schedutil\n"),
            (policy(1, "scaling_available_governors"), "performance schedutil\n"),
            (format!("{CPU}/intel_pstate/no_turbo"), "0\n"),
            ("state/lock".to_owned(), ""),
        ];
        machine(&files.each_ref().map(|(path, text)| (path.as_str(), *text)))
    }

    fn tuning(root: &tempfile::TempDir) -> CpuTuning {
        CpuTuning::new(root.path().join("sys"), root.path().join("state")).expect("supported")
    }

    fn current(root: &tempfile::TempDir) -> Vec<String> {
        let files = ["cpufreq/policy0/scaling_governor", "cpufreq/policy1/scaling_governor", "intel_pstate/no_turbo"];
        files.map(|file| read(&root.path().join(CPU).join(file)).expect("a setting")).to_vec()
    }

    const BEFORE: [&str; 3] = ["powersave", "schedutil", "0"];
    const PINNED: [&str; 3] = ["performance", "performance", "1"];

    #[test]
    fn settings_are_pinned_and_restored() {
        let root = fixture();
        let tuning = tuning(&root);
        assert_eq!(current(&root), BEFORE, "the check changes nothing");
        let pinned = tuning.pin().expect("pinned");
        assert_eq!(current(&root), PINNED);
        drop(pinned);
        assert_eq!(current(&root), BEFORE);
        assert!(!root.path().join("state/steady.json").exists());
        assert_eq!(restore(&root.path().join("state")).expect("nothing"), Restored::default());
    }

    #[test]
    fn restore_completes_for_a_killed_agent_but_keeps_changes_of_others() {
        let root = fixture();
        std::mem::forget(tuning(&root).pin().expect("pinned"));
        fs::write(root.path().join(CPU).join("cpufreq/policy1/scaling_governor"), "ondemand").expect("written");
        let restored = restore(&root.path().join("state")).expect("restored");
        assert_eq!((restored.back.len(), restored.left_alone.len()), (2, 1), "{restored:?}");
        assert_eq!(current(&root), ["powersave", "ondemand", "0"]);
        assert_eq!(restore(&root.path().join("state")).expect("nothing"), Restored::default());
    }

    #[test]
    fn nothing_is_restored_after_a_reboot() {
        let root = fixture();
        let state = root.path().join("state");
        std::mem::forget(tuning(&root).pin().expect("pinned"));
        let text = fs::read_to_string(state.join("steady.json")).expect("a record");
        let mut record: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        record["boot"] = "another".into();
        fs::write(state.join("steady.json"), record.to_string()).expect("written");
        assert_eq!(restore(&state).expect("nothing"), Restored::default());
        assert_eq!(current(&root), PINNED);
        assert!(!state.join("steady.json").exists());
    }

    #[test]
    fn unsupported_settings_are_refused_before_anything_is_changed() {
        let refused = |root: &tempfile::TempDir| {
            CpuTuning::new(root.path().join("sys"), root.path().join("state")).expect_err("unsupported")
        };
        let bare = machine(&[("state/lock", "")]);
        assert!(refused(&bare).contains("start the agent without --cpu-tuning"));
        let odd = fixture();
        let available = odd.path().join(CPU).join("cpufreq/policy1/scaling_available_governors");
        fs::write(available, "schedutil\n").expect("written");
        assert!(refused(&odd).contains("supports schedutil, but not \"performance\""), "{}", refused(&odd));
        let closed = fixture();
        let turbo = closed.path().join(CPU).join("intel_pstate/no_turbo");
        fs::remove_file(&turbo).expect("removed");
        // Not writable, not even by root.
        std::os::unix::fs::symlink("/proc/sys/kernel/ostype", turbo).expect("a link");
        assert!(refused(&closed).contains("--cpu-tuning can't write "), "{}", refused(&closed));
        assert_eq!(current(&odd), BEFORE);
    }

    #[test]
    fn a_damaged_record_is_an_error_and_stays() {
        let root = fixture();
        let state = root.path().join("state");
        fs::write(state.join("steady.json"), "{").expect("written");
        assert!(restore(&state).expect_err("damaged").to_string().contains("steady.json"));
        assert!(state.join("steady.json").exists());
        assert_eq!(restore(&root.path().join("nowhere")).expect("nothing"), Restored::default());
    }
}
