//! A scenario submitted with a form, as text or as files.

use std::collections::BTreeMap;

use axum::extract::Multipart;
use brewbench_wire::{job::Scenario, reports::encoding};

use crate::{
    app::error::{Error, Result},
    catalog::model::ScenarioText,
};

/// Contents of the form.
#[derive(Debug, Default)]
pub struct Upload {
    /// Name of the scenario.
    pub name: String,
    /// The script from the text field.
    pub script: String,
    /// Parameters, one `NAME=VALUE` per line.
    pub defaults: String,
    /// Data files of the newest revision to keep.
    pub keep: Vec<String>,
    script_file: Option<String>,
    files: BTreeMap<String, String>,
}

impl Upload {
    /// Fills the form with a scenario.
    pub fn from_scenario(scenario: &Scenario) -> Self {
        let Scenario { name, kind: _, script, files, defaults } = scenario;
        Self {
            name: name.clone(),
            script: script.clone(),
            defaults: lines(defaults),
            keep: files.keys().cloned().collect(),
            ..Self::default()
        }
    }

    /// Reads the form. A form above the size limit is rejected as a whole.
    pub async fn read(mut form: Multipart) -> Result<Self> {
        let mut upload = Self::default();
        while let Some(part) = form.next_field().await? {
            let field = part.name().unwrap_or_default().to_owned();
            let file = part.file_name().map(str::to_owned).filter(|name| !name.is_empty());
            let bytes = part.bytes().await?;
            // Browsers send an empty file field without a file name.
            if matches!(field.as_str(), "script_file" | "files") && file.is_none() {
                continue;
            }
            let what = file.clone().unwrap_or_else(|| field.clone());
            let text = encoding::text(bytes.into()).map_err(|fault| Error::Invalid(format!("{what:?} {fault}")))?;
            match field.as_str() {
                "name" => text.trim().clone_into(&mut upload.name),
                // Browsers send CRLF line endings.
                "script" => upload.script = text.replace("\r\n", "\n"),
                "defaults" => upload.defaults = text.replace("\r\n", "\n"),
                "keep" => upload.keep.push(text),
                "script_file" => upload.script_file = Some(text),
                "files" => {
                    if upload.files.contains_key(&what) {
                        return Err(Error::Invalid(format!(
                            "files: two are called {what:?}; a script opens its files by name, so rename one of them"
                        )));
                    }
                    upload.files.insert(what, text);
                }
                _ => {}
            }
        }
        Ok(upload)
    }

    /// Returns the scenario to store; files to keep come from its newest revision.
    pub fn text(&self, old: Option<Scenario>) -> Result<ScenarioText> {
        let kept = old.map(|old| old.files).unwrap_or_default();
        let mut files: BTreeMap<String, String> =
            kept.into_iter().filter(|(name, _)| self.keep.contains(name)).collect();
        files.extend(self.files.clone());
        let script = self.script_file.clone().unwrap_or_else(|| self.script.clone());
        Ok(ScenarioText { name: self.name.clone(), script, files, defaults: self.parameters()? })
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

#[cfg(test)]
mod tests {
    use brewbench_wire::job::ScenarioKind;

    use super::*;

    fn old() -> Scenario {
        let files = [("a.json", "[]"), ("b.json", "{}")].map(|(name, text)| (name.to_owned(), text.to_owned()));
        Scenario {
            name: "x".to_owned(),
            kind: ScenarioKind::K6,
            script: "1".to_owned(),
            files: files.into(),
            defaults: BTreeMap::new(),
        }
    }

    #[test]
    fn files_are_kept_dropped_and_added_as_submitted() {
        let files = BTreeMap::from([("c.json".to_owned(), "3".to_owned())]);
        let upload =
            Upload { keep: vec!["a.json".to_owned(), "gone".to_owned()], files, ..Upload::from_scenario(&old()) };
        let text = upload.text(Some(old())).expect("a scenario");
        assert_eq!(text.files.keys().collect::<Vec<_>>(), ["a.json", "c.json"]);
    }

    #[test]
    fn parameters_are_lines_and_a_script_file_overrides_the_text_field() {
        let upload = Upload {
            defaults: "A=1\n\n B = 2 \nC=x=y".to_owned(),
            script_file: Some("file".to_owned()),
            ..Upload::from_scenario(&old())
        };
        let text = upload.text(None).expect("a scenario");
        let pairs: Vec<_> = text.defaults.iter().map(|(name, value)| format!("{name}:{value}")).collect();
        assert_eq!(
            (pairs, text.script.as_str()),
            (vec!["A:1".to_owned(), "B:2".to_owned(), "C:x=y".to_owned()], "file")
        );
        let bad = Upload { defaults: "A".to_owned(), ..Upload::default() };
        assert!(bad.text(None).expect_err("a fault").to_string().contains("NAME=VALUE"));
    }
}
