//! A scenario submitted with a form: as text, files, a folder or an archive.

use std::collections::BTreeMap;

use axum::{body::Bytes, extract::Multipart};
use brewbench_wire::{
    reports::encoding,
    scenario::{
        Content, SCRIPT, Scenario, entry,
        unpack::{self, Unpacked},
    },
};

use crate::{
    app::error::{Error, Result},
    catalog::model::ScenarioText,
};

/// Contents of the form.
#[derive(Debug, Default)]
pub struct Upload {
    /// Name of the scenario.
    pub name: String,
    /// Path of the script; empty to find it.
    pub entry: String,
    /// The script from the text field.
    pub script: String,
    /// Parameters, one `NAME=VALUE` per line.
    pub defaults: String,
    /// Other files of the newest revision to keep.
    pub keep: Vec<String>,
    /// The name of a script that was selected alone.
    script_file: Option<String>,
    /// Whether the files are those of a folder or an archive, with a script among them.
    has_folder: bool,
    files: BTreeMap<String, Content>,
}

impl Upload {
    /// Fills the form with a scenario.
    pub fn from_scenario(scenario: &Scenario) -> Self {
        Self {
            name: scenario.name.clone(),
            entry: scenario.entry.clone(),
            script: scenario.script().to_owned(),
            defaults: lines(&scenario.defaults),
            keep: scenario.others().map(|(path, _)| path.clone()).collect(),
            ..Self::default()
        }
    }

    /// Reads the form. A form above the size limit is rejected as a whole.
    pub async fn read(mut form: Multipart) -> Result<Self> {
        let mut upload = Self::default();
        let mut folder = BTreeMap::new();
        while let Some(part) = form.next_field().await? {
            let field = part.name().unwrap_or_default().to_owned();
            let file = part.file_name().map(str::to_owned).filter(|name| !name.is_empty());
            let bytes = part.bytes().await?;
            match (field.as_str(), file) {
                ("script_file", Some(name)) => upload.add_script(name, bytes)?,
                ("files", Some(name)) => add(&mut upload.files, name, Vec::from(bytes))?,
                ("folder", Some(path)) if !unpack::is_ignored(&path) => add(&mut folder, path, Vec::from(bytes))?,
                // Browsers send an empty file field without a file name.
                ("script_file" | "files" | "folder", _) => {}
                (field, _) => upload.set(field, bytes)?,
            }
        }
        upload.has_folder |= !folder.is_empty();
        for (path, content) in unpack::without_top(folder) {
            add(&mut upload.files, path, content)?;
        }
        Ok(upload)
    }

    fn set(&mut self, field: &str, bytes: Bytes) -> Result<()> {
        let text = encoding::text(bytes.into()).map_err(|fault| Error::Invalid(format!("{field}: {fault}")))?;
        // Browsers send CRLF line endings.
        let text = text.replace("\r\n", "\n");
        match field {
            "name" => text.trim().clone_into(&mut self.name),
            "entry" => text.trim().clone_into(&mut self.entry),
            "script" => self.script = text,
            "defaults" => self.defaults = text,
            "keep" => self.keep.push(text),
            _ => {}
        }
        Ok(())
    }

    /// Adds a script, or the files of an archive.
    fn add_script(&mut self, name: String, bytes: Bytes) -> Result<()> {
        if !unpack::is_archive(&bytes) {
            self.script_file = Some(name.clone());
            return add(&mut self.files, name, Vec::from(bytes));
        }
        let unpacked = unpack::unpack(&bytes);
        let Unpacked { entry, files } = unpacked.map_err(|fault| Error::Invalid(format!("{name}: {fault}")))?;
        (self.script_file, self.has_folder) = (entry, true);
        files.into_iter().try_for_each(|(path, content)| add(&mut self.files, path, content))
    }

    /// Returns the scenario to store. Files to keep come from its newest revision; a folder replaces all of them.
    pub fn text(&self, old: Option<Scenario>) -> Result<ScenarioText> {
        let kept = old.filter(|_| !self.has_folder).map(|old| old.files).unwrap_or_default();
        let mut files: BTreeMap<String, Content> =
            kept.into_iter().filter(|(path, _)| self.keep.contains(path)).collect();
        files.extend(self.files.clone());
        let entry = self.find_entry()?;
        if !self.files.contains_key(&entry) && !files.contains_key(&entry) {
            files.insert(entry.clone(), self.script.clone().into());
        }
        Ok(ScenarioText { name: self.name.clone(), entry, script: None, files, defaults: self.parameters()? })
    }

    fn find_entry(&self) -> Result<String> {
        let is_text = !self.has_folder && (self.files.is_empty() || !self.script.trim().is_empty());
        match &self.script_file {
            Some(file) => Ok(file.clone()),
            None if self.files.contains_key(&self.entry) => Ok(self.entry.clone()),
            None if is_text && self.entry.is_empty() => Ok(SCRIPT.to_owned()),
            None if is_text => Ok(self.entry.clone()),
            None => entry::find(&self.files).map_err(|fault| Error::Invalid(format!("files: {fault}"))),
        }
    }

    fn parameters(&self) -> Result<BTreeMap<String, String>> {
        let lines = self.defaults.lines().map(str::trim).filter(|line| !line.is_empty());
        let pair = |line: &str| match line.split_once('=') {
            Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
            None => Err(Error::Invalid(format!("defaults: write {line:?} as NAME=VALUE"))),
        };
        lines.map(pair).collect()
    }
}

/// Formats parameters, one `NAME=VALUE` per line.
pub fn lines(parameters: &BTreeMap<String, String>) -> String {
    parameters.iter().fold(String::new(), |text, (name, value)| text + name + "=" + value + "\n")
}

fn add(files: &mut BTreeMap<String, Content>, path: String, content: impl Into<Content>) -> Result<()> {
    if files.contains_key(&path) {
        return Err(Error::Invalid(format!(
            "files: two are called {path:?}; select their folder instead, or rename one of them"
        )));
    }
    files.insert(path, content.into());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn old() -> Scenario {
        Scenario::of_script("x", "1").with_file("a.json", "[]").with_file("b.json", "{}")
    }

    fn stored(upload: &Upload) -> (String, Vec<String>) {
        let text = upload.text(Some(old())).expect("a scenario");
        (text.entry, text.files.into_keys().collect())
    }

    #[test]
    fn files_are_kept_dropped_and_added_as_submitted() {
        let files = BTreeMap::from([("c.json".to_owned(), "3".into())]);
        let keep = vec!["a.json".to_owned(), "gone".to_owned()];
        let upload = Upload { keep, files, ..Upload::from_scenario(&old()) };
        assert_eq!(
            stored(&upload),
            (SCRIPT.to_owned(), vec!["a.json".to_owned(), "c.json".to_owned(), SCRIPT.to_owned()])
        );
    }

    #[test]
    fn a_selected_script_or_folder_replaces_the_text() {
        let mut upload = Upload { keep: Vec::new(), ..Upload::from_scenario(&old()) };
        upload.add_script("main.ts".to_owned(), "2".into()).expect("added");
        assert_eq!(stored(&upload), ("main.ts".to_owned(), vec!["main.ts".to_owned()]));
        let files = [("lib/a.js", "1"), ("soak.js", "import './lib/a.js'; export default 1")];
        let files = files.map(|(path, text)| (path.to_owned(), text.into())).into();
        let mut upload = Upload { keep: Vec::new(), files, ..Upload::from_scenario(&old()) };
        assert_eq!(stored(&upload).0, SCRIPT, "the text, with other files");
        (upload.has_folder, upload.keep) = (true, vec!["a.json".to_owned()]);
        let paths = vec!["lib/a.js".to_owned(), "soak.js".to_owned()];
        assert_eq!(stored(&upload), ("soak.js".to_owned(), paths));
        let upload = Upload { files: BTreeMap::from([("a.csv".to_owned(), "".into())]), ..Upload::default() };
        assert!(upload.text(None).expect_err("a fault").to_string().contains("there is no script"));
    }

    #[test]
    fn parameters_are_lines() {
        let upload = Upload { defaults: "A=1\n\n B = 2 \nC=x=y".to_owned(), ..Upload::from_scenario(&old()) };
        let text = upload.text(None).expect("a scenario");
        let pairs: Vec<_> = text.defaults.iter().map(|(name, value)| format!("{name}:{value}")).collect();
        assert_eq!(pairs, ["A:1", "B:2", "C:x=y"]);
        let bad = Upload { defaults: "A".to_owned(), ..Upload::from_scenario(&old()) };
        assert!(bad.text(None).expect_err("a fault").to_string().contains("NAME=VALUE"));
    }
}
