//! The address of the target in scripts that do not read `BASE_URL`. Pure.
//!
//! Scripts read it from variables of any name, in several forms, or have it as a constant. A default says what stands
//! for it: `API_URL={base_url}`, `MY_HOST={host}:{port}`, or `http://localhost:8080={base_url}` for a constant. The
//! agent fills in the address of a run.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use url::Url;

use super::{Content, REQUESTS, Scenario, imports, is_module};
use crate::variables;

/// The whole address: `http://127.0.0.1:8080`.
pub const BASE_URL: &str = "{base_url}";

/// The variable with the address, which a script reads that was written for this program.
const VARIABLE: &str = "BASE_URL";

/// Its host.
const HOST: &str = "{host}";

/// Its port.
const PORT: &str = "{port}";

/// Words in the names of variables that are addresses.
const WORDS: [&str; 11] =
    ["URL", "URI", "HOST", "HOSTNAME", "ORIGIN", "ENDPOINT", "ADDRESS", "ADDR", "SERVER", "DOMAIN", "BASE"];

/// A part of a script that may be the target's address, and the default that says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Address {
    /// The name of a variable, or an origin.
    pub name: String,
    /// The default that makes it the target's address.
    pub default: String,
}

/// Whether the key of a default is an origin that stands for the target's address.
pub fn is_origin(key: &str) -> bool {
    origin(key).is_some_and(|origin| origin == key)
}

/// Whether a text contains a part of the target's address.
pub fn is_address(text: &str) -> bool {
    [BASE_URL, HOST, PORT].iter().any(|part| text.contains(part))
}

/// Whether runs of a scenario get the target's address.
fn has_address(scenario: &Scenario) -> bool {
    let is_read = |text: &str| text.split(|c| !variables::is_of_name(c)).any(|word| word == VARIABLE);
    scenario.defaults.values().any(|value| is_address(value)) || scenario.modules().any(|(_, text)| is_read(text))
}

/// Finds what may be the target's address in a scenario; none if its runs get the address.
pub fn find(scenario: &Scenario) -> Option<Vec<Address>> {
    // A request list has paths only.
    if scenario.entry == REQUESTS || has_address(scenario) {
        return None;
    }
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let mut alternatives = BTreeSet::new();
    for (_, text) in scenario.modules() {
        for (name, alternative) in variables::alternatives(text) {
            let default = default_for(name, alternative);
            alternatives.extend(alternative.and_then(origin));
            found.extend(default.map(|default| (name.to_owned(), default)));
        }
    }
    let constants = scenario.modules().flat_map(|(_, text)| constants(text));
    let constants = constants.filter(|origin| !alternatives.contains(origin));
    found.extend(constants.map(|origin| (origin.to_owned(), BASE_URL.to_owned())));
    found.retain(|name, _| !scenario.defaults.contains_key(name));
    Some(found.into_iter().map(|(name, default)| Address { name, default }).collect())
}

/// Returns the default that makes a variable the target's address; none if it does not look like one.
fn default_for(name: &str, alternative: Option<&str>) -> Option<String> {
    if let Some(origin) = alternative.and_then(origin) {
        let rest = alternative?[origin.len()..].trim_end_matches('/');
        return Some(format!("{BASE_URL}{rest}"));
    }
    let upper = name.to_ascii_uppercase();
    let has = |words: &[&str]| upper.split('_').any(|part| words.contains(&part));
    match alternative.map(|text| text.rsplit_once(':').is_some()) {
        _ if has(&["PORT"]) => Some(PORT.to_owned()),
        _ if !has(&WORDS) => None,
        _ if has(&["URL", "URI", "ORIGIN", "ENDPOINT", "BASE"]) => Some(BASE_URL.to_owned()),
        Some(false) => Some(HOST.to_owned()),
        _ => Some(format!("{HOST}:{PORT}")),
    }
}

/// Returns the origin that a text begins with: `http://localhost:8080`.
fn origin(text: &str) -> Option<&str> {
    let scheme = ["http://", "https://"].into_iter().find(|scheme| text.starts_with(scheme))?;
    let is_host = |letter: char| letter.is_ascii_alphanumeric() || ".-:[]_".contains(letter);
    let end = text[scheme.len()..].find(|letter| !is_host(letter)).map_or(text.len(), |end| scheme.len() + end);
    Some(&text[..end]).filter(|origin| origin.len() > scheme.len() && Url::parse(origin).is_ok())
}

/// Returns the origins at the beginning of the strings of a module.
fn constants(text: &str) -> impl Iterator<Item = &str> {
    let imported: BTreeSet<&str> = imports::modules(text).map(|(_, module)| module).collect();
    let strings = text.match_indices(['\'', '"', '`']).map(|(at, _)| &text[at + 1..]);
    let own = strings.filter(move |string| !imported.iter().any(|module| string.starts_with(module)));
    own.filter_map(origin)
}

/// Fills the address of a run into a text.
pub fn fill(text: &str, base_url: &str) -> String {
    if !is_address(text) {
        return text.to_owned();
    }
    let url = Url::parse(base_url).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
    let port = url.as_ref().and_then(Url::port_or_known_default).unwrap_or_default().to_string();
    text.replace(BASE_URL, base_url.trim_end_matches('/')).replace(HOST, host).replace(PORT, &port)
}

/// Replaces the origins that stand for the target by its address.
#[must_use]
pub fn replaced(scenario: &Scenario, base_url: &str) -> Scenario {
    let origins: Vec<&String> = scenario.defaults.keys().filter(|key| is_origin(key)).collect();
    let mut changed = scenario.clone();
    if origins.is_empty() {
        return changed;
    }
    for (path, content) in &mut changed.files {
        if let Some(text) = content.text().filter(|_| is_module(&scenario.entry, path)) {
            let text = origins.iter().fold(text.to_owned(), |text, origin| replace(&text, origin, base_url));
            *content = Content::from(text);
        }
    }
    changed
}

/// Replaces an origin where it is whole: `http://a:80` is not in `http://a:8080`.
fn replace(text: &str, from: &str, base_url: &str) -> String {
    let mut all = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(from) {
        let is_whole = origin(&rest[at..]) == Some(from);
        all.push_str(&rest[..at]);
        all.push_str(if is_whole { base_url.trim_end_matches('/') } else { from });
        rest = &rest[at + from.len()..];
    }
    all + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(script: &str) -> Vec<String> {
        let found = find(&Scenario::of_script("x", script)).into_iter().flatten();
        found.map(|Address { name, default }| format!("{name}={default}")).collect()
    }

    #[test]
    fn variables_and_constants_that_may_be_the_address_are_found() {
        assert_eq!(found("http.get(`${__ENV.API_URL}/x`)"), ["API_URL={base_url}"]);
        assert_eq!(found("http.get(`http://${__ENV.MY_HOST}/x`)"), ["MY_HOST={host}:{port}"]);
        assert_eq!(found("const h = __ENV.HOST || 'localhost', p = __ENV.PORT || 80;"), ["HOST={host}", "PORT={port}"]);
        assert_eq!(found("const h = __ENV.TARGET ?? \"http://localhost:8080/api/\";"), ["TARGET={base_url}/api"]);
        assert_eq!(found("http.get('http://localhost:8080/x')"), ["http://localhost:8080={base_url}"]);
        assert_eq!(found("import x from 'https://jslib.k6.io/x.js'; require(\"https://a.b/c.js\")"), [""; 0]);
        assert_eq!(found("http.get(`${__ENV.BASE_URL}/${__ENV.API_URL}`)"), [""; 0], "it has its address");
        assert_eq!(found("sleep(__ENV.PAUSE || 1); // http://localhost"), [""; 0]);
    }

    #[test]
    fn a_default_makes_it_the_address() {
        let scenario = Scenario::of_script("x", "http.get(__ENV.API_URL)").with_default("API_URL", "{base_url}/v1");
        assert_eq!(find(&scenario), None);
        assert_eq!(fill("{base_url}/v1", "http://127.0.0.1:81/"), "http://127.0.0.1:81/v1");
        assert_eq!(fill("{host}:{port}", "https://[fd00::1]"), "[fd00::1]:443");
        assert_eq!(fill("{hosts}", "http://a"), "{hosts}");
    }

    #[test]
    fn only_whole_origins_are_replaced() {
        let script = "http.get('http://a:80/x'); http.get(`http://a:8080/y`); 'http://a:80'";
        let scenario = Scenario::of_script("x", script).with_file("a.json", "http://a:80/");
        let scenario = scenario.with_default("http://a:80", BASE_URL);
        assert!(is_origin("http://a:80") && !is_origin("http://a:80/x") && !is_origin("API_URL"));
        let changed = replaced(&scenario, "http://127.0.0.1:9");
        let expected = "http.get('http://127.0.0.1:9/x'); http.get(`http://a:8080/y`); 'http://127.0.0.1:9'";
        assert_eq!((changed.script(), changed.files["a.json"].text()), (expected, Some("http://a:80/")));
    }
}
