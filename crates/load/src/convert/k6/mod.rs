//! Reads simple k6 scripts without executing them: requests with constant URLs, header fields and bodies. Pure.

mod places;
mod tokens;
mod values;

use std::collections::HashMap;

use serde_json::Value;

use super::{Call, Draft, encoded, scalar};
use crate::target::Target;
use tokens::{Kind, one_of};
use values::Script;

/// Parameters of a request that change nothing of what is sent.
const WITHOUT_EFFECT: &str = "redirects responseCallback responseType tags timeout";

/// Modules that send nothing but the requests of `k6/http`.
const QUIET: &str = "k6 k6/http k6/metrics k6/data k6/execution k6/encoding k6/crypto";

/// Longest script: its tokens take much more memory.
const MAX_SCRIPT: usize = 8 << 20;

/// A request of a script.
struct Found<'a> {
    at: usize,
    call: Result<Call, String>,
    /// The variable that has the response.
    response: Option<&'a str>,
    status: Option<u16>,
}

/// Reads a script. The error is a sentence.
pub(super) fn read(script: &str) -> Result<Draft, String> {
    if script.len() > MAX_SCRIPT {
        return Err("the script has more than 8 MiB".to_owned());
    }
    let script = script.replace("\r\n", "\n");
    let script = Script::new(tokens::split(&script)?);
    let mut draft = Draft::default();
    let module = script.tokens.iter().position(|token| matches!(&token.kind, Kind::Text(text) if text == "k6/http"));
    let http = module.filter(|at| script.word_before(*at) == Some("from")).and_then(|at| script.word_before(at - 1));
    let mut found = script.requests(http.ok_or("it has no line like `import http from 'k6/http'`")?);
    let unclear = script.read_checks(&mut found);
    let mut sent = 0;
    for Found { at, call, status, .. } in found {
        let (place, reasons) = (script.place(at), script.reasons(at));
        match call {
            _ if reasons.is_once => draft.left_out.add(&place, "k6 sends it once, before or after the load", 1),
            Err(why) => draft.left_out.add(&place, &why, 1),
            Ok(call) => {
                if reasons.is_repeated {
                    draft.left_out.add(&place, "a request in a loop or a function is taken once", 1);
                }
                if reasons.is_conditional {
                    draft.left_out.add(&place, "a request under a condition is always sent", 1);
                }
                draft.add(&place, call, status);
                sent += 1;
            }
        }
    }
    for at in unclear {
        draft.left_out.add(&script.place(at), "a check other than of one status of a request", 1);
    }
    script.read_sleep(sent, &mut draft);
    script.name_others(&mut draft);
    draft.defaults = script.defaults.into_inner();
    Ok(draft)
}

impl<'a> Script<'a> {
    /// Returns a place in words.
    fn place(&self, at: usize) -> String {
        format!("line {}", self.tokens[at].line)
    }

    /// Names what else is not taken over: options, other modules, early ends.
    fn name_others(&self, draft: &mut Draft) {
        for (at, token) in self.tokens.iter().enumerate() {
            let word = self.word_before(at).unwrap_or_default();
            let what = match &token.kind {
                Kind::Text(module) if one_of("from import", word) && !one_of(QUIET, module) => {
                    format!("what the module `{module}` does is not seen")
                }
                Kind::Word("options") if word == "const" && self.is(at + 1, "={") => {
                    let keys: Vec<_> = self.arguments(at + 2).iter().filter_map(|key| self.word(*key)).collect();
                    format!("the options are not taken over: {}", keys.join(", "))
                }
                Kind::Word(word) if one_of("return break continue throw", word) && self.reasons(at).is_conditional => {
                    format!("`{word}`: what follows is always sent")
                }
                _ => continue,
            };
            draft.left_out.add(&self.place(at), &what, 1);
        }
    }

    fn requests(&self, http: &str) -> Vec<Found<'a>> {
        let mut found = Vec::new();
        for at in (0..self.tokens.len()).filter(|at| self.word(*at) == Some(http) && self.is(at + 1, ".")) {
            let Some(method) = self.word(at + 2).filter(|_| self.is(at + 3, "(")) else { continue };
            let arguments = self.arguments(at + 3);
            let call = match (method, &arguments[..]) {
                ("get" | "head", [url, params @ ..]) => self.call(method, *url, None, params.first()),
                ("post" | "put" | "patch" | "options" | "del", [url, rest @ ..]) => {
                    self.call(if method == "del" { "delete" } else { method }, *url, rest.first(), rest.get(1))
                }
                ("request" | "asyncRequest", [method, url, rest @ ..]) => match self.constant(*method) {
                    Some(Value::String(method)) => self.call(&method, *url, rest.first(), rest.get(1)),
                    _ => Err("a request whose method is not constant".to_owned()),
                },
                _ => Err(format!("`http.{method}` is not taken over")),
            };
            let start = if self.word_before(at) == Some("await") { at - 1 } else { at };
            let response = start.checked_sub(2).filter(|name| self.is(name + 1, "=")).and_then(|name| self.word(name));
            found.push(Found { at, call, response, status: None });
        }
        found
    }

    /// Reads a request from where its arguments begin.
    fn call(&self, method: &str, url: usize, body: Option<&usize>, params: Option<&usize>) -> Result<Call, String> {
        let not_constant = |what: &str| format!("a request whose {what} not constant");
        let value = |at: Option<&usize>| at.map_or(Some(Value::Null), |at| self.constant(*at));
        let Some(Value::String(url)) = self.constant(url) else { return Err(not_constant("URL is")) };
        let (base, path) = split_url(&url).ok_or_else(|| not_constant("host is"))?;
        let mut call = Call { base, method: method.to_uppercase(), path, ..Call::default() };
        match value(body) {
            Some(Value::Null) => {}
            Some(Value::String(text)) => {
                call.fills_body = text.contains("${");
                call.body = text.into_bytes();
            }
            _ => return Err(not_constant("body is")),
        }
        let Some(params @ (Value::Null | Value::Object(_))) = value(params) else {
            return Err(not_constant("parameters are"));
        };
        for (name, value) in params.as_object().into_iter().flatten() {
            match value {
                _ if one_of(WITHOUT_EFFECT, name) => {}
                Value::Object(fields) if name == "headers" => {
                    for (name, value) in fields {
                        call.header(name, &scalar(value).ok_or_else(|| not_constant("header fields are"))?);
                    }
                }
                _ => return Err(format!("a request with the parameter `{name}`")),
            }
        }
        Ok(call)
    }

    /// Reads the expected status from calls of `check`. Returns where checks are that are not taken over.
    fn read_checks(&self, found: &mut [Found<'a>]) -> Vec<usize> {
        let (mut known, mut unclear) = (HashMap::new(), Vec::new());
        let mut next = 0;
        for at in (0..self.tokens.len()).filter(|at| self.is(*at, "check(")) {
            while found.get(next).is_some_and(|request| request.at <= at) {
                known.extend(found[next].response.map(|name| (name, next)));
                next += 1;
            }
            let [response, checks, ..] = self.arguments(at + 1)[..] else { continue };
            let direct = found.binary_search_by_key(&response, |request| request.at).ok();
            let variable = || {
                let number = *known.get(self.word(response).filter(|_| self.is(response + 1, ","))?)?;
                let block = self.tokens[found[number].at].parent;
                (block.is_none() || self.around(at).any(|open| Some(open) == block)).then_some(number)
            };
            let request = direct.or_else(variable).filter(|_| self.is(checks, "{"));
            let checks = if request.is_some() { self.arguments(checks) } else { vec![checks] };
            for check in checks {
                let status = request.and_then(|request| self.status(check, found[request].status));
                match (request, status) {
                    (Some(request), Some(status)) => found[request].status = Some(status),
                    _ => unclear.push(check),
                }
            }
        }
        unclear
    }

    /// Reads a check of a status: `'name': (r) => r.status === 200`.
    fn status(&self, at: usize, known: Option<u16>) -> Option<u16> {
        let at = if self.is(at + 1, ":") { at + 2 } else { return None };
        let (name, at) = if self.is(at, "(") { (self.word(at + 1)?, at + 3) } else { (self.word(at)?, at + 1) };
        let test = format!("=>{name}.status==");
        let value = if self.is(at, &format!("{test}=")) { at + 8 } else { at + 7 };
        let status = self.constant(value).filter(|_| self.is(at, &test))?.as_u64()?;
        u16::try_from(status).ok().filter(|status| known.is_none_or(|known| known == *status))
    }

    /// Reads the pause of an iteration, and spreads it over its requests.
    fn read_sleep(&self, sent: u64, draft: &mut Draft) {
        let sleeps: Vec<_> = (0..self.tokens.len()).filter(|at| self.is(*at, "sleep(")).collect();
        let [at, ..] = sleeps[..] else { return };
        let seconds = self.constant(at + 2).and_then(|value| value.as_f64()).filter(|seconds| *seconds <= 3600.0);
        let reasons = self.reasons(at);
        let is_sure = sleeps.len() == 1 && !(reasons.is_conditional || reasons.is_repeated || reasons.is_once);
        match seconds.filter(|_| is_sure && sent > 0) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most an hour")]
            Some(seconds) => draft.think_time_ms = (seconds * 1_000.0 / sent as f64).round() as u64,
            None => draft.left_out.add(&self.place(at), "the pauses are not one of a constant length", 1),
        }
        if draft.think_time_ms > 0 && sent > 1 {
            draft.left_out.add(&self.place(at), &format!("the pause is spread over {sent} requests"), 1);
        }
    }
}

/// Splits a URL into the target and the path. Both may have parameters.
fn split_url(url: &str) -> Option<(String, String)> {
    let url = url.split('#').next().unwrap_or_default();
    let start = ["http://", "https://", "${"].iter().find(|start| url.starts_with(**start))?.len();
    let end = url[start..].find(['/', '?']).map_or(url.len(), |end| start + end);
    let (base, path) = url.split_at(end);
    let is_whole = base.find('}') == Some(base.len() - 1);
    let is_host = if base.starts_with("${") { is_whole } else { base.contains("${") || Target::parse(base).is_ok() };
    let slash = if path.starts_with('/') { "" } else { "/" };
    let path = path.chars().map(|c| if c.is_ascii_graphic() { c.to_string() } else { encoded(&c.to_string()) });
    (is_host && !base.contains('@')).then(|| (base.to_owned(), slash.to_owned() + &path.collect::<String>()))
}
