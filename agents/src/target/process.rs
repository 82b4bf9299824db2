//! The target kind `process`: a program on this machine, started by its command.

mod last_words;
mod started;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

pub use started::ProcessTarget;

use brewbench_wire::manifest::{HOST, PORT, Sandbox};

use super::fingerprint::Fingerprints;
use super::manifest::Program;
use crate::sandbox::cage::Cage;
use crate::sandbox::process::{Plan, find_program};

impl Program {
    /// Returns the path of its file: relative to the manifest's folder, or found in `PATH` if it is a bare name.
    pub fn path(&self) -> Result<PathBuf, String> {
        let name = Path::new(self.command.first().map_or("", String::as_str));
        let path = if name.components().count() > 1 { self.folder.join(name) } else { name.to_owned() };
        find_program(&path).ok_or_else(|| format!("command: program {} not found", path.display()))
    }

    /// Returns the SHA-256 of the program's file in hex.
    pub fn fingerprint(&self, fingerprints: &Fingerprints) -> Result<String, String> {
        let program = self.path()?;
        fingerprints.compute(&program).map_err(|error| format!("command: can't read {}: {error}", program.display()))
    }

    /// Whether it can listen on other addresses than loopback.
    pub fn listens_anywhere(&self) -> bool {
        self.command.iter().chain(self.env.values()).any(|text| text.contains(HOST))
    }

    /// Returns the files and folders that the command names: the target may read them.
    fn paths_in_command(&self) -> Vec<PathBuf> {
        let is_name = |word: &&String| !word.is_empty() && !word.contains("..");
        let path = |word: &String| self.folder.join(word);
        self.command.iter().skip(1).filter(is_name).map(path).filter(|path| path.exists()).collect()
    }

    /// Returns the plan to start it listening on this address.
    pub(super) fn plan(&self, at: SocketAddr, cores: &[usize], home: &Path) -> Result<Plan, String> {
        if !at.ip().is_loopback() && !self.listens_anywhere() {
            let host = HOST;
            return Err(format!(
                "command: {host} is missing in command and env, so the target can't listen on {}",
                at.ip()
            ));
        }
        let host = match at.ip() {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        let fill = |text: &String| text.replace(PORT, &at.port().to_string()).replace(HOST, &host);
        let environment: BTreeMap<_, _> = self.env.iter().map(|(name, value)| (name.clone(), fill(value))).collect();
        let program = without_links(self.path()?);
        let Sandbox { read, write } = &self.sandbox;
        Ok(Plan {
            cage: Cage::target(&program, &self.folder, home)
                .widened(&self.paths_in_command(), &[])
                .widened(read, write),
            program,
            arguments: self.command.iter().skip(1).map(fill).collect(),
            environment,
            folder: self.folder.clone(),
            cores: cores.to_vec(),
        })
    }
}

/// Resolves links to the folder of a program: the user of targets may not pass through the folder that has them. The
/// name stays, by which some programs know what to do.
fn without_links(program: PathBuf) -> PathBuf {
    let folder = program.parent().and_then(|folder| folder.canonicalize().ok());
    match (folder, program.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => program,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::manifest::{self, Manifest, Provided};
    use super::*;

    /// A target that runs this shell script.
    pub(in crate::target) fn manifest(script: &str) -> Manifest {
        let text = format!(
            "name = \"x\"\nversion = \"1\"\ncommand = [\"sh\", \"-c\", {script:?}, \"{{port}}\"]\n\
             [ready]\npath = \"/\"\ntimeout_s = 600"
        );
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("x.toml"), text).expect("a file");
        let manifest = manifest::load(folder.path()).0.remove(0);
        Manifest { provided: Provided::Process(program_of(manifest.clone())), ..manifest }
    }

    pub(super) fn program_of(manifest: Manifest) -> Program {
        let Provided::Process(program) = manifest.provided else { panic!("a program") };
        Program { folder: "/".into(), ..program }
    }

    #[test]
    fn a_target_listens_elsewhere_only_if_its_manifest_supports_it() {
        let (there, home) = (SocketAddr::from(([10, 0, 0, 5], 81)), Path::new("/nowhere"));
        let error = program_of(manifest("x")).plan(there, &[], home).expect_err("refused");
        assert!(error.contains("{host}"), "{error}");
        let able = program_of(manifest("serve {host}:{port}"));
        assert!(able.listens_anywhere());
        assert_eq!(able.plan(there, &[], home).expect("a plan").arguments[1], "serve 10.0.0.5:81");
        let here = SocketAddr::from(([127, 0, 0, 1], 82));
        assert_eq!(able.plan(here, &[], home).expect("a plan").arguments[1], "serve 127.0.0.1:82");
        let six = SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, 83));
        assert_eq!(able.plan(six, &[], home).expect("a plan").arguments[1], "serve [::1]:83");
    }
}
