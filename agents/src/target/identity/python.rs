//! What belongs to an interpreter besides its file: its version, and modules and packages of Python.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::program::Reader;

impl Reader<'_, '_> {
    /// Reads what belongs to an interpreter besides its file.
    pub(super) fn installation(&mut self, path: &Path, name: &str, arguments: &[String]) {
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let homes = [path, &real].map(|path| path.parent().and_then(Path::parent).map(Path::to_owned));
        let homes: BTreeSet<PathBuf> = homes.into_iter().flatten().collect();
        for home in &homes {
            // The program `java` is small: the version of the machine is in this file.
            if home.join("release").is_file() {
                self.parts.file("runtime release", &home.join("release"));
            }
            if home.join("pyvenv.cfg").is_file() {
                self.packages(home);
            }
        }
        let module = arguments.iter().skip_while(|word| *word != "-m").nth(1);
        if let Some(module) = module.filter(|_| name.starts_with("python") || name.starts_with("pypy")) {
            self.module(module, &homes);
        }
    }

    /// Adds a module that Python runs, unless it is beside the manifest.
    fn module(&mut self, module: &str, homes: &BTreeSet<PathBuf>) {
        let first = module.split('.').next().unwrap_or_default();
        let file = format!("{first}.py");
        let own = [self.folder.join(first), self.folder.join(&file)];
        if let Some(own) = own.iter().find(|path| path.exists()) {
            self.named.insert(own.clone());
            self.uses_own = true;
            return;
        }
        for place in homes.iter().cloned().chain(["/usr/local".into(), "/usr".into()]).flat_map(|home| libraries(&home))
        {
            if place.join(first).is_dir() {
                return self.parts.folder(&format!("module {first}"), &place.join(first), &|_| false);
            }
            if place.join(&file).is_file() {
                return self.parts.file(&format!("module {first}"), &place.join(&file));
            }
        }
        self.parts.miss(format!("the module {first} was not found"));
    }

    /// Adds the packages of a virtual environment: pip lists the digests of their files.
    fn packages(&mut self, home: &Path) {
        for place in libraries(home).into_iter().filter(|place| place.ends_with("site-packages")) {
            let entries = fs::read_dir(&place).into_iter().flatten().flatten().map(|entry| entry.path());
            for path in entries {
                let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                if path.join("RECORD").is_file() {
                    self.parts.file(&format!("package {name}"), &path.join("RECORD"));
                } else if path.extension().is_some_and(|extension| extension == "pth") {
                    self.linked(&path);
                }
            }
        }
    }

    /// Adds packages that are installed as a link to their source.
    fn linked(&mut self, pth: &Path) {
        let text = fs::read_to_string(pth).unwrap_or_default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if Path::new(line).is_dir() {
                self.data.insert(line.into());
            } else if line.contains("__editable__") {
                self.parts.miss(format!("{} links to the source of a package", pth.display()));
            }
        }
    }
}

/// Returns the folders in which Python looks for modules below a prefix.
fn libraries(home: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(home.join("lib")).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_python =
        |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("python"));
    let mut all: Vec<PathBuf> = entries
        .filter(is_python)
        .flat_map(|path| [path.clone(), path.join("site-packages"), path.join("dist-packages")])
        .filter(|path| path.is_dir())
        .collect();
    all.sort();
    all
}
