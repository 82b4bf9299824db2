//! A scenario: a k6 script with all files that it needs, in any folders.

pub mod addresses;
pub mod entry;
pub mod imports;
pub mod unpack;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use unicode_normalization::UnicodeNormalization;

use crate::engine::EngineKind;
use crate::{hex, scenarios};

/// The usual path of a script.
pub const SCRIPT: &str = "script.js";

/// The path of a request list, which the native load generator executes. Beside a script, it is the same load in
/// another form; alone it is the scenario.
pub const REQUESTS: &str = "requests.toml";

/// Endings of modules; other files are data.
const MODULES: [&str; 4] = [".js", ".mjs", ".cjs", ".ts"];

/// A file that load generators add next to the script.
pub const RESERVED: &str = "brewbench-entry.js";

/// How the path of a module from the network begins: its URL.
pub const REMOTE: &str = "https://";

/// Maximum number of files.
pub const MAX_FILES: usize = 2_000;

/// Maximum size of all files together.
pub const MAX_BYTES: usize = 64 << 20;

/// Bytes of files that a message contains; the others are fetched.
const INLINE: usize = 1 << 20;

/// Maximum length of a path, bytes.
const MAX_PATH: usize = 500;

/// Maximum length of a name in a path, bytes.
const MAX_NAME: usize = 255;

/// A script with its files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scenario {
    /// Display name.
    pub name: String,
    /// Path of the script in `files`.
    pub entry: String,
    /// All files: by path relative to the scenario's folder, or by URL if the script imports it from the network.
    pub files: BTreeMap<String, Content>,
    /// Further files by path, which are too large for a message: an agent fetches them before it does anything else.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub elsewhere: BTreeMap<String, FileRef>,
    /// Parameters and their default values.
    pub defaults: BTreeMap<String, String>,
}

/// A file by its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRef {
    /// SHA-256 of its bytes in hex.
    pub sha256: String,
    /// Its size.
    pub bytes: usize,
}

impl FileRef {
    /// Refers to a file.
    pub fn new(content: &Content) -> Self {
        Self { sha256: hex(&Sha256::digest(content.bytes())), bytes: content.bytes().len() }
    }

    /// Whether it has a hash, and no larger file than a scenario may have.
    pub fn is_valid(&self) -> bool {
        self.sha256.len() == 64 && self.sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) && self.bytes <= MAX_BYTES
    }
}

/// The bytes of a file: a text or base64 in JSON. Cloning is cheap.
#[derive(Clone, PartialEq, Eq)]
pub struct Content(Arc<[u8]>);

impl Scenario {
    /// Creates a scenario of one script without files.
    pub fn of_script(name: &str, script: &str) -> Self {
        Self {
            name: name.to_owned(),
            entry: SCRIPT.to_owned(),
            files: BTreeMap::from([(SCRIPT.to_owned(), script.into())]),
            elsewhere: BTreeMap::new(),
            defaults: BTreeMap::new(),
        }
    }

    /// Adds a file.
    #[must_use]
    pub fn with_file(mut self, path: &str, content: impl Into<Content>) -> Self {
        self.files.insert(path.to_owned(), content.into());
        self
    }

    /// Adds a default.
    #[must_use]
    pub fn with_default(mut self, name: &str, value: &str) -> Self {
        self.defaults.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Gives a request list its name, and a JavaScript at the top of the folder the name that scripts have always had, so
    /// that its revision stays the same; unless another file imports it.
    #[must_use]
    pub fn with_usual_name(mut self) -> Self {
        let endings = [(".js", SCRIPT), (".toml", REQUESTS)];
        let Some((_, usual)) = endings.into_iter().find(|(ending, _)| self.entry.strip_suffix(ending).is_some()) else {
            return self;
        };
        let is_plain = !self.entry.contains('/') && !self.files.contains_key(usual);
        let is_imported =
            || self.others().filter_map(|(_, file)| file.text()).any(|text| entry::imports(text, &self.entry));
        if is_plain && !is_imported() {
            let script = self.files.remove(&self.entry);
            self.files.extend(script.map(|script| (usual.to_owned(), script)));
            usual.clone_into(&mut self.entry);
        }
        self
    }

    /// Leaves out the largest files if they are too large for a message.
    #[must_use]
    pub fn for_message(mut self) -> Self {
        let mut by_size: Vec<(usize, String)> =
            self.files.iter().map(|(path, content)| (content.bytes().len(), path.clone())).collect();
        by_size.sort();
        let mut all = 0;
        for (bytes, path) in by_size {
            all += bytes;
            if all > INLINE
                && let Some(content) = self.files.remove(&path)
            {
                self.elsewhere.insert(path, FileRef::new(&content));
            }
        }
        self
    }

    /// Returns the text of the script.
    pub fn script(&self) -> &str {
        self.files.get(&self.entry).and_then(Content::text).unwrap_or_default()
    }

    /// Returns the load generators that can execute it, the usual one first.
    pub fn engines(&self) -> Vec<EngineKind> {
        engines(&self.entry, self.elsewhere.contains_key(REQUESTS) || self.request_list().is_some())
    }

    /// Returns its request list. Those of bundled scenarios are not among their files, so that their revisions stay.
    pub fn request_list(&self) -> Option<&str> {
        match self.files.get(REQUESTS) {
            Some(list) => list.text(),
            None => scenarios::request_list(&self.sha256()),
        }
    }

    /// Returns the files other than the script.
    pub fn others(&self) -> impl Iterator<Item = (&String, &Content)> {
        self.files.iter().filter(|(path, _)| **path != self.entry)
    }

    /// Returns the texts of all files that are texts.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.files.values().filter_map(Content::text)
    }

    /// Returns the script and its modules: paths and texts.
    pub fn modules(&self) -> impl Iterator<Item = (&str, &str)> {
        let files = self.files.iter().filter(|(path, _)| is_module(&self.entry, path));
        files.filter_map(|(path, content)| Some((path.as_str(), content.text()?)))
    }

    /// Returns the SHA-256 of entry, files and defaults in hex, which identifies this revision.
    pub fn sha256(&self) -> String {
        let mut hasher = Sha256::new();
        // Scenarios once had one script, of this name. No file has the length that marks another name.
        if self.entry != SCRIPT {
            hasher.update(u64::MAX.to_le_bytes());
        }
        let mut feed = |bytes: &[u8]| {
            hasher.update((bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        if self.entry != SCRIPT {
            feed(self.entry.as_bytes());
        }
        feed(self.files.get(&self.entry).map(Content::bytes).unwrap_or_default());
        feed(self.others().count().to_string().as_bytes());
        for (path, content) in self.others() {
            feed(path.as_bytes());
            feed(content.bytes());
        }
        feed(self.defaults.len().to_string().as_bytes());
        for (name, value) in &self.defaults {
            feed(name.as_bytes());
            feed(value.as_bytes());
        }
        hex(&hasher.finalize())
    }

    /// Explains which file is not acceptable; none if all are. It begins with `files: `.
    pub fn fault(&self) -> Option<String> {
        if let Some(missing) = self.elsewhere.keys().next() {
            return Some(format!("files: {missing:?} could not be fetched"));
        }
        let all: usize = self.files.values().map(|content| content.bytes().len()).sum();
        let mib = |bytes: usize| bytes.div_ceil(1 << 20);
        if self.files.len() > MAX_FILES {
            return Some(format!("files: there are {}; a scenario has at most {MAX_FILES}", self.files.len()));
        }
        if all > MAX_BYTES {
            return Some(format!("files: they have {} MiB; a scenario has at most {}", mib(all), mib(MAX_BYTES)));
        }
        if !self.files.contains_key(&self.entry) || self.entry.starts_with(REMOTE) {
            return Some(format!("files: the script {:?} is not among them", self.entry));
        }
        let mut seen: BTreeMap<String, &str> = BTreeMap::new();
        for path in self.files.keys() {
            if let Err(why) = check_path(path) {
                return Some(format!("files: {path:?}: {why}"));
            }
            if let Some(other) = seen.insert(path.nfc().collect::<String>().to_lowercase(), path) {
                return Some(format!("files: {other:?} and {path:?} are the same name on some file systems"));
            }
        }
        let is_folder = |path: &&String| {
            let below = format!("{path}/");
            self.files.range(below.clone()..).next().is_some_and(|(next, _)| next.starts_with(&below))
        };
        let both = self.files.keys().find(is_folder)?;
        Some(format!("files: {both:?} is a file and a folder"))
    }

    /// Returns the folders above the script, as a prefix of paths.
    pub fn folder(&self) -> &str {
        self.entry.rfind('/').map_or("", |end| &self.entry[..=end])
    }
}

/// Returns the load generators that can execute a scenario with this script, or with a request list in its place.
pub fn engines(entry: &str, has_list: bool) -> Vec<EngineKind> {
    let k6 = (entry != REQUESTS).then_some(EngineKind::K6);
    k6.into_iter().chain(has_list.then_some([EngineKind::Native, EngineKind::Wrk]).into_iter().flatten()).collect()
}

/// Explains why a path can't be that of a file in a scenario.
pub fn check_path(path: &str) -> Result<(), &'static str> {
    let names = path.strip_prefix(REMOTE).unwrap_or(path);
    let is_special = |name: &str| matches!(name, "" | "." | "..");
    match path {
        _ if path.len() > MAX_PATH => Err("the path is too long"),
        _ if path.chars().any(char::is_control) => Err("the path has a control character"),
        _ if path.contains('\\') => Err("the path has a backslash; write it with '/'"),
        _ if path.starts_with('/') => Err("the path is absolute; it must be relative to the folder of the scenario"),
        _ if names.split('/').any(|name| name == "..") => Err("the path leads out of the folder of the scenario"),
        _ if names.split('/').any(is_special) => Err("the path has an empty name or '.' in it"),
        _ if names.split('/').any(|name| name.len() > MAX_NAME) => Err("a name in the path is too long"),
        _ if path.rsplit('/').next() == Some(RESERVED) => Err("this name is reserved"),
        _ => Ok(()),
    }
}

/// Whether a file is the script or one of its modules, and not data.
pub fn is_module(entry: &str, path: &str) -> bool {
    path == entry || MODULES.iter().any(|ending| path.ends_with(ending))
}

impl Content {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text; none if the bytes are not UTF-8.
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.text() {
            Some(text) => text.fmt(f),
            None => write!(f, "{} bytes", self.0.len()),
        }
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().into())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self(text.into_bytes().into())
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written<'a> {
    Text(std::borrow::Cow<'a, str>),
    Binary { base64: String },
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let written = match self.text() {
            Some(text) => Written::Text(text.into()),
            None => Written::Binary { base64: BASE64_STANDARD.encode(self.bytes()) },
        };
        written.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Written::deserialize(from) {
            Ok(Written::Text(text)) => Ok(text.into_owned().into()),
            Ok(Written::Binary { base64 }) => BASE64_STANDARD.decode(base64).map(Self::from).map_err(D::Error::custom),
            Err(_) => Err(D::Error::custom("a file is a text, or {\"base64\": \"…\"}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario() -> Scenario {
        Scenario::of_script("x", "export default 1").with_file("data/a.json", "[]").with_default("A", "1")
    }

    #[test]
    fn a_revision_keeps_the_id_of_the_time_of_one_script() {
        let id = scenario().sha256();
        assert_eq!(id, "9793b33d567fbd36c58635f0c24ebf652b33d8769ce5ae9c2f870d3a00f1c899");
        let entry = "main.ts".to_owned();
        let files =
            BTreeMap::from([(entry.clone(), "export default 1".into()), ("data/a.json".to_owned(), "[]".into())]);
        let other = Scenario { entry, files, ..scenario() };
        assert_ne!(other.sha256(), id);
        assert_ne!(scenario().with_file("data/a.json", vec![0xff]).sha256(), id);
        assert_eq!(Scenario { name: "other".to_owned(), ..scenario() }.sha256(), id);
    }

    #[test]
    fn a_script_at_the_top_has_the_usual_name_unless_it_is_imported() {
        let named = |path: &str, other: &str| {
            let files = BTreeMap::from([(path.to_owned(), "1".into()), ("a.js".to_owned(), other.into())]);
            Scenario { entry: path.to_owned(), files, ..scenario() }.with_usual_name().entry
        };
        assert_eq!(named("mine.js", ""), SCRIPT);
        assert_eq!(named("mine.js", "import './mine.js'"), "mine.js");
        assert_eq!(named("mine.toml", ""), REQUESTS);
        assert_eq!((named("mine.ts", "").as_str(), named("tests/mine.js", "").as_str()), ("mine.ts", "tests/mine.js"));
    }

    #[test]
    fn files_are_text_or_base64_in_json() {
        let all = scenario().with_file("a.jpg", vec![0xff, 0x00]);
        let json = serde_json::to_value(&all).expect("written");
        assert_eq!(json["files"]["data/a.json"], "[]");
        assert_eq!(json["files"]["a.jpg"], serde_json::json!({"base64": "/wA="}));
        assert_eq!(serde_json::from_value::<Scenario>(json).expect("read"), all);
        let fault = serde_json::from_str::<Content>("1").expect_err("a number").to_string();
        assert!(fault.starts_with("a file is a text, or"), "{fault}");
    }

    #[test]
    fn paths_stay_in_the_folder() {
        for path in ["list.json", "a b/ü.csv", ".hidden", "-x", "lib/deep/a.ts", "https://jslib.k6.io/x/1.0/index.js"]
        {
            assert_eq!(check_path(path), Ok(()), "{path}");
        }
        let long = "x".repeat(256);
        for path in [
            "",
            ".",
            "..",
            "/etc/passwd",
            "a/",
            "a//b",
            "./a",
            "../a",
            "a/../../b",
            "a\\b",
            "a\0b",
            "https://../x",
            &long,
        ] {
            assert!(check_path(path).is_err(), "{path:?}");
        }
        assert!(check_path("lib/brewbench-entry.js").is_err());
    }

    #[test]
    fn the_largest_files_are_not_in_a_message() {
        let all = scenario().with_file("big", vec![1; INLINE]).with_file("a.bin", vec![2; 9]);
        assert_eq!(scenario().for_message(), scenario());
        let sent = all.clone().for_message();
        assert_eq!(sent.elsewhere.keys().collect::<Vec<_>>(), ["big"]);
        assert!(sent.elsewhere["big"].is_valid() && sent.elsewhere["big"] == FileRef::new(&all.files["big"]));
        assert_eq!(sent.fault().as_deref(), Some("files: \"big\" could not be fetched"));
        assert!(!FileRef { sha256: "../key".to_owned(), bytes: 1 }.is_valid());
    }

    #[test]
    fn unacceptable_files_are_named() {
        let fault = |scenario: Scenario| scenario.fault().expect("a fault");
        assert_eq!(scenario().fault(), None);
        assert!(fault(scenario().with_file("DATA/A.json", "")).contains("same name"));
        assert!(fault(scenario().with_file("é", "").with_file("e\u{301}", "")).contains("same name"));
        assert!(fault(scenario().with_file("data", "")).contains("is a file and a folder"));
        assert!(fault(scenario().with_file("../x", "")).contains("out of the folder"));
        assert!(
            fault(Scenario { entry: "main.ts".to_owned(), ..scenario() }).contains("\"main.ts\" is not among them")
        );
        assert!(fault(scenario().with_file("big", vec![0; MAX_BYTES])).contains("they have 65 MiB"));
        let many = (0..=MAX_FILES).fold(scenario(), |all, n| all.with_file(&n.to_string(), ""));
        assert!(fault(many).contains("at most 2000"));
    }
}
