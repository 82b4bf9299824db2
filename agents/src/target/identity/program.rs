//! What the command of a program runs: its file, its interpreter, and the files from which that loads code.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use brewbench_wire::manifest::{IdentityScope, ScopeCommand};

use super::folder::{Own, claims, existing, normal};
use super::parts::Parts;
use super::shell::{self, LAUNCHERS};
use crate::sandbox::process::find_program;
use crate::target::manifest::Program;
use crate::target::manifest::{Manifest, Provided};
use crate::target::runtime;

/// Programs whose behaviour is in files that they load, besides those that compile at run time.
const INTERPRETERS: [&str; 40] = [
    "apache",
    "bundle",
    "caddy",
    "cargo",
    "clj",
    "clojure",
    "cython",
    "django-admin",
    "elixir",
    "erl",
    "flask",
    "go",
    "guile",
    "gunicorn",
    "haproxy",
    "httpd",
    "hypercorn",
    "iex",
    "ipython",
    "lighttpd",
    "lua",
    "make",
    "nginx",
    "pdm",
    "perl",
    "php",
    "php-cgi",
    "php-fpm",
    "poetry",
    "puma",
    "python",
    "R",
    "racket",
    "rackup",
    "Rscript",
    "ruby",
    "tclsh",
    "uv",
    "uvicorn",
    "wasmtime",
];

const SHELLS: [&str; 6] = ["ash", "bash", "dash", "ksh", "sh", "zsh"];

/// Folders whose content has nothing to do with a program.
const PASSING: [&str; 7] = ["/dev", "/proc", "/run", "/sys", "/tmp", "/var/run", "/var/tmp"];

/// Variables that name folders of a machine, and not of a program.
const MACHINE_VARIABLES: [&str; 4] = ["HOME", "LD_LIBRARY_PATH", "PATH", "TMPDIR"];

/// How far a program that starts a program is followed.
const MAX_LEVELS: usize = 4;

/// Longest text of a shell script that is read for what it starts.
const MAX_SCRIPT: u64 = 256 << 10;

/// Reads everything that decides how a program behaves.
pub(super) fn read(parts: &mut Parts<'_>, program: &Program, manifest: &Manifest, all: &[Manifest]) {
    parts.settings(&program.command, &program.env);
    let mut reader = Reader::new(parts, program);
    reader.command(&program.command, 0);
    reader.variables(&program.env);
    let Reader { code, data, uses_own, named, .. } = reader;
    if manifest.identity.is_some() {
        // The owner knows what decides.
        parts.forgive();
    }
    match &manifest.identity {
        Some(IdentityScope::Files(patterns)) => parts.matching(&program.folder, patterns),
        Some(IdentityScope::Command(ScopeCommand { command })) => match parts.output(command, &program.folder) {
            Ok(text) => parts.text("command", &text),
            Err(fault) => parts.miss(format!("identity.command: {fault}")),
        },
        None => {
            let others = all.iter().filter(|other| other.name != manifest.name);
            let others: Vec<&Program> = others.filter_map(|other| program_of(other)).collect();
            let own = Own { folder: &program.folder, others: claims(&others), named, written: &program.sandbox.write };
            for folder in data {
                own.add_all(parts, &folder);
            }
            for folder in code {
                own.add(parts, &folder, !others.is_empty());
            }
            if uses_own {
                own.add_all(parts, &program.folder);
            }
        }
    }
}

fn program_of(manifest: &Manifest) -> Option<&Program> {
    match &manifest.provided {
        Provided::Process(program) => Some(program),
        _ => None,
    }
}

/// Follows a command.
pub(super) struct Reader<'a, 'b> {
    pub(super) parts: &'a mut Parts<'b>,
    pub(super) folder: &'a Path,
    /// Where relative paths may begin.
    bases: Vec<PathBuf>,
    /// Folders with code beside a script.
    code: BTreeSet<PathBuf>,
    /// Folders that the command names.
    pub(super) data: BTreeSet<PathBuf>,
    /// Whether code may be loaded from the working directory.
    pub(super) uses_own: bool,
    /// Files and folders that the command names.
    pub(super) named: BTreeSet<PathBuf>,
}

impl<'a, 'b> Reader<'a, 'b> {
    fn new(parts: &'a mut Parts<'b>, program: &'a Program) -> Self {
        let bases = vec![program.folder.clone()];
        let (code, data, named) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        Self { parts, folder: &program.folder, bases, code, data, uses_own: false, named }
    }

    /// Reads a program and its arguments.
    fn command(&mut self, words: &[String], level: usize) {
        let Some((first, arguments)) = words.split_first() else { return };
        let Some(path) = self.find(first) else {
            return self.parts.miss(format!("it starts {first}, which was not found"));
        };
        self.named.insert(path.clone());
        let file_name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        self.parts.file(&if level == 0 { format!("program {file_name}") } else { first.clone() }, &path);
        let scripts = self.arguments(arguments);
        let name = runtime::name(first);
        if level >= MAX_LEVELS {
            return;
        }
        let is_interpreter = INTERPRETERS.contains(&name) || runtime::RUNTIMES.contains(&name);
        let interpreter = interpreter(&path);
        if let Some(interpreter) = interpreter.as_ref().filter(|_| !is_interpreter) {
            self.script(&path, interpreter, arguments, level);
        } else if LAUNCHERS.contains(&name) {
            self.launched(arguments, level);
        } else if SHELLS.contains(&name) {
            self.shell(arguments, level);
        } else if is_interpreter {
            let prefix = interpreter.and_then(|_| self.wrapped(first, name));
            self.installation(prefix.as_deref().unwrap_or(&path), name, arguments);
            self.code_beside(scripts.first());
        }
    }

    /// Asks an interpreter that is started by a script for its version: which one that starts, such as a shim of pyenv,
    /// depends on more than its text. Returns the path of the program if it is known.
    fn wrapped(&mut self, first: &str, name: &str) -> Option<PathBuf> {
        let question: &[&str] = match name {
            "python" => &["-c", "import sys; print(sys.executable); print(sys.version)"],
            "java" => &["-version"],
            _ => &["--version"],
        };
        let words: Vec<String> = std::iter::once(first).chain(question.iter().copied()).map(str::to_owned).collect();
        match self.parts.output(&words, self.folder) {
            Ok(text) => {
                self.parts.text(&format!("version of {first}"), &text);
                let program = text.lines().next().map(PathBuf::from);
                program.filter(|program| name == "python" && program.is_absolute())
            }
            Err(fault) => {
                self.parts.miss(format!("the version of {first} is unknown: {fault}"));
                None
            }
        }
    }

    /// Reads variables: files, and folders from which code is loaded.
    fn variables(&mut self, env: &BTreeMap<String, String>) {
        let values = env.iter().filter(|(name, _)| !MACHINE_VARIABLES.contains(&name.as_str()));
        let values: Vec<String> = values.map(|(_, value)| value.clone()).collect();
        self.arguments(&values);
    }

    fn find(&self, name: &str) -> Option<PathBuf> {
        let path = Path::new(name);
        if path.components().count() > 1 || name.starts_with('.') {
            let found = self.bases.iter().map(|base| base.join(name)).find(|path| path.is_file());
            return found.map(|path| normal(&path));
        }
        find_program(path)
    }

    /// Adds the files and folders that words name; returns the files.
    fn arguments(&mut self, words: &[String]) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for word in words {
            for path in existing(word, &self.bases) {
                if self.folder.starts_with(&path) {
                    self.uses_own |= self.folder == path;
                } else if path.is_file() {
                    self.parts.file(&self.relative(&path), &path);
                    files.push(path.clone());
                } else if path.is_dir() && !PASSING.iter().any(|passing| path.starts_with(passing)) {
                    self.data.insert(path.clone());
                }
                self.named.insert(path);
            }
        }
        files
    }

    /// Returns the path as it is the same on each machine, if it is below the manifest's folder.
    fn relative(&self, path: &Path) -> String {
        path.strip_prefix(self.folder).unwrap_or(path).display().to_string()
    }

    /// Reads a program that is a script.
    fn script(&mut self, path: &Path, interpreter: &[String], arguments: &[String], level: usize) {
        let name = interpreter.first().map_or("", |first| runtime::name(first));
        let is_env = name == "env";
        let words: Vec<String> = interpreter.iter().skip(usize::from(is_env)).cloned().collect();
        let words: Vec<String> =
            words.into_iter().skip_while(|word| is_env && (word.starts_with('-') || word.contains('='))).collect();
        let Some(first) = words.first() else {
            return self.parts.miss(format!("the interpreter of {} is unknown", path.display()));
        };
        let name = runtime::name(first).to_owned();
        match self.find(first) {
            Some(found) => {
                self.parts.file("interpreter", &found);
                self.installation(&found, &name, arguments);
            }
            None => self.parts.miss(format!("the interpreter {first} of {} was not found", path.display())),
        }
        if SHELLS.contains(&name.as_str()) {
            self.text_of(path, level);
        } else {
            self.code_beside(Some(&path.to_owned()));
        }
    }

    /// Reads a command behind programs such as `env` and `taskset`.
    fn launched(&mut self, arguments: &[String], level: usize) {
        let is_option = |word: &String| {
            word.starts_with('-') || word.contains('=') || word.starts_with(|first: char| first.is_ascii_digit())
        };
        let place = arguments.iter().position(|word| !is_option(word) && self.find(word).is_some());
        match place {
            Some(place) => self.command(&arguments[place..], level + 1),
            None => self.parts.miss("what its command starts was not found".to_owned()),
        }
    }

    /// Reads the arguments of a shell: a text, or a script.
    fn shell(&mut self, arguments: &[String], level: usize) {
        let has_text = |word: &String| word.starts_with('-') && !word.starts_with("--") && word.contains('c');
        if let Some(place) = arguments.iter().position(has_text) {
            match arguments.get(place + 1) {
                Some(text) => self.text(text, level),
                None => self.parts.miss("its shell has no text".to_owned()),
            }
        } else {
            let script = arguments.iter().find(|word| !word.starts_with('-')).cloned();
            match script.map(|script| (self.bases[0].join(&script), script)) {
                Some((path, _)) if path.is_file() => self.text_of(&normal(&path), level),
                Some((_, script)) => self.parts.miss(format!("its shell reads {script}, which was not found")),
                None => self.parts.miss("its shell reads no file".to_owned()),
            }
        }
    }

    fn text_of(&mut self, script: &Path, level: usize) {
        let mut text = Vec::new();
        let read = fs::File::open(script).and_then(|file| file.take(MAX_SCRIPT + 1).read_to_end(&mut text));
        match read {
            Ok(length) if length as u64 <= MAX_SCRIPT => self.text(&String::from_utf8_lossy(&text), level),
            _ => self.parts.miss(format!("{} can't be read or is too long", script.display())),
        }
    }

    /// Reads a text of a shell.
    fn text(&mut self, text: &str, level: usize) {
        let shell::Reading { programs, words, folders, unknown } = shell::read(text);
        self.bases.extend(folders.iter().map(|folder| normal(&self.folder.join(folder))));
        if let Some(unknown) = unknown {
            self.parts.miss(format!("its shell uses {unknown}, which is known only when it runs"));
        }
        self.arguments(&words);
        for program in programs {
            let command: Vec<String> = std::iter::once(program).chain(words.iter().cloned()).collect();
            self.command(&command, level + 1);
        }
    }

    /// Adds the folder of a script, from which its modules are loaded; without a script, the working directory.
    fn code_beside(&mut self, script: Option<&PathBuf>) {
        let folder = script.and_then(|script| script.parent());
        match folder.filter(|folder| !folder.ends_with("bin") && !folder.ends_with("sbin")) {
            Some(folder) => drop(self.code.insert(folder.to_owned())),
            None => self.uses_own = true,
        }
    }
}

/// Returns the interpreter of a script with its arguments; none for a program.
fn interpreter(path: &Path) -> Option<Vec<String>> {
    let mut start = Vec::new();
    fs::File::open(path).ok()?.take(512).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let words: Vec<String> = String::from_utf8_lossy(line).split_whitespace().map(str::to_owned).collect();
    (!words.is_empty()).then_some(words)
}
