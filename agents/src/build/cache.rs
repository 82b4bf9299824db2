//! The finished builds of a target, and what revisions meant in experiments. No half-built one is among them:
//! a build is stored whole, by renaming its folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use brewbench_wire::hex;
use brewbench_wire::manifest::Build;
use sha2::{Digest, Sha256};

use super::artifacts;
use crate::sandbox::process::find_program;
use crate::target::manifest::SourceBuild;

/// Most builds of a target that are kept; those used longest ago go first.
const MOST: usize = 32;

/// Most bytes of a target's builds that are kept; the newest stays, whatever its size.
const MOST_BYTES: u64 = 10 << 30;

/// File of a build that is an image, with its name.
const IMAGE: &str = "image";

/// What changes with the packages of the system: the databases of their managers, and the index of libraries.
const PACKAGES: [&str; 6] = [
    "/var/lib/dpkg/status",
    "/var/lib/rpm/rpmdb.sqlite",
    "/usr/lib/sysimage/rpm/rpmdb.sqlite",
    "/lib/apk/db/installed",
    "/var/lib/pacman/local",
    "/etc/ld.so.cache",
];

/// How many folders deep a toolchain that the sandbox allows is looked at. Rustup notes its updates in the second.
const TOOLCHAIN_DEPTH: usize = 2;

/// How long an experiment keeps its commits and failures.
const NOTED: Duration = Duration::from_hours(24 * 90);

/// The folders of a target's finished builds.
#[derive(Debug)]
pub struct BuildCache {
    done: PathBuf,
    notes: PathBuf,
}

/// Returns the name of a build: its commit and its recipe.
pub fn key(commit: &str, recipe: &str) -> String {
    format!("{commit}-{recipe}")
}

/// Returns what the builds of all commits depend on, as a name: how they are built, and the toolchain of the machine: the
/// program that builds them, the system's packages, and what the sandbox allows to read.
pub fn recipe(built: &SourceBuild) -> String {
    let Build { command, artifacts, containerfile, env, network: _, cache: _, timeout_s: _ } = &built.build;
    let SourceBuild { sandbox, .. } = built;
    let mut toolchain = command.first().and_then(|program| compiler(Path::new(program))).into_iter().collect();
    for path in PACKAGES {
        note_versions(Path::new(path), 0, &mut toolchain);
    }
    for path in sandbox.read.iter().filter(|path| !sandbox.write.contains(path)) {
        note_versions(path, TOOLCHAIN_DEPTH, &mut toolchain);
    }
    let how = format!("{:?}", (command, artifacts, containerfile, env, sandbox, toolchain));
    let how = hex(&Sha256::digest(how));
    how.get(..12).unwrap_or_default().to_owned()
}

/// What changes with another version of a file: its size and its time.
type FileVersion = (PathBuf, u64, Option<SystemTime>);

/// Returns the version of a program of the machine; `None` of one of the repository.
fn compiler(program: &Path) -> Option<FileVersion> {
    let is_ours = program.is_absolute() || program.components().count() == 1;
    version(find_program(program).filter(|_| is_ours)?)
}

fn version(path: PathBuf) -> Option<FileVersion> {
    let file = fs::metadata(&path).ok()?;
    Some((path, file.len(), file.modified().ok()))
}

/// Notes the versions of a file or folder and of what is below it.
fn note_versions(path: &Path, depth: usize, versions: &mut Vec<FileVersion>) {
    versions.extend(version(path.to_owned()));
    if depth > 0 {
        let mut below: Vec<PathBuf> = entries(path).collect();
        below.sort();
        for path in below {
            note_versions(&path, depth - 1, versions);
        }
    }
}

impl BuildCache {
    /// Opens it, and removes what an interrupted build has left.
    pub fn open(folder: &Path) -> Result<Self, String> {
        let (done, notes) = (folder.join("done"), folder.join("notes"));
        let opened = [&done, &notes].into_iter().try_for_each(fs::create_dir_all);
        opened
            .and_then(|()| crate::sandbox::cage::user::open_path(&done))
            .map_err(|error| format!("can't create {}: {error}", done.display()))?;
        let cache = Self { done, notes };
        for unfinished in entries(&cache.done).filter(|path| path.extension().is_some_and(|end| end == "new")) {
            let _ = fs::remove_dir_all(unfinished);
        }
        Ok(cache)
    }

    /// Returns the folder of a build, and notes its use.
    pub fn get(&self, key: &str) -> Option<PathBuf> {
        let place = self.done.join(key);
        place.is_dir().then(|| {
            let _ = fs::File::create(mark(&place));
            place
        })
    }

    /// Copies artifacts from where they were built. Returns the names of images that need not be kept any longer. The
    /// error is a sentence.
    pub fn put(&self, key: &str, tree: &Path, paths: &[String]) -> Result<Vec<String>, String> {
        let new = self.done.join(format!("{key}.new"));
        artifacts::copy(tree, paths, &new)?;
        self.store(key, &new)
    }

    /// Notes an image that the container engine has. Returns the same as [`Self::put`].
    pub fn put_image(&self, key: &str, name: &str) -> Result<Vec<String>, String> {
        let new = self.done.join(format!("{key}.new"));
        let written = fs::create_dir(&new).and_then(|()| fs::write(new.join(IMAGE), name));
        written.map_err(|error| format!("can't create {}: {error}", new.display()))?;
        self.store(key, &new)
    }

    /// Forgets a build.
    pub fn forget(&self, key: &str) {
        let _ = fs::remove_dir_all(self.done.join(key));
    }

    /// Gives a finished build its name. Returns the names of images that were evicted.
    fn store(&self, key: &str, new: &Path) -> Result<Vec<String>, String> {
        let place = self.done.join(key);
        fs::rename(new, &place).map_err(|error| format!("can't create {}: {error}", place.display()))?;
        Ok(self.evict(key))
    }

    /// Removes the builds that were used longest ago until the rest is small enough. Returns the names of images.
    fn evict(&self, newest: &str) -> Vec<String> {
        let used = |path: &PathBuf| fs::metadata(mark(path)).and_then(|mark| mark.modified()).ok();
        let mut builds: Vec<_> = entries(&self.done).filter(|path| path.is_dir()).collect();
        builds.sort_by_key(|path| std::cmp::Reverse((path.ends_with(newest), used(path))));
        let (mut bytes, mut images) = (0, Vec::new());
        for (index, build) in builds.iter().enumerate() {
            bytes += artifacts::bytes(build);
            if index > 0 && (index >= MOST || bytes > MOST_BYTES) {
                images.extend(fs::read_to_string(build.join(IMAGE)));
                let _ = fs::remove_dir_all(build).and_then(|()| fs::remove_file(mark(build)));
            }
        }
        images
    }

    /// Returns the commit that a revision meant when the experiment began here.
    pub fn pinned(&self, experiment: Option<&str>, revision: &str) -> Option<String> {
        self.noted(experiment, "commit", revision)
    }

    /// Keeps the commit of a revision, so that all repetitions measure the same.
    pub fn pin(&self, experiment: Option<&str>, revision: &str, commit: &str) -> Result<(), String> {
        self.note(experiment, "commit", revision, commit)
    }

    /// Returns the recipe with which the experiment began here.
    pub fn pinned_recipe(&self, experiment: Option<&str>) -> Option<String> {
        self.noted(experiment, "recipe", "")
    }

    /// Keeps the recipe of an experiment, so that all its builds have the same compilers.
    pub fn pin_recipe(&self, experiment: Option<&str>, recipe: &str) -> Result<(), String> {
        self.note(experiment, "recipe", "", recipe)
    }

    /// Returns why a build has failed in an experiment.
    pub fn failed(&self, experiment: Option<&str>, key: &str) -> Option<String> {
        self.noted(experiment, "failure", key)
    }

    /// Keeps why a build has failed, so that it is not tried for each repetition.
    pub fn fail(&self, experiment: Option<&str>, key: &str, why: &str) -> Result<(), String> {
        self.note(experiment, "failure", key, why)
    }

    fn noted(&self, experiment: Option<&str>, about: &str, of: &str) -> Option<String> {
        fs::read_to_string(self.place_of_note(experiment?, about, of)).ok()
    }

    fn note(&self, experiment: Option<&str>, about: &str, of: &str, text: &str) -> Result<(), String> {
        let Some(experiment) = experiment else { return Ok(()) };
        let (place, now) = (self.place_of_note(experiment, about, of), SystemTime::now());
        let is_old = |path: &PathBuf| {
            let at = fs::metadata(path).and_then(|note| note.modified()).ok();
            at.and_then(|at| now.duration_since(at).ok()).is_some_and(|since| since > NOTED)
        };
        entries(&self.notes).filter(is_old).for_each(|old| drop(fs::remove_file(old)));
        write_whole(&place, text).map_err(|error| format!("can't write {}: {error}", place.display()))
    }

    fn place_of_note(&self, experiment: &str, about: &str, of: &str) -> PathBuf {
        self.notes.join(hex(&Sha256::digest(format!("{experiment}\n{about}\n{of}"))))
    }
}

/// Returns the file whose time says when a build was last used.
fn mark(build: &Path) -> PathBuf {
    build.with_extension("used")
}

fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, text)?;
    fs::rename(new, path)
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use brewbench_wire::manifest::Sandbox;

    use super::*;

    #[test]
    fn a_toolchain_that_the_sandbox_allows_is_part_of_the_recipe() {
        let folder = tempfile::tempdir().expect("a folder");
        let toolchain = folder.path().join("toolchains/stable");
        fs::create_dir_all(toolchain.join("bin")).expect("folders");
        let source = "repository = \"/srv/api.git\"\nrefs = [\"*\"]";
        let build = "command = [\"make\"]\nartifacts = [\"bin/api\"]";
        let sandbox = Sandbox { read: vec![folder.path().to_owned()], ..Sandbox::default() };
        let (source, build) = (toml::from_str(source).expect("a source"), toml::from_str(build).expect("a build"));
        let how = SourceBuild { source, build, sandbox };
        let before = recipe(&how);
        assert_eq!(recipe(&how), before);
        fs::write(toolchain.join("version"), "2").expect("a file");
        assert_ne!(recipe(&how), before, "an update");
    }
}
