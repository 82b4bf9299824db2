//! Reads HAR 1.2: what a browser or a proxy recorded. Pure.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use url::{Url, form_urlencoded};

use super::{Call, Draft, json, literal};

/// Header fields that the load generator sets, or that are about the client and not about the response.
const OF_THE_CLIENT: &str = "connection content-length dnt expect host keep-alive priority proxy-authorization \
    proxy-connection referer te transfer-encoding upgrade upgrade-insecure-requests user-agent";

#[derive(Deserialize)]
struct Har {
    log: Log,
}

#[derive(Deserialize)]
struct Log {
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    request: Value,
    #[serde(default)]
    response: Option<Response>,
    #[serde(rename = "_resourceType")]
    resource_type: Option<String>,
    #[serde(rename = "_fromCache")]
    from_cache: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Response {
    status: i64,
}

/// Reads a file.
pub(super) fn read(text: &str) -> Result<Draft, String> {
    let har: Har = json(text, "HAR 1.2")?;
    let mut draft = Draft::default();
    for (number, entry) in har.log.entries.iter().enumerate() {
        let place = format!("entry {}", number + 1);
        let status = entry.response.as_ref().and_then(|response| u16::try_from(response.status).ok()).unwrap_or(0);
        match entry.call(status) {
            Ok(call) => {
                if !(200..400).contains(&status) {
                    let what = format!("it was answered with {status}, but the list expects a status below 400");
                    draft.left_out.add(&place, &what, 1);
                }
                draft.add(&place, call, Some(status).filter(|status| (200..400).contains(status)));
            }
            Err(why) => draft.left_out.add(&place, &why, 1),
        }
    }
    Ok(draft)
}

/// Returns a text of an object, or an empty one.
fn text<'a>(of: &'a Value, key: &str) -> &'a str {
    of.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the names and values of a list.
fn pairs<'a>(of: &'a Value, key: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    of.get(key).and_then(Value::as_array).into_iter().flatten().map(|pair| (text(pair, "name"), text(pair, "value")))
}

impl Entry {
    /// Returns the request, or why it is none of a list.
    fn call(&self, status: u16) -> Result<Call, String> {
        let (request, url) = (&self.request, text(&self.request, "url"));
        let mut fields = pairs(request, "headers");
        let mut asks = || fields.any(|(name, _)| name.eq_ignore_ascii_case("access-control-request-method"));
        let why = match self.resource_type.as_deref().unwrap_or_default() {
            "websocket" => "a WebSocket",
            _ if url.starts_with("ws") || status == 101 => "a WebSocket",
            "eventsource" => "a stream of events, which does not end",
            "preflight" => "a preflight request of a browser",
            _ if text(request, "method") == "OPTIONS" && asks() => "a preflight request of a browser",
            _ if self.from_cache.is_some() => "the browser took it from its cache",
            _ if status == 0 => "it was aborted: there is no response",
            _ if !url.starts_with("http") => "not a URL of HTTP",
            _ => "",
        };
        if !why.is_empty() {
            return Err(why.to_owned());
        }
        let url = Url::parse(url).map_err(|fault| format!("not a URL: {fault}"))?;
        let mut call = Call { method: text(request, "method").to_owned(), ..Call::get(&url)? };
        for (name, value) in pairs(request, "headers") {
            let name = name.to_ascii_lowercase();
            if !(OF_THE_CLIENT.split(' ').any(|of_client| of_client == name)
                || name.starts_with(':')
                || name.starts_with("sec-"))
            {
                call.header(&name, literal(value)?);
            }
        }
        if let Some(data) = request.get("postData").filter(|data| data.is_object()) {
            call.body = body(data)?;
            let kind = literal(text(data, "mimeType"))?;
            if !(kind.is_empty() || call.body.is_empty() || call.headers.contains_key("content-type")) {
                call.header("content-type", kind);
            }
        }
        Ok(call)
    }
}

fn body(data: &Value) -> Result<Vec<u8>, String> {
    let sent = text(data, "text");
    if [text(data, "encoding"), text(data, "_encoding")].contains(&"base64") {
        return STANDARD.decode(sent).map_err(|_| "its body is not base64".to_owned());
    }
    let is_form = !text(data, "mimeType").starts_with("multipart/");
    if !is_form && pairs(data, "params").next().is_some() {
        return Err("its body is a form with several parts, which was not recorded as it was sent".to_owned());
    }
    let form = || form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs(data, "params")).finish();
    Ok(if sent.is_empty() { form() } else { sent.to_owned() }.into_bytes())
}
