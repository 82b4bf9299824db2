//! The program under test, its command and its environment.

use std::fs;
use std::path::Path;

use brewbench_wire::manifest::Container;

use super::{Facts, put, secret};
use crate::sandbox::cage::environment;
use crate::target::manifest::Program;
use crate::target::manifest::{Machine, Manifest, Provided};

/// Maximum length of a value in characters: a list of paths may be long.
const VALUE: usize = 2_000;

/// Returns the facts about a target that are known before its start. Where it is below the `own` folders of the agent is
/// none: another commit, or another agent, has another one.
pub fn facts(manifest: &Manifest, own: &[&Path]) -> Facts {
    let mut facts = Facts::new();
    put(
        &mut facts,
        [("target.version", Some(manifest.version.clone())), ("target.revision", manifest.revision.clone())],
    );
    match &manifest.provided {
        Provided::Process(program) | Provided::Vm(Machine::Launcher(program)) => {
            facts.extend(facts_of_program(program, own));
        }
        Provided::Vm(Machine::Qemu(qemu)) => facts.extend(qemu.facts()),
        Provided::Container(container) => facts.extend(facts_of_container(container)),
        Provided::Kubernetes(workload) => drop(facts.insert("target.image".to_owned(), workload.image.clone())),
        Provided::Url(remote) => drop(facts.insert("target.base_url".to_owned(), remote.base.clone())),
    }
    facts
}

/// Returns the facts about a program: its command with the placeholder `{port}`, so that it is the same in every run,
/// and its environment without the variables that mark its processes.
fn facts_of_program(started: &Program, own: &[&Path]) -> Facts {
    let program = started.path().ok();
    let is_own = |path: &Path| own.iter().any(|folder| path.starts_with(folder));
    let shown = |path: &Path| match path.strip_prefix(&started.folder) {
        Ok(within) if is_own(path) => Some(within.display().to_string()),
        _ => (!is_own(path)).then(|| path.display().to_string()),
    };
    let bytes = program.as_ref().and_then(|program| fs::metadata(program).ok()).map(|metadata| metadata.len());
    let mut facts = Facts::new();
    put(
        &mut facts,
        [
            ("target.command", Some(cut(&quoted(&secret::command(&started.command))))),
            ("target.folder", shown(&started.folder).filter(|path| !path.is_empty())),
            ("target.executable", program.and_then(|program| shown(&program))),
            ("target.executable_bytes", bytes.map(|bytes| bytes.to_string())),
        ],
    );
    let inherited = environment::passed_on()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()));
    let variables = inherited.chain(started.env.clone());
    facts.extend(variables.map(|(name, value)| (format!("target.env.{name}"), cut(&secret::value(&name, &value)))));
    facts
}

/// Returns the facts about a container that its manifest tells; the others are known once it runs.
fn facts_of_container(container: &Container) -> Facts {
    let command = (!container.command.is_empty()).then(|| cut(&quoted(&secret::command(&container.command))));
    let mut facts = Facts::new();
    put(&mut facts, [("target.image", Some(container.image.clone())), ("target.command", command)]);
    let variables = container.env.iter();
    facts.extend(variables.map(|(name, value)| (format!("target.env.{name}"), cut(&secret::value(name, value)))));
    facts
}

/// Quotes words for a shell.
fn quoted(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+{}()".contains(c);
    let quote = |word: &String| {
        if !word.is_empty() && (word.chars().all(plain) || word.ends_with(secret::LEFT_OUT)) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

fn cut(value: &str) -> String {
    if value.chars().count() <= VALUE {
        return value.to_owned();
    }
    value.chars().take(VALUE).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::manifest;

    #[test]
    fn a_target_is_described_by_command_and_variables_without_secrets() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = "name = \"x\"\nversion = \"1\"\nrevision = \"abc123\"\n\
            command = [\"sh\", \"-c\", \"exec it's\", \"--token\", \"hush\", \"{port}\"]\n\
            [env]\nLEVEL = \"info\"\nAPI_KEY = \"hush\"\nPATH = \"/bin:/usr/bin\"\n[ready]\npath = \"/\"";
        std::fs::write(folder.path().join("x.toml"), text).expect("a file");
        let manifest = manifest::load(folder.path()).0.remove(0);
        let facts = facts(&manifest, &[]);
        assert_eq!(facts["target.command"], r"sh -c 'exec it'\''s' --token (left out) {port}");
        assert_eq!(facts["target.env.LEVEL"], "info");
        assert_eq!(facts["target.env.API_KEY"], secret::LEFT_OUT);
        assert_eq!(facts["target.env.PATH"], "/bin:/usr/bin");
        assert_eq!(facts["target.revision"], "abc123");
        assert!(facts["target.executable"].ends_with("/sh"));
        assert!(facts["target.executable_bytes"].parse::<u64>().is_ok_and(|bytes| bytes > 0));
        assert!(!facts.values().any(|value| value.contains("hush")), "{facts:?}");
    }

    #[test]
    fn where_a_program_is_below_the_agents_own_folders_is_no_fact() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = "name = \"x\"\nversion = \"1\"\ncommand = [\"bin/x\", \"{port}\"]\n[ready]\npath = \"/\"";
        let of = |build: &str| {
            let place = folder.path().join("agent.builds/x/done").join(build);
            std::fs::create_dir_all(place.join("bin")).expect("a folder");
            std::fs::write(place.join("x.toml"), text).expect("a file");
            std::fs::write(place.join("bin/x"), "program").expect("a file");
            let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(place.join("bin/x"), executable).expect("a mode");
            let (mut manifests, errors) = manifest::load(&place);
            assert_eq!(errors, [], "the manifest is valid");
            facts(&manifests.remove(0), &[&folder.path().join("agent.builds")])
        };
        let first = of("1234-ab");
        assert_eq!(
            (first.get("target.executable").map(String::as_str), first.get("target.folder")),
            (Some("bin/x"), None)
        );
        assert_eq!(of("1234-cd"), first);
    }

    #[test]
    fn a_long_value_is_cut() {
        assert_eq!(cut(&"ä".repeat(VALUE + 1)).chars().count(), VALUE + 1);
        assert_eq!(cut("short"), "short");
    }
}
