//! Writes request lists. Pure.

use std::collections::{BTreeMap, HashMap};

use super::{Call, Count};

/// Longest body that stands in the list.
const MAX_BODY: usize = 1024;

/// Longest line of header fields.
const MAX_LINE: usize = 120;

/// Writes a list and the files that it names.
pub(super) fn write(calls: &[(Call, Count)], think_time_ms: u64) -> (String, BTreeMap<String, Vec<u8>>) {
    let (mut files, mut names) = (BTreeMap::new(), HashMap::new());
    let mut parts = Vec::with_capacity(calls.len() + 1);
    parts.extend((think_time_ms > 0).then(|| format!("think_time_ms = {think_time_ms}\n")));
    for (call, count) in calls {
        let mut fields = vec!["[[request]]".to_owned()];
        fields.extend((call.method != "GET").then(|| format!("method = {}", quoted(&call.method))));
        fields.push(format!("path = {}", quoted(&call.path)));
        fields.extend((count.weight > 1).then(|| format!("weight = {}", count.weight)));
        let headers = call.headers.iter().map(|(name, value)| format!("{} = {}", key(name), quoted(value)));
        let headers: Vec<_> = headers.collect();
        let line = format!("headers = {{ {} }}", headers.join(", "));
        let is_table = line.len() > MAX_LINE;
        fields.extend(Some(line).filter(|_| !is_table && !headers.is_empty()));
        match str::from_utf8(&call.body) {
            Ok("") => {}
            Ok(text) if call.fills_body || is_short(text) => fields.push(format!("body = {}", quoted(text))),
            text => {
                let ending = if text.is_ok() { "txt" } else { "bin" };
                let number = names.len() + 1;
                let name = names.entry(&call.body).or_insert_with(|| format!("body-{number}.{ending}"));
                files.insert(name.clone(), call.body.clone());
                fields.push(format!("body_file = {}", quoted(name)));
            }
        }
        fields.extend(count.status.map(|status| format!("expect = {{ status = {status} }}")));
        fields.extend(is_table.then(|| format!("[request.headers]\n{}", headers.join("\n"))));
        parts.push(fields.join("\n") + "\n");
    }
    (parts.join("\n"), files)
}

/// Whether a body reads well in the list.
fn is_short(text: &str) -> bool {
    text.len() <= MAX_BODY && !text.contains("${") && !text.contains(char::is_control)
}

/// Writes a key.
fn key(name: &str) -> String {
    let is_bare = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if is_bare { name.to_owned() } else { quoted(name) }
}

/// Writes a string. One with parameters is in double quotes, as their values are escaped for these.
fn quoted(text: &str) -> String {
    let needs_quotes = text.contains("${") || text.contains('\'') || text.contains(char::is_control);
    if text.contains(['"', '\\']) && !needs_quotes {
        return format!("'{text}'");
    }
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}
