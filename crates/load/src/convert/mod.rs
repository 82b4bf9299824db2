//! Makes request lists from what people already have: a URL, a HAR file, an OpenAPI description, a k6 script. Pure.
//!
//! What is not surely understood is not taken over, and is named. Secrets become parameters.

mod har;
mod k6;
mod left_out;
mod openapi;
#[cfg(test)]
mod tests;
mod written;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use brewbench_wire::variables;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use url::{Url, form_urlencoded::byte_serialize};

use crate::plan::{Expect, MAX_REQUESTS, Request};
use crate::request_list;
use left_out::LeftOut;

/// Longest text that is converted.
const MAX_SOURCE: usize = 64 << 20;

/// A request list that was made from something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// The request list, TOML.
    pub list: String,
    /// The files that it names.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The parameters that the list needs, with their usual values. Secrets have none.
    pub parameters: BTreeMap<String, Option<String>>,
    /// The target, if the source names one.
    pub base_url: Option<String>,
    /// What could not be taken over, or needs attention: sentences with the places.
    pub left_out: Vec<String>,
}

/// Converts a URL, or the text of a file. `name` is its name in messages. The error is a sentence.
pub fn convert(source: &str, name: &str) -> Result<Converted, String> {
    let converted = if source.len() > MAX_SOURCE {
        Err("it has more than 64 MiB".to_owned())
    } else {
        read(source.trim_start_matches('\u{feff}').trim())
    };
    converted.map_err(|fault| format!("{name}: {fault}"))
}

/// Recognises the kind of a source and converts it.
fn read(source: &str) -> Result<Converted, String> {
    #[derive(Deserialize)]
    struct Keys {
        log: Option<IgnoredAny>,
    }
    let begins = |start: &str| source.get(..start.len()).is_some_and(|text| text.eq_ignore_ascii_case(start));
    let is_yaml_key = |line: &str| {
        let key = line.split(':').next().unwrap_or_default().trim_end().trim_matches(['"', '\'']);
        line.contains(':') && (key == "openapi" || key == "swagger")
    };
    if (begins("http://") || begins("https://")) && !source.contains(char::is_whitespace) {
        let mut draft = Draft::default();
        let url = Url::parse(source).map_err(|fault| format!("not a URL: {fault}"))?;
        draft.add("the URL", Call::get(&url)?, None);
        draft.finish()
    } else if source.starts_with('{') {
        match json::<Keys>(source, "JSON")?.log {
            Some(_) => har::read(source)?.finish(),
            None => openapi::read(&json(source, "JSON")?)?.finish(),
        }
    } else if source.lines().any(is_yaml_key) {
        let fault = "not YAML, or a key occurs twice, or it is too large: JSON may be larger";
        let document = serde_saphyr::from_str(source).map_err(|error| match error.location() {
            Some(at) => format!("line {}: {fault}", at.line()),
            None => fault.to_owned(),
        })?;
        openapi::read(&document)?.finish()
    } else if source.contains("k6/http") {
        k6::read(source).and_then(Draft::finish).map_err(|fault| format!("{fault}: run the script with k6 instead"))
    } else {
        Err("neither a URL with http:// or https://, nor HAR, OpenAPI 3 or a k6 script".to_owned())
    }
}

/// Reads JSON. The error does not quote it: it may contain secrets.
fn json<'a, T: Deserialize<'a>>(text: &'a str, kind: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|fault| {
        let what = if fault.is_eof() { "it ends too early".to_owned() } else { format!("not {kind}") };
        format!("line {}, column {}: {what}", fault.line(), fault.column())
    })
}

/// A request as it is sent. In its texts `${NAME}` is a parameter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Call {
    /// The target.
    base: String,
    method: String,
    path: String,
    /// By their names in lower case.
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
    /// Whether `${NAME}` is a parameter in the body, too.
    fills_body: bool,
}

impl Call {
    /// Creates a `GET`.
    fn get(url: &Url) -> Result<Self, String> {
        if !url.username().is_empty() || url.password().is_some() {
            return Err("the URL contains a user: use the header field `authorization`".to_owned());
        }
        let path = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
        literal(&path)?;
        Ok(Self { base: url.origin().ascii_serialization(), method: "GET".to_owned(), path, ..Self::default() })
    }

    /// Adds a header field.
    fn header(&mut self, name: &str, value: &str) {
        let all = self.headers.entry(name.to_ascii_lowercase());
        all.and_modify(|all| *all = format!("{all}, {value}")).or_insert_with(|| value.to_owned());
    }

    /// Replaces secrets by parameters. Returns the names of what they are in, and the parameters that were there.
    fn hide_secrets(&mut self) -> (Vec<String>, BTreeSet<String>) {
        let (mut hidden, mut known) = (Vec::new(), BTreeSet::new());
        let mut hide = |name: &str, value: &str| {
            if value.is_empty() || !is_secret(name) {
                return None;
            }
            known.extend(parameters(value).map(str::to_owned));
            let is_hidden = !is_parameter(value) || value == placeholder(name);
            is_hidden.then(|| {
                hidden.push(name.to_owned());
                placeholder(name)
            })
        };
        for (name, value) in &mut self.headers {
            if let Some(placeholder) = hide(name, value) {
                *value = placeholder;
            }
        }
        if let Some((path, query)) = self.path.split_once('?') {
            let shown = |pair: &str| {
                let named = pair.split_once('=').and_then(|(name, value)| Some((name, hide(name, value)?)));
                named.map_or_else(|| pair.to_owned(), |(name, hidden)| format!("{name}={hidden}"))
            };
            self.path = format!("{path}?{}", query.split('&').map(shown).collect::<Vec<_>>().join("&"));
        }
        (hidden, known)
    }
}

/// Refuses a text that a request list can not contain.
fn literal(text: &str) -> Result<&str, String> {
    if text.contains("${") {
        Err("it contains `${`, which begins a parameter in a request list".to_owned())
    } else {
        Ok(text)
    }
}

/// Returns a value that is neither a list nor an object as text.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

/// Percent-encodes a text for a path or a query.
fn encoded(text: &str) -> String {
    byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
}

/// Returns the parameter that stands for the value of a header field or a part of a query.
fn placeholder(name: &str) -> String {
    let usual = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("${{{}}}", name.chars().map(usual).collect::<String>())
}

/// Parts of the names of secrets, besides those of parameters that are secrets.
const SECRETS: [&str; 10] = [
    "apikey",
    "authentication",
    "authorization",
    "cookie",
    "jwt",
    "password",
    "secret",
    "session",
    "signature",
    "token",
];

/// Whether the value of a header field or a part of a query is a secret.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    let mut words = name.split('_');
    SECRETS.iter().any(|part| name.contains(part)) || words.any(|word| word == "auth") || variables::is_secret(&name)
}

/// Whether the value of a secret is a parameter, maybe after the kind of an authorization.
fn is_parameter(value: &str) -> bool {
    let kind = ["Bearer ", "Basic ", "Token "].iter().find_map(|kind| value.strip_prefix(kind));
    let name = kind.unwrap_or(value).strip_prefix("${").unwrap_or_default();
    !name.is_empty() && name.find('}') == Some(name.len() - 1)
}

/// Returns the names of the parameters in a text.
fn parameters(text: &str) -> impl Iterator<Item = &str> {
    text.split("${").skip(1).filter_map(|rest| Some(rest.split_once('}')?.0))
}

/// How often a call is made.
#[derive(Debug)]
struct Count {
    /// Where it is made first: its number, and in words.
    first: usize,
    place: String,
    weight: u32,
    /// The status of all responses.
    status: Option<u16>,
}

/// What was read from a source.
#[derive(Debug, Default)]
struct Draft {
    calls: HashMap<Call, Count>,
    left_out: LeftOut,
    think_time_ms: u64,
    /// Usual values of parameters.
    defaults: BTreeMap<String, String>,
    /// Parameters without a usual value.
    secrets: BTreeSet<String>,
}

impl Draft {
    /// Adds a call, or leaves it out if it can't be sent.
    fn add(&mut self, place: &str, mut call: Call, status: Option<u16>) {
        let (hidden, known) = call.hide_secrets();
        self.secrets.extend(known);
        for name in hidden {
            let parameter = placeholder(&name);
            let parameter = parameter.trim_matches(['$', '{', '}']);
            self.left_out.add(place, &format!("`{name}` is a secret: give it as the parameter {parameter}"), 1);
        }
        let body = String::from_utf8_lossy(&call.body).to_ascii_lowercase();
        if SECRETS.iter().any(|word| body.contains(word)) {
            self.left_out.add(place, "its body may contain a secret: check it", 1);
        }
        let request = Request {
            method: call.method.clone(),
            headers: call.headers.clone().into_iter().collect(),
            expect: Expect { status, ..Expect::default() },
            ..Request::get(&call.path)
        };
        if let Err(fault) = request.check() {
            return self.left_out.add(place, &fault.to_string(), 1);
        }
        let first = self.calls.len();
        let new = || Count { first, place: place.to_owned(), weight: 0, status };
        let count = self.calls.entry(call).or_insert_with(new);
        count.weight = count.weight.saturating_add(1);
        count.status = count.status.filter(|known| Some(*known) == status);
    }

    /// Writes the list, and reads it again.
    fn finish(mut self) -> Result<Converted, String> {
        let mut calls: Vec<_> = self.calls.drain().collect();
        calls.sort_unstable_by_key(|(_, count)| count.first);
        let mut bases: HashMap<&str, u64> = HashMap::new();
        for (call, count) in &calls {
            *bases.entry(&call.base).or_default() += u64::from(count.weight);
        }
        let best = bases.values().copied().max().unwrap_or_default();
        let base = calls.iter().map(|(call, _)| &call.base).find(|base| bases[base.as_str()] == best);
        let base = base.cloned().unwrap_or_default();
        calls.retain(|(call, count)| {
            if call.base != base {
                self.left_out.add(&count.place, &format!("another target: {}", call.base), count.weight);
            }
            call.base == base
        });
        if calls.len() > MAX_REQUESTS {
            calls.sort_by_key(|(_, count)| Reverse(count.weight));
            for (_, count) in calls.drain(MAX_REQUESTS..) {
                let text = format!("not one of the {MAX_REQUESTS} most frequent requests");
                self.left_out.add(&count.place, &text, 1);
            }
            calls.sort_unstable_by_key(|(_, count)| count.first);
        }
        let left_out = self.left_out.sentences();
        if calls.is_empty() {
            let why = left_out.first().map_or("there is none", String::as_str);
            return Err(format!("no request can be taken over: {why}"));
        }
        let (list, files) = written::write(&calls, self.think_time_ms);
        let file = |name: &str| files.get(name).cloned().ok_or_else(|| "is missing".to_owned());
        let filled = request_list::fill(&list, |_| Some("x"))?;
        request_list::read(&filled, file).map_err(|fault| format!("it makes no request list: {fault}"))?;
        let default = |name: &str| self.defaults.get(name).filter(|_| !self.secrets.contains(name) && !is_secret(name));
        let parameters = parameters(&list).map(|name| (name.to_owned(), default(name).cloned())).collect();
        let filled = request_list::fill(&base, |name| default(name).map(String::as_str));
        let base_url = filled.ok().filter(|base| crate::target::Target::parse(base).is_ok());
        Ok(Converted { list, files, parameters, base_url, left_out })
    }
}
