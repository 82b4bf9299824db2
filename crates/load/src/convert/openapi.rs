//! Reads OpenAPI 3: one request for each operation whose examples say what to send. Pure.

use std::collections::BTreeMap;

use serde_json::Value;
use url::{Url, form_urlencoded::Serializer};

use super::{Call, Draft, encoded, literal, placeholder, scalar};
use crate::target::Target;

const METHODS: [&str; 8] = ["get", "head", "post", "put", "patch", "delete", "options", "trace"];

/// Maximum number of references to references.
const MAX_REFERENCES: usize = 32;

/// What is said of a reference that can't be followed.
const NO_END: &str = "a $ref has no end, or leads out of the document";

/// A document.
struct Api<'a> {
    document: &'a Value,
    base: String,
    /// The path of the server, if the document does not name its host.
    prefix: String,
}

/// Reads a document.
pub(super) fn read(document: &Value) -> Result<Draft, String> {
    let version = ["swagger", "openapi"].iter().find_map(|key| scalar(document.get(key)?));
    match version.as_deref() {
        Some(version) if version.starts_with("3.") => {}
        Some(_) => return Err("a version of OpenAPI other than 3: convert it first".to_owned()),
        None => return Err("neither HAR nor OpenAPI 3".to_owned()),
    }
    let mut draft = Draft::default();
    let url = server(document);
    let (base, prefix) = if url.starts_with('/') || url.is_empty() { ("", &*url) } else { (&*url, "") };
    if !base.is_empty() && Target::parse(base).is_err() {
        draft.left_out.add("servers", "the first one has no URL with a host", 1);
    }
    let api = Api { document, base: base.to_owned(), prefix: prefix.to_owned() };
    for (path, item) in document.get("paths").and_then(Value::as_object).into_iter().flatten() {
        let resolved = api.resolve(item);
        if resolved.is_none() {
            draft.left_out.add(path, NO_END, 1);
        }
        for (method, item) in METHODS.iter().filter_map(|method| Some((*method, resolved?))) {
            let Some(operation) = item.get(method) else { continue };
            let place = format!("{} {path}", method.to_uppercase());
            match api.call(item, operation, method, path) {
                Ok(call) => draft.add(&place, call, status(operation)),
                Err(why) => draft.left_out.add(&place, &why, 1),
            }
        }
    }
    Ok(draft)
}

/// Returns the URL or the path of the first server.
fn server(document: &Value) -> String {
    let text = |path: &str| document.pointer(path).and_then(scalar).unwrap_or_default();
    let mut url = text("/servers/0/url");
    let variables = document.pointer("/servers/0/variables").and_then(Value::as_object);
    for name in variables.into_iter().flat_map(|all| all.keys()) {
        url = url.replace(&format!("{{{name}}}"), &text(&format!("/servers/0/variables/{name}/default")));
    }
    url.trim_end_matches('/').to_owned()
}

impl<'a> Api<'a> {
    /// Follows references within the document.
    fn resolve(&self, mut value: &'a Value) -> Option<&'a Value> {
        for _ in 0..MAX_REFERENCES {
            let Some(reference) = value.get("$ref") else { return Some(value) };
            value = self.document.pointer(reference.as_str()?.strip_prefix('#')?)?;
        }
        None
    }

    fn call(&self, item: &'a Value, operation: &'a Value, method: &str, path: &str) -> Result<Call, String> {
        if item.get("servers").or(operation.get("servers")).is_some() {
            return Err("it has servers of its own".to_owned());
        }
        let mut call = Call { base: self.base.clone(), method: method.to_uppercase(), ..Call::default() };
        let mut path = format!("{}{}", self.prefix, literal(path)?);
        let mut query = Vec::new();
        for ((place, name), parameter) in self.parameters(item, operation)? {
            let is_required = place == "path" || parameter.get("required") == Some(&Value::Bool(true));
            let Some(texts) = self.example(parameter, is_required).and_then(|value| texts(parameter, value)) else {
                if is_required {
                    return Err(format!("the {place} parameter `{name}` has no example that can be written"));
                }
                continue;
            };
            let values: Vec<_> = texts.iter().map(|text| encoded(text)).collect();
            let is_joined = parameter.get("explode") == Some(&Value::Bool(false));
            match place {
                "path" => path = path.replace(&format!("{{{name}}}"), &values.join(",")),
                "query" if is_joined => query.push(format!("{}={}", encoded(name), values.join(","))),
                "query" => query.extend(values.iter().map(|value| format!("{}={value}", encoded(name)))),
                "header" => call.header(name, literal(&texts.join(","))?),
                _ => call.header("cookie", "a secret"),
            }
        }
        if path.contains(['{', '}']) {
            return Err("its path has a parameter that is not described".to_owned());
        }
        self.add_security(operation, &mut call, &mut query);
        let url = Url::parse(&format!("http://localhost{path}")).map_err(|_| "its path is not one of a URL")?;
        call.path = [url.path(), &query.join("&")].join(if query.is_empty() { "" } else { "?" });
        if method != "get" {
            let (kind, body) = self.body(operation).ok_or("it has no example of a body")?;
            call.header("content-type", literal(kind)?);
            call.body = body.into_bytes();
        }
        Ok(call)
    }

    /// Returns the parameters by place and name; those of an operation replace those of its path.
    fn parameters(
        &self,
        item: &'a Value,
        operation: &'a Value,
    ) -> Result<BTreeMap<(&'a str, &'a str), &'a Value>, String> {
        let mut all = BTreeMap::new();
        for parameter in [item, operation].iter().filter_map(|of| of.get("parameters")?.as_array()).flatten() {
            let parameter = self.resolve(parameter).ok_or(NO_END)?;
            let text = |key: &str| parameter.get(key).and_then(Value::as_str).ok_or("a parameter has no name");
            let (place, name) = (text("in")?, text("name")?);
            // These are described elsewhere.
            let is_other = ["accept", "authorization", "content-type"].contains(&&*name.to_ascii_lowercase());
            if !(place == "header" && is_other) {
                all.insert((place, name), parameter);
            }
        }
        Ok(all)
    }

    /// Returns the example of a parameter or a body. A value that is no example is only returned if one is required.
    fn example(&self, of: &'a Value, is_required: bool) -> Option<&'a Value> {
        let named = || self.resolve(of.get("examples")?.as_object()?.values().next()?)?.get("value");
        let schema = of.get("schema").and_then(|schema| self.resolve(schema));
        let paths = ["/example", "/examples/0", "/default", "/enum/0", "/const"];
        let paths = if is_required { &paths[..] } else { &paths[..2] };
        of.get("example").or_else(named).or_else(|| paths.iter().find_map(|path| schema?.pointer(path)))
    }

    /// Returns the example of a body with its type; of JSON, if there is one.
    fn body(&self, operation: &'a Value) -> Option<(&'a str, String)> {
        let content = self.resolve(operation.get("requestBody")?)?.get("content")?.as_object()?;
        let mut kinds: Vec<_> = content.iter().collect();
        kinds.sort_by_key(|(kind, _)| !kind.contains("json"));
        kinds.into_iter().find_map(|(kind, media)| {
            let is_json = kind.contains("json");
            let body = match self.example(media, true)? {
                // JSON as text is usual in descriptions.
                Value::String(text) if !is_json || text.trim_start().starts_with(['{', '[']) => text.clone(),
                value if is_json => value.to_string(),
                Value::Object(fields) if kind == "application/x-www-form-urlencoded" => {
                    let pairs = fields.iter().map(|(name, value)| Some((name, scalar(value)?)));
                    Serializer::new(String::new()).extend_pairs(pairs.collect::<Option<Vec<_>>>()?).finish()
                }
                _ => return None,
            };
            Some((kind.as_str(), body))
        })
    }

    /// Adds parameters for the secrets of an operation, unless it may be sent without.
    fn add_security(&self, operation: &'a Value, call: &mut Call, query: &mut Vec<String>) {
        let all = operation.get("security").or(self.document.get("security")).and_then(Value::as_array);
        let all: Vec<_> = all.into_iter().flatten().filter_map(Value::as_object).collect();
        let schemes = all.first().filter(|_| !all.iter().any(|schemes| schemes.is_empty()));
        for name in schemes.into_iter().flat_map(|schemes| schemes.keys()) {
            let schemes = self.document.pointer("/components/securitySchemes");
            let scheme = schemes.and_then(|schemes| self.resolve(schemes.get(name)?));
            let text = |key: &str| scheme.and_then(|scheme| scheme.get(key)?.as_str()).unwrap_or_default();
            match (text("type"), text("in"), text("name")) {
                ("http" | "oauth2" | "openIdConnect", ..) => call.header("authorization", "a secret"),
                ("apiKey", "header", name) => call.header(name, &placeholder(name)),
                ("apiKey", "query", name) => query.push(format!("{}={}", encoded(name), placeholder(name))),
                ("apiKey", ..) => call.header("cookie", "a secret"),
                _ => {}
            }
        }
    }
}

/// Returns the only status of success that is described.
fn status(operation: &Value) -> Option<u16> {
    let described = operation.get("responses")?.as_object()?.keys();
    let mut good = described.filter(|status| status.starts_with(['2', '3']) || *status == "default");
    good.next()?.parse().ok().filter(|_| good.next().is_none())
}

/// Returns the texts of a value of a parameter: several of an array.
fn texts(parameter: &Value, value: &Value) -> Option<Vec<String>> {
    let is_usual = parameter.get("style").is_none_or(|style| style == "form" || style == "simple");
    let items = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    items.iter().map(scalar).collect::<Option<Vec<_>>>().filter(|texts| is_usual && !texts.is_empty())
}
