//! Writes k6 archives: a scenario with all its files, and the options under which k6 runs it. Pure.
//!
//! k6 takes the options of an archive from its `metadata.json`, and does not read those that the script exports. So a
//! load is set without touching the script. The format: `lib/archive.go` of k6.

use std::io;

use brewbench_wire::scenario::{REMOTE, RESERVED, Scenario};
use serde_json::{Value, json};

/// The folder of the scenario in an archive. k6 replaces parts of paths that look like a home.
const ROOT: &str = "scenario";

/// How the paths of the scenario's files begin in k6's messages, after `file://`.
pub const FOLDER: &str = "/scenario/";

/// Packs a scenario with options. A generated script takes the place of the scenario's, and is next to it.
pub fn pack(scenario: &Scenario, generated: Option<&str>, options: &Value) -> io::Result<Vec<u8>> {
    let (path, main) = match generated {
        Some(text) => (format!("{}{RESERVED}", scenario.folder()), text.as_bytes()),
        None => (scenario.entry.clone(), scenario.script().as_bytes()),
    };
    let wrong = |()| io::Error::other(format!("{path:?} is not a path"));
    let url = url::Url::from_file_path(format!("{FOLDER}{path}")).map_err(wrong)?;
    let folder = url.join(".").map_err(io::Error::other)?;
    let metadata = json!({
        "type": "js", "filename": url.as_str(), "pwd": folder.as_str(), "options": options, "env": {},
        // Without a version, k6 expects the format of 2018.
        "k6version": "1.0.0", "goos": "linux",
    });
    let mut archive = tar::Builder::new(Vec::new());
    let mut add = |path: &str, bytes: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, path, bytes)
    };
    add("metadata.json", metadata.to_string().as_bytes())?;
    add("data", main)?;
    add(&format!("file/{ROOT}/{path}"), main)?;
    for (own, content) in scenario.files.iter().filter(|(own, _)| **own != path) {
        let at = match own.strip_prefix(REMOTE) {
            Some(rest) => format!("https/{rest}"),
            None => format!("file/{ROOT}/{own}"),
        };
        add(&at, content.bytes())?;
    }
    archive.into_inner()
}

/// Returns the beginning of a generated script: it exports what the scenario's script exports, but for the default.
pub fn around(scenario: &Scenario) -> String {
    let own = json!(format!("./{}", &scenario.entry[scenario.folder().len()..]));
    format!("import * as own from {own};\nexport * from {own};\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read;

    use super::*;

    fn unpacked(bytes: &[u8]) -> BTreeMap<String, String> {
        let mut archive = tar::Archive::new(bytes);
        let read = |entry: io::Result<tar::Entry<'_, &[u8]>>| {
            let mut entry = entry.expect("an entry");
            let mut text = String::new();
            entry.read_to_string(&mut text).expect("a text");
            (entry.path().expect("a path").display().to_string(), text)
        };
        archive.entries().expect("entries").map(read).collect()
    }

    #[test]
    fn files_are_below_one_folder_and_modules_of_the_network_by_host() {
        let module = "https://jslib.example/x/index.js";
        let files = BTreeMap::from([("a/my main.ts".to_owned(), "1".into()), (module.to_owned(), "2".into())]);
        let scenario = Scenario { entry: "a/my main.ts".to_owned(), files, ..Scenario::of_script("x", "") };
        let files = unpacked(&pack(&scenario, None, &json!({"vus": 3})).expect("packed"));
        let metadata: Value = serde_json::from_str(&files["metadata.json"]).expect("JSON");
        assert_eq!((&metadata["options"]["vus"], &metadata["pwd"]), (&json!(3), &json!("file:///scenario/a/")));
        assert_eq!(metadata["filename"], "file:///scenario/a/my%20main.ts");
        assert_eq!((files["data"].as_str(), files["file/scenario/a/my main.ts"].as_str()), ("1", "1"));
        assert_eq!(files["https/jslib.example/x/index.js"], "2");

        let files = unpacked(&pack(&scenario, Some(&around(&scenario)), &json!({})).expect("packed"));
        assert!(files["metadata.json"].contains("a/brewbench-entry.js"), "{}", files["metadata.json"]);
        assert!(files["data"].contains(r#"from "./my main.ts";"#), "{}", files["data"]);
        assert_eq!(files["file/scenario/a/my main.ts"], "1");
    }
}
