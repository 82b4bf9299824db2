//! How a guest proves its size: a line on its console, such as
//! `brewbench-guest: cpus=2 memory_bytes=519221248 kernel=6.1.0`. Pure.

use brewbench_wire::job::Size;

/// How the line starts; what comes before it is ignored.
const MARK: &str = "brewbench-guest:";

/// What a kernel keeps for itself before it counts its memory: a fixed part and a share.
const KEPT_BYTES: u64 = 64 << 20;
const KEPT_SHARE: u64 = 20;

/// The size that a guest sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// CPUs that are online.
    pub cpus: u32,
    /// Memory, without what its kernel keeps for itself.
    pub memory_bytes: u64,
    /// Version of its kernel.
    pub kernel: Option<String>,
}

impl Proof {
    /// Finds the last complete line in the console's output.
    pub fn find(console: &str) -> Option<Self> {
        console.lines().rev().find_map(|line| Self::parse(line.split_once(MARK)?.1))
    }

    fn parse(words: &str) -> Option<Self> {
        let value = |name: &str| {
            let mut words = words.split_whitespace();
            words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
        };
        let kernel =
            value("kernel").map(|kernel| kernel.chars().filter(|letter| !letter.is_control()).take(100).collect());
        Some(Self { cpus: value("cpus")?.parse().ok()?, memory_bytes: value("memory_bytes")?.parse().ok()?, kernel })
    }

    /// Checks that it is the size of the run. The error is a sentence.
    pub fn fits(&self, size: &Size) -> Result<(), String> {
        let Self { cpus, memory_bytes, .. } = *self;
        if f64::from(cpus).total_cmp(&size.vcpus).is_ne() {
            return Err(format!(
                "the guest has {cpus} {}, but the size {} has {}",
                if cpus == 1 { "CPU" } else { "CPUs" },
                size.name,
                size.vcpus
            ));
        }
        let least = (size.memory_bytes - size.memory_bytes / KEPT_SHARE).saturating_sub(KEPT_BYTES);
        if !(least..=size.memory_bytes).contains(&memory_bytes) {
            let mib = |bytes: u64| bytes >> 20;
            return Err(format!(
                "the guest has {} MiB of memory, but the size {} has {} MiB",
                mib(memory_bytes),
                size.name,
                mib(size.memory_bytes)
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_a_console_counts() {
        let console = "[ 0.1] Linux\r\nbrewbench-guest: cpus=1 memory_bytes=1\r\n\
            [ 1.2] brewbench-guest: cpus=2 memory_bytes=97075200 kernel=6.1.0-56\r\nready\nbrewbench-guest: cpus=2 mem";
        let proof = Proof::find(console).expect("a proof");
        assert_eq!(proof, Proof { cpus: 2, memory_bytes: 97_075_200, kernel: Some("6.1.0-56".to_owned()) });
        assert_eq!(Proof::find("cpus=2 memory_bytes=1"), None);
        assert_eq!(Proof::find("brewbench-guest: cpus=x memory_bytes=1"), None);
    }

    #[test]
    fn a_guest_of_another_size_is_refused() {
        let size = Size { name: "2/512MiB".to_owned(), vcpus: 2.0, memory_bytes: 512 << 20, replicas: 1 };
        let fits = |cpus: u32, mib: u64| Proof { cpus, memory_bytes: mib << 20, kernel: None }.fits(&size);
        assert_eq!(fits(2, 480), Ok(()));
        assert!(fits(1, 480).is_err_and(|fault| fault == "the guest has 1 CPU, but the size 2/512MiB has 2"));
        assert!(fits(2, 256).is_err_and(|fault| fault.contains("256 MiB")));
        assert!(fits(2, 1024).is_err());
        let small = Size { name: "s".to_owned(), vcpus: 1.0, memory_bytes: 128 << 20, replicas: 1 };
        assert_eq!(Proof { cpus: 1, memory_bytes: 97_075_200, kernel: None }.fits(&small), Ok(()));
    }
}
