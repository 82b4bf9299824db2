//! The manifest of a new target: a template for each kind, checked as an agent does. Pure.

use brewbench_wire::{manifest::ManifestFile, target::TargetKind};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A manifest and where it belongs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TargetManifest {
    /// Name of the file in the agent's manifests folder.
    pub file: String,
    /// Its text.
    pub toml: String,
}

impl TargetManifest {
    /// Writes a manifest. Fails with all faults, each of which begins with its field.
    pub fn write(file: &ManifestFile) -> Result<Self, String> {
        let faults = file.faults();
        if !faults.is_empty() {
            return Err(faults.join("; "));
        }
        let toml = file.to_toml()?;
        // What an agent would read.
        match ManifestFile::parse(&toml) {
            Ok(read) if read == *file => Ok(Self { file: format!("{}.toml", file.name), toml }),
            Ok(_) => Err("the manifest would be read differently".to_owned()),
            Err(fault) => Err(fault),
        }
    }
}

/// Returns a manifest to start from: valid, with comments on what else can be written.
pub fn template(kind: TargetKind) -> &'static str {
    match kind {
        TargetKind::Process => include_str!("manifests/process.toml"),
        TargetKind::Container => include_str!("manifests/container.toml"),
        TargetKind::Vm => include_str!("manifests/vm.toml"),
        TargetKind::Url => include_str!("manifests/url.toml"),
        TargetKind::Kubernetes => include_str!("manifests/kubernetes.toml"),
    }
}

/// The text of a manifest, valid or not.
#[derive(Debug)]
pub struct Draft {
    /// As it was written.
    pub text: String,
    /// What an agent would read, as far as it is a manifest at all.
    pub file: Option<ManifestFile>,
    /// Everything that is wrong.
    pub faults: Vec<String>,
}

impl Draft {
    /// Checks a text.
    pub fn new(text: String) -> Self {
        match ManifestFile::from_toml(&text) {
            Ok(file) => Self { faults: file.faults(), file: Some(file), text },
            Err(fault) => Self { faults: vec![fault], file: None, text },
        }
    }

    /// Returns the manifest if an agent can read it.
    pub fn valid(&self) -> Option<&ManifestFile> {
        self.file.as_ref().filter(|_| self.faults.is_empty())
    }

    /// Returns the name of the file.
    pub fn file_name(&self) -> String {
        self.valid().map_or_else(|| "NAME.toml".to_owned(), |file| format!("{}.toml", file.name))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn templates_are_valid_with_and_without_the_tables_they_suggest() {
        for kind in TargetKind::ALL {
            let text = template(kind);
            let file = ManifestFile::parse(text).unwrap_or_else(|fault| panic!("{kind}: {fault}"));
            let given =
                [&file.container.is_some(), &file.vm.is_some(), &file.url.is_some(), &file.kubernetes.is_some()];
            let expected = [TargetKind::Container, TargetKind::Vm, TargetKind::Url, TargetKind::Kubernetes];
            assert_eq!(given, expected.map(|other| kind == other).each_ref(), "{kind}");
            // Each commented table can be used.
            let suggested: Vec<&str> = text.split("\n\n").filter(|part| part.contains("\n# [")).collect();
            for part in suggested {
                let lines = part.lines().map(|line| match line.strip_prefix("# ") {
                    Some(code) if code.starts_with('[') || code.contains(" = ") => code,
                    _ => line,
                });
                let used = text.replace(part, &lines.collect::<Vec<_>>().join("\n"));
                ManifestFile::parse(&used).unwrap_or_else(|fault| panic!("{kind}: {fault}\n{used}"));
            }
        }
    }

    #[test]
    fn every_fault_is_listed_and_an_unreadable_text_says_where() {
        let draft = Draft::new("name = \"a b\"\nversion = \"\"\ncommand = [\"x\"]\n[ready]\npath = \"x\"\n".to_owned());
        let fields: Vec<_> =
            draft.faults.iter().filter_map(|fault| fault.split_once(": ")).map(|(field, _)| field).collect();
        assert_eq!(fields, ["name", "version", "command", "ready.path"]);
        assert!(draft.valid().is_none());
        let draft = Draft::new("name = \"a\"\nversion = 1\n".to_owned());
        assert!(draft.faults[0].contains("line 2"), "{:?}", draft.faults);
        assert_eq!(draft.file_name(), "NAME.toml");
    }

    proptest! {
        /// Whatever is written: it is refused, or an agent reads it.
        #[test]
        fn no_text_is_called_valid_that_an_agent_refuses(text in any::<String>()) {
            let draft = Draft::new(text.clone());
            prop_assert_eq!(draft.valid().is_some(), ManifestFile::parse(&text).is_ok());
        }
    }
}
