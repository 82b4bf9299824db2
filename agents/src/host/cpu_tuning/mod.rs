//! Processors of a steady speed for the time of a run: governor `performance`, turbo off. The owner asks for it.
//!
//! What was there is written to a file in the agent's state folder *before* it is changed, and put back after the run. An
//! agent that was killed can't do that: its next start does, or `brewbench agent-restore`, which the systemd unit runs when
//! the agent has ended. What is not as it was set is left alone, and after a restart of the machine nothing is put back at
//! all, for then nothing of it is left.

mod record;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use record::{Change, Record};

/// Where the kernel shows its devices.
pub const SYSFS: &str = "/sys";

/// Makes processors steady.
#[derive(Debug)]
pub struct Steady {
    sysfs: PathBuf,
    state: PathBuf,
}

/// Processors are steady until this is dropped.
#[derive(Debug)]
pub struct Held {
    state: PathBuf,
}

impl Steady {
    /// Finds out whether it can be done, by writing what is there already. The error is a sentence for the owner. Needs
    /// the folder that devices are shown in, and the agent's state folder.
    pub fn new(sysfs: impl Into<PathBuf>, state: impl Into<PathBuf>) -> Result<Self, String> {
        let steady = Self { sysfs: sysfs.into(), state: state.into() };
        let wishes = wishes(&steady.sysfs);
        if wishes.is_empty() {
            return Err("this machine lets nobody set its processors' frequency or turbo, as is usual for virtual \
                        machines: start the agent without --steady-cpu"
                .to_owned());
        }
        for (path, wanted) in &wishes {
            let there = read(path).map_err(|error| format!("can't read {}: {error}", path.display()))?;
            if there == *wanted {
                continue;
            }
            if let Some(offered) = offered(path)
                && !offered.iter().any(|governor| governor == wanted)
            {
                let path = path.display();
                return Err(format!(
                    "{path} takes {}, but not {wanted:?}: start the agent without --steady-cpu",
                    offered.join(", ")
                ));
            }
            fs::write(path, &there).map_err(|error| {
                let path = path.display();
                format!("--steady-cpu needs to write {path}, and the kernel refuses: {error}; start the agent as root, or without it")
            })?;
        }
        Ok(steady)
    }

    /// Makes them steady. The error is a sentence; then everything is as it was.
    pub fn hold(&self) -> Result<Held, String> {
        let lock = lock(&self.state).map_err(|error| format!("can't lock {}: {error}", self.state.display()))?;
        let mut changes = Vec::new();
        for (path, wanted) in wishes(&self.sysfs) {
            let before = read(&path).map_err(|error| format!("can't read {}: {error}", path.display()))?;
            if before != wanted {
                changes.push(Change { path, before, set: wanted.to_owned() });
            }
        }
        let record = Record::new(changes);
        record.save(&self.state).map_err(|error| format!("can't write to {}: {error}", self.state.display()))?;
        drop(lock);
        let held = Held { state: self.state.clone() };
        for Change { path, set, .. } in &record.changes {
            // What was changed before a refusal is put back as `held` goes.
            fs::write(path, set).map_err(|error| format!("can't write {set:?} to {}: {error}", path.display()))?;
        }
        Ok(held)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        report(&restore(&self.state));
    }
}

/// Tells the owner what became of an attempt to put things back.
pub fn report(restored: &io::Result<Restored>) {
    match restored {
        Ok(Restored { back, left_alone }) if !left_alone.is_empty() => {
            tracing::warn!(?left_alone, back = back.len(), "somebody else has changed what --steady-cpu had set");
        }
        Ok(_) => {}
        Err(error) => tracing::error!(%error, "what --steady-cpu had set is not put back whole"),
    }
}

/// What was put back.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// As it was before.
    pub back: Vec<PathBuf>,
    /// Somebody else has changed these meanwhile.
    pub left_alone: Vec<PathBuf>,
}

/// Puts back what an agent with this state folder has changed, if it has and has not done so itself. Does nothing the
/// second time. Fails when the kernel refuses; then it can be tried again.
pub fn restore(state: &Path) -> io::Result<Restored> {
    let mut restored = Restored::default();
    let _lock = match lock(state) {
        Ok(lock) => lock,
        // Where no state is, there is nothing to put back.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(restored),
        Err(error) => return Err(error),
    };
    let Some(record) = Record::load(state)? else { return Ok(restored) };
    if record.is_of_this_boot() {
        for Change { path, before, set } in record.changes.into_iter().rev() {
            // A processor may have been switched off meanwhile.
            if read(&path).is_ok_and(|now| now == set) {
                fs::write(&path, before)?;
                restored.back.push(path);
            } else {
                restored.left_alone.push(path);
            }
        }
    }
    Record::remove(state)?;
    Ok(restored)
}

/// Files, and what shall be in them: turbo first, which has an influence on what governors do.
fn wishes(sysfs: &Path) -> Vec<(PathBuf, &'static str)> {
    let cpu = sysfs.join("devices/system/cpu");
    let turbo = [(cpu.join("intel_pstate/no_turbo"), "1"), (cpu.join("cpufreq/boost"), "0")];
    let policies = fs::read_dir(cpu.join("cpufreq")).into_iter().flatten().flatten();
    let mut governors: Vec<_> = policies.map(|policy| policy.path().join("scaling_governor")).collect();
    governors.sort();
    let all = turbo.into_iter().chain(governors.into_iter().map(|path| (path, "performance")));
    all.filter(|(path, _)| path.exists()).collect()
}

/// The governors that a policy has to offer; nothing for other settings.
fn offered(path: &Path) -> Option<Vec<String>> {
    if !path.ends_with("scaling_governor") {
        return None;
    }
    let text = read(&path.with_file_name("scaling_available_governors")).ok()?;
    Some(text.split_whitespace().map(str::to_owned).collect())
}

fn read(path: &Path) -> io::Result<String> {
    Ok(fs::read_to_string(path)?.trim().to_owned())
}

/// One at a time: an agent that was killed and its successor may both be about to put something back.
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

    /// A machine with two policies and a turbo, and a state folder.
    fn made_up() -> tempfile::TempDir {
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

    fn steady(root: &tempfile::TempDir) -> Steady {
        Steady::new(root.path().join("sys"), root.path().join("state")).expect("it can be done")
    }

    fn settings(root: &tempfile::TempDir) -> Vec<String> {
        let files = ["cpufreq/policy0/scaling_governor", "cpufreq/policy1/scaling_governor", "intel_pstate/no_turbo"];
        files.map(|file| read(&root.path().join(CPU).join(file)).expect("a setting")).to_vec()
    }

    const BEFORE: [&str; 3] = ["powersave", "schedutil", "0"];
    const STEADY: [&str; 3] = ["performance", "performance", "1"];

    #[test]
    fn processors_are_steady_for_a_while_and_then_as_before() {
        let root = made_up();
        let steady = steady(&root);
        assert_eq!(settings(&root), BEFORE, "finding out changes nothing");
        let held = steady.hold().expect("steady");
        assert_eq!(settings(&root), STEADY);
        drop(held);
        assert_eq!(settings(&root), BEFORE);
        assert!(!root.path().join("state/steady.json").exists());
        assert_eq!(restore(&root.path().join("state")).expect("nothing"), Restored::default());
    }

    #[test]
    fn what_an_agent_could_not_put_back_is_put_back_for_it_but_not_what_others_changed_meanwhile() {
        let root = made_up();
        std::mem::forget(steady(&root).hold().expect("steady"));
        fs::write(root.path().join(CPU).join("cpufreq/policy1/scaling_governor"), "ondemand").expect("written");
        let restored = restore(&root.path().join("state")).expect("put back");
        assert_eq!((restored.back.len(), restored.left_alone.len()), (2, 1), "{restored:?}");
        assert_eq!(settings(&root), ["powersave", "ondemand", "0"]);
        assert_eq!(restore(&root.path().join("state")).expect("nothing"), Restored::default());
    }

    #[test]
    fn after_a_restart_of_the_machine_nothing_is_put_back() {
        let root = made_up();
        let state = root.path().join("state");
        std::mem::forget(steady(&root).hold().expect("steady"));
        let text = fs::read_to_string(state.join("steady.json")).expect("a record");
        let mut record: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        record["boot"] = "another".into();
        fs::write(state.join("steady.json"), record.to_string()).expect("written");
        assert_eq!(restore(&state).expect("nothing"), Restored::default());
        assert_eq!(settings(&root), STEADY);
        assert!(!state.join("steady.json").exists());
    }

    #[test]
    fn what_can_not_be_done_is_said_before_anything_is_done() {
        let refused = |root: &tempfile::TempDir| {
            Steady::new(root.path().join("sys"), root.path().join("state")).expect_err("it can't be done")
        };
        let bare = machine(&[("state/lock", "")]);
        assert!(refused(&bare).contains("start the agent without --steady-cpu"));
        let odd = made_up();
        let available = odd.path().join(CPU).join("cpufreq/policy1/scaling_available_governors");
        fs::write(available, "schedutil\n").expect("written");
        assert!(refused(&odd).contains("takes schedutil, but not \"performance\""), "{}", refused(&odd));
        let closed = made_up();
        let turbo = closed.path().join(CPU).join("intel_pstate/no_turbo");
        fs::remove_file(&turbo).expect("removed");
        // Nobody may write this one, not even root.
        std::os::unix::fs::symlink("/proc/sys/kernel/ostype", turbo).expect("a link");
        assert!(refused(&closed).contains("and the kernel refuses: "), "{}", refused(&closed));
        assert_eq!(settings(&odd), BEFORE);
    }

    #[test]
    fn a_damaged_record_is_an_error_and_stays() {
        let root = made_up();
        let state = root.path().join("state");
        fs::write(state.join("steady.json"), "{").expect("written");
        assert!(restore(&state).expect_err("damaged").to_string().contains("steady.json"));
        assert!(state.join("steady.json").exists());
        assert_eq!(restore(&root.path().join("nowhere")).expect("nothing"), Restored::default());
    }
}
