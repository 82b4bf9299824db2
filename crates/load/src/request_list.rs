//! Request lists as people write them: a TOML file of few words.
//!
//! ```toml
//! think_time_ms = 10
//!
//! [[request]]
//! path = "/items?limit=10"
//! weight = 9
//! expect = { status = 200, contains = "items" }
//!
//! [[request]]
//! method = "POST"
//! paths = "paths.txt"
//! headers = { content-type = "application/json" }
//! body_file = "item.json"
//! ```

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use crate::plan::{Body, Expect, Fault, HttpVersion, Request, RequestList, Reuse, Tls};

/// Why a file is not a request list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {text}")]
pub struct ListError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and what to do.
    pub text: String,
}

/// The file as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    request: Vec<Spanned<WrittenRequest>>,
    #[serde(default)]
    http: HttpVersion,
    #[serde(default)]
    connection: Reuse,
    #[serde(default)]
    think_time_ms: Option<Spanned<u64>>,
    #[serde(default)]
    tls: Option<Spanned<Tls>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRequest {
    method: Option<Spanned<String>>,
    path: Option<Spanned<String>>,
    paths: Option<Spanned<String>>,
    headers: Option<Spanned<BTreeMap<String, String>>>,
    body: Option<Spanned<String>>,
    body_file: Option<Spanned<String>>,
    weight: Option<Spanned<u32>>,
    expect: Option<Spanned<Expect>>,
}

/// Replaces each `${NAME}` in the text of a request list by a value, as a part of a TOML string. The error is a sentence.
pub fn fill<'a>(text: &str, value: impl Fn(&str) -> Option<&'a str>) -> Result<String, String> {
    let mut parts = text.split("${");
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once('}').ok_or("a `${` without its `}`")?;
        let value = value(name).ok_or_else(|| format!("${{{name}}} has no value: give this parameter a default"))?;
        // What JSON escapes, TOML escapes alike.
        let quoted = serde_json::Value::from(value).to_string();
        filled.push_str(&quoted[1..quoted.len() - 1]);
        filled.push_str(rest);
    }
    Ok(filled)
}

/// Reads a request list. `file` returns the content of a file that it names.
pub fn read(text: &str, file: impl Fn(&str) -> Result<Vec<u8>, String>) -> Result<RequestList, ListError> {
    let error = |at: Range<usize>, fault: String| ListError { line: line(text, at.start), text: fault };
    let written: Written =
        toml::from_str(text).map_err(|fault| error(fault.span().unwrap_or(0..0), message(&fault)))?;
    let mut requests = Vec::with_capacity(written.request.len());
    for request in &written.request {
        let read = request.get_ref().read(&file);
        requests.push(read.map_err(|(at, text)| error(at.unwrap_or(request.span()), text))?);
    }
    let Written { request, http, connection, think_time_ms, tls } = written;
    let spans = [span(think_time_ms.as_ref()), span(tls.as_ref())];
    let list = RequestList {
        requests,
        http,
        connection,
        think_time_ms: think_time_ms.map_or(0, Spanned::into_inner),
        tls: tls.map(Spanned::into_inner).unwrap_or_default(),
    };
    list.check().map_err(|fault| {
        let at = match fault.request.and_then(|number| request.get(number - 1)) {
            Some(request) => request.get_ref().place(&fault).unwrap_or(request.span()),
            None => spans[usize::from(fault.field.starts_with("tls"))].clone().unwrap_or(0..0),
        };
        error(at, fault.to_string())
    })?;
    Ok(list)
}

type Misplaced = (Option<Range<usize>>, String);

impl WrittenRequest {
    fn read(&self, file: impl Fn(&str) -> Result<Vec<u8>, String>) -> Result<Request, Misplaced> {
        let named = |name: &Spanned<String>, field: &str| {
            file(name.get_ref()).map_err(|fault| (Some(name.span()), format!("{field}: {}: {fault}", name.get_ref())))
        };
        let both = |one: &str, other: &str| format!("`{one}` and `{other}` exclude each other: remove one");
        let paths = match (&self.path, &self.paths) {
            (Some(_), Some(paths)) => return Err((Some(paths.span()), both("path", "paths"))),
            (Some(path), None) => vec![path.get_ref().clone()],
            (None, Some(name)) => lines(&named(name, "paths")?)
                .map_err(|text| (Some(name.span()), format!("{}{text}", name.get_ref())))?,
            (None, None) => return Err((None, "path: missing: add `path = \"/\"`".to_owned())),
        };
        let body = match (&self.body, &self.body_file) {
            (Some(_), Some(name)) => return Err((Some(name.span()), both("body", "body_file"))),
            (Some(body), None) => body.get_ref().clone().into_bytes(),
            (None, Some(name)) => named(name, "body_file")?,
            (None, None) => Vec::new(),
        };
        let usual = Request::get("/");
        Ok(Request {
            method: self.method.as_ref().map_or(usual.method, |method| method.get_ref().clone()),
            paths,
            headers: self.headers.iter().flat_map(|all| all.get_ref().clone()).collect(),
            body: Body(body),
            weight: self.weight.as_ref().map_or(usual.weight, |weight| *weight.get_ref()),
            expect: self.expect.as_ref().map(|expect| expect.get_ref().clone()).unwrap_or_default(),
        })
    }

    /// Returns where the field of a fault is.
    fn place(&self, fault: &Fault) -> Option<Range<usize>> {
        match fault.field {
            "method" => span(self.method.as_ref()),
            "paths" => span(self.path.as_ref()).or(span(self.paths.as_ref())),
            "headers" => span(self.headers.as_ref()),
            "weight" => span(self.weight.as_ref()),
            field if field.starts_with("expect") => span(self.expect.as_ref()),
            _ => None,
        }
    }
}

fn span<T>(value: Option<&Spanned<T>>) -> Option<Range<usize>> {
    value.map(Spanned::span)
}

/// Reads a file of paths, one a line. Line breaks may be those of Windows, and empty lines are skipped.
fn lines(content: &[u8]) -> Result<Vec<String>, String> {
    let mut paths = Vec::new();
    for (place, line) in content.split(|&byte| byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let named = |text: &str| format!(", line {}: {text}", place + 1);
        let path = str::from_utf8(line).map_err(|_| named("not UTF-8: percent-encode it"))?;
        if !path.is_empty() {
            crate::plan::check_path(path).map_err(|fault| named(&fault.text))?;
            paths.push(path.to_owned());
        }
    }
    if paths.is_empty() { Err(": there is no path in it".to_owned()) } else { Ok(paths) }
}

/// Returns the number of the line of a byte, from 1.
fn line(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|&byte| byte == b'\n').count() + 1
}

/// Returns the message of the parser without its picture of the line.
fn message(fault: &toml::de::Error) -> String {
    fault.message().replace('\n', ", ")
}
