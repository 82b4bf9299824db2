//! Finds the variables that a script reads from `__ENV`: they are its parameters. Pure.
//!
//! It searches the text, so it finds `__ENV.NAME`, `__ENV['NAME']` and `const { NAME } = __ENV`, but no name that the
//! script computes.

use std::collections::BTreeSet;

use super::scenario::{Content, REQUESTS, Scenario};

/// Where a script reads variables.
const ENV: &str = "__ENV";

/// The variable with the target's address, which is no parameter.
const BASE_URL: &str = "BASE_URL";

/// Returns the parameters of a scenario: those with a default, and the variables that it reads.
pub fn parameters(scenario: &Scenario) -> BTreeSet<String> {
    let read = scenario.modules().flat_map(|(_, text)| reads(text)).map(|read| read.name.to_owned());
    let is_parameter = |name: &String| name != BASE_URL && !name.starts_with("K6_");
    // Others stand for a constant address.
    let defaults = scenario.defaults.keys().filter(|key| key.chars().all(is_of_name)).cloned();
    let list = scenario.files.get(REQUESTS).and_then(Content::text);
    let in_list = list.into_iter().flat_map(placeholders).map(str::to_owned);
    defaults.chain(read.chain(in_list).filter(is_parameter)).collect()
}

/// Returns the names in `${NAME}` of a request list.
fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    let names = text.split("${").skip(1).filter_map(|rest| rest.split_once('}').map(|(name, _)| name));
    names.filter(|name| !name.is_empty() && name.chars().all(is_of_name))
}

/// Words in the names of parameters that are secrets.
const SECRETS: [&str; 7] = ["PASSWORD", "PASSWD", "PWD", "SECRET", "TOKEN", "APIKEY", "CREDENTIALS"];

/// Ends of the names of parameters that are secrets. Other keys are those of data.
const SECRET_KEYS: [&str; 3] = ["API_KEY", "ACCESS_KEY", "PRIVATE_KEY"];

/// Whether a parameter is a secret by its name: its value is not shown, and masked in logs.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name.split('_').any(|word| SECRETS.contains(&word)) || SECRET_KEYS.iter().any(|end| name.ends_with(end))
}

/// Returns the variables without a value, besides those in `set`, that the script reads in its options and that have no
/// alternative, such as `__ENV.RATE || 10`.
pub fn missing_in_options(scenario: &Scenario, set: &BTreeSet<String>) -> BTreeSet<String> {
    let has_alternative: BTreeSet<&str> = scenario
        .modules()
        .flat_map(|(_, text)| reads(text))
        .filter(|read| read.has_alternative)
        .map(|read| read.name)
        .collect();
    let is_missing = |name: &&str| {
        *name != BASE_URL
            && !has_alternative.contains(name)
            && !set.contains(*name)
            && !scenario.defaults.contains_key(*name)
    };
    options(scenario.script())
        .map(reads)
        .into_iter()
        .flatten()
        .map(|read| read.name)
        .filter(is_missing)
        .map(str::to_owned)
        .collect()
}

/// Returns the variables that a module reads, each with the string that it uses instead, if that is a constant.
pub fn alternatives(text: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    text.match_indices(ENV).filter_map(|(at, _)| {
        let (name, rest) = member(&text[at + ENV.len()..])?;
        let rest = rest.trim_start();
        let rest = rest.strip_prefix("||").or_else(|| rest.strip_prefix("??")).map(str::trim_start);
        let quoted = rest.and_then(|rest| {
            let quote = rest.chars().next().filter(|quote| "'\"`".contains(*quote))?;
            rest[1..].split_once(quote).map(|(text, _)| text)
        });
        Some((name, quoted))
    })
}

/// A variable that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Read<'a> {
    name: &'a str,
    /// Whether the script goes on without it: a default, or a test of its value.
    has_alternative: bool,
}

fn reads(text: &str) -> Vec<Read<'_>> {
    let mut all = Vec::new();
    for (at, _) in text.match_indices(ENV) {
        let (before, after) = (&text[..at], &text[at + ENV.len()..]);
        match member(after) {
            Some((name, rest)) => all.push(Read { name, has_alternative: has_alternative(rest) }),
            None => all.extend(destructured(before)),
        }
    }
    all
}

/// Returns the name in `.NAME` or `['NAME']`, and what follows it.
fn member(after: &str) -> Option<(&str, &str)> {
    let after = after.strip_prefix('?').unwrap_or(after);
    let (name, rest) = if let Some(in_brackets) = after.strip_prefix(".[").or_else(|| after.strip_prefix('[')) {
        let start = in_brackets.trim_start();
        let quote = start.chars().next().filter(|quote| "'\"`".contains(*quote))?;
        let (name, rest) = start[1..].split_once(quote)?;
        (name, rest.trim_start().strip_prefix(']')?)
    } else {
        let name = after.strip_prefix('.')?;
        name.split_at(name.find(|letter: char| !is_of_name(letter)).unwrap_or(name.len()))
    };
    is_name(name).then_some((name, rest))
}

fn has_alternative(rest: &str) -> bool {
    let rest = rest.trim_start();
    ["||", "??", "&&", "?", "==", "!="].iter().any(|operator| rest.starts_with(operator))
}

/// Returns the names in `{ A, B = 'x', C: c } =` at the end of a text.
fn destructured(before: &str) -> Vec<Read<'_>> {
    let body = before.trim_end().strip_suffix('=').map(str::trim_end).and_then(|text| text.strip_suffix('}'));
    let Some((_, names)) = body.and_then(|text| text.rsplit_once('{')) else { return Vec::new() };
    let read = |part| {
        let (name, has_alternative) = name_and_default(part);
        is_name(name).then_some(Read { name, has_alternative })
    };
    names.split(',').filter_map(read).collect()
}

/// Returns the name of a part of a pattern, and whether it has a default.
fn name_and_default(part: &str) -> (&str, bool) {
    let end = part.find([':', '=']).unwrap_or(part.len());
    (part[..end].trim(), part.contains('='))
}

/// Returns the text of the script's options.
fn options(script: &str) -> Option<&str> {
    let start = ["const options", "let options", "var options", "exports.options"]
        .iter()
        .find_map(|words| script.find(words).map(|at| at + words.len()))?;
    let rest = &script[start..];
    let open = rest.find('{')?;
    let mut depth = 0_usize;
    for (at, letter) in rest[open..].char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 1 => return Some(&rest[open..=open + at]),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Whether a letter may be part of a name.
pub fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_of_name) && text.starts_with(|first: char| !first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(script: &str) -> Scenario {
        Scenario::of_script("x", script)
    }

    fn found(script: &str) -> Vec<String> {
        parameters(&scenario(script)).into_iter().collect()
    }

    #[test]
    fn variables_are_found_in_each_way_to_read_them() {
        assert_eq!(found("http.get(`${__ENV.BASE_URL}${__ENV.ROUTE}`)"), ["ROUTE"]);
        assert_eq!(found("__ENV['A']; __ENV[ \"B\" ]; __ENV[`C`]; __ENV?.D; __ENV?.['E']"), ["A", "B", "C", "D", "E"]);
        assert_eq!(found("const { A, B = '1', C: other,\n D } = __ENV;"), ["A", "B", "C", "D"]);
        assert_eq!(found("const env = __ENV; env.A; __ENV[name]; MY__ENV; __ENVS.X; K6_; __ENV.K6_VUS"), [""; 0]);
    }

    #[test]
    fn secrets_are_recognized_by_words_of_their_names() {
        let secrets = ["API_TOKEN", "password", "DB_PASSWORD", "CLIENT_SECRET", "AWS_ACCESS_KEY", "x_api_key"];
        assert!(secrets.into_iter().all(is_secret));
        assert!(!["MAX_TOKENS", "CACHE_KEY", "KEY", "ROUTE", "SECRETARY"].into_iter().any(is_secret));
    }

    #[test]
    fn modules_are_searched_and_data_is_not() {
        let all = scenario("").with_file("lib/a.ts", "__ENV.A").with_file("data.json", "\"__ENV.B\"");
        let all = parameters(&all.with_default("D", "1"));
        assert_eq!(all.into_iter().collect::<Vec<_>>(), ["A", "D"]);
    }

    #[test]
    fn only_variables_that_the_options_need_are_missing() {
        let missing = |script: &str, set: &[&str]| {
            let set = set.iter().map(|name| (*name).to_owned()).collect();
            missing_in_options(&scenario(script), &set).into_iter().collect::<Vec<_>>()
        };
        let script = "export const options = { duration: `${__ENV.D}`, vus: Number(__ENV.V) }; __ENV.ROUTE";
        assert_eq!(missing(script, &[]), ["D", "V"]);
        assert_eq!(missing(script, &["D"]), ["V"]);
        assert_eq!(missing("export const options = { duration: __ENV.D || '5s', vus: __ENV.V ?? 1 };", &[]), [""; 0]);
        assert_eq!(missing("export let options = { vus: __ENV.V ? __ENV.V : 1 };", &[]), [""; 0]);
        assert_eq!(missing("export default function () { __ENV.D }", &[]), [""; 0]);
    }
}
