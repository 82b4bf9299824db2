//! The bundled scenarios, which every agent accepts.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::scenario::Scenario;

/// Returns all bundled scenarios, in display order.
///
/// The agent passes `BASE_URL`, the target's address, to a script in addition to its parameters.
pub fn bundled() -> Vec<Scenario> {
    vec![
        scenario("hash", include_str!("../scenarios/hash.js"), &[], &[]),
        scenario("get", include_str!("../scenarios/get.js"), &[], &[("ROUTE", "/")]),
        scenario("single-file", include_str!("../scenarios/single-file.js"), &[], &[("PAYLOAD", "1k")]),
        scenario(
            "site-mix",
            include_str!("../scenarios/site-mix.js"),
            &[("site-mix.json", include_str!("../scenarios/site-mix.json"))],
            &[],
        ),
    ]
}

/// Whether files and defaults are exactly those of a bundled scenario. The name is ignored, because it does not
/// affect what is executed.
pub fn is_bundled(scenario: &Scenario) -> bool {
    scenario.elsewhere.is_empty() && is_bundled_hash(&scenario.sha256())
}

/// Returns the request list of a bundled scenario: the same requests for load generators without scripts.
pub fn request_list(sha256: &str) -> Option<&'static str> {
    static ALL: LazyLock<BTreeMap<String, &'static str>> = LazyLock::new(|| {
        let list = |name: &str| match name {
            "hash" => include_str!("../scenarios/hash.toml"),
            "get" => include_str!("../scenarios/get.toml"),
            "single-file" => include_str!("../scenarios/single-file.toml"),
            _ => include_str!("../scenarios/site-mix.toml"),
        };
        bundled().iter().map(|scenario| (scenario.sha256(), list(&scenario.name))).collect()
    });
    ALL.get(sha256).copied()
}

/// Whether this is the hash of a bundled scenario.
pub fn is_bundled_hash(sha256: &str) -> bool {
    static OWN: LazyLock<Vec<String>> = LazyLock::new(|| bundled().iter().map(Scenario::sha256).collect());
    OWN.iter().any(|own| own == sha256)
}

fn scenario(name: &str, script: &str, files: &[(&str, &str)], defaults: &[(&str, &str)]) -> Scenario {
    let scenario = Scenario::of_script(name, script);
    let scenario = files.iter().fold(scenario, |all, (path, text)| all.with_file(path, *text));
    defaults.iter().fold(scenario, |all, (parameter, value)| all.with_default(parameter, value))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::ErrorKind;
    use std::process::Command;

    use brewbench_testing::skip;

    use super::*;

    /// Returns the texts between `before` and the next quote.
    fn quoted<'a>(script: &'a str, before: &str) -> BTreeSet<&'a str> {
        script.split(before).skip(1).filter_map(|rest| rest.split('\'').next()).collect()
    }

    #[test]
    fn names_are_unique() {
        let names: BTreeSet<_> = bundled().into_iter().map(|scenario| scenario.name).collect();
        assert_eq!(names.len(), bundled().len());
    }

    #[test]
    fn the_files_are_those_opened_by_the_script() {
        for scenario in bundled() {
            let (name, script) = (&scenario.name, scenario.script());
            let files: BTreeSet<_> = scenario.others().map(|(path, _)| path.as_str()).collect();
            assert_eq!(quoted(script, "open('./"), files, "{name}");
            assert_eq!(
                script.matches("open(").count(),
                files.len(),
                "{name} opens a file in a way this test can't read"
            );
        }
    }

    #[test]
    fn a_script_run_manually_has_the_same_defaults() {
        for scenario in bundled() {
            let (name, script, defaults) = (&scenario.name, scenario.script(), &scenario.defaults);
            for (parameter, value) in defaults {
                assert!(script.contains(&format!("__ENV.{parameter} || '{value}'")), "{name}: {parameter}");
            }
            assert_eq!(
                script.matches("__ENV.").count(),
                defaults.len() + 1,
                "{name} has a parameter without a default"
            );
        }
    }

    #[test]
    fn a_scenario_is_bundled_only_unchanged() {
        for original in bundled() {
            assert!(is_bundled(&original));
            assert!(is_bundled(&Scenario { name: "renamed".to_owned(), ..original.clone() }));

            let mut changed = vec![
                original.clone().with_file("added", "1"),
                original.clone().with_default("added", "1"),
                Scenario { entry: "main.js".to_owned(), ..original.clone() },
            ];
            changed.extend(original.files.keys().map(|file| original.clone().with_file(file, "[]")));
            changed.extend(original.defaults.keys().map(|parameter| original.clone().with_default(parameter, "10k")));
            let hashes: BTreeSet<_> = changed.iter().chain([&original]).map(Scenario::sha256).collect();
            assert_eq!(hashes.len(), changed.len() + 1, "two revisions of {} share a hash", original.name);
            assert!(!changed.iter().any(is_bundled), "{}", original.name);
        }
    }

    #[test]
    fn k6_accepts_all_of_them() {
        for Scenario { name, files, defaults, .. } in bundled() {
            let folder = tempfile::tempdir().expect("a temporary folder");
            for (file, content) in &files {
                std::fs::write(folder.path().join(file), content.bytes()).expect("a file in the temporary folder");
            }
            let mut k6 = Command::new("k6");
            k6.current_dir(&folder).args(["inspect", "script.js", "--env", "BASE_URL=http://127.0.0.1:1"]);
            k6.args(
                defaults.iter().flat_map(|(parameter, value)| ["--env".to_owned(), format!("{parameter}={value}")]),
            );
            let inspected = match k6.output() {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    skip("k6 is not in PATH");
                    return;
                }
                inspected => inspected.expect("k6 can be started"),
            };
            assert!(inspected.status.success(), "{name}: {}", String::from_utf8_lossy(&inspected.stderr));
            let options: serde_json::Value = serde_json::from_slice(&inspected.stdout).expect("k6 prints JSON");
            assert!(options["vus"].is_u64() && options["duration"].is_string(), "{name}: {options}");
            assert!(options["thresholds"].is_null(), "{name}: {options}");
        }
    }
}
