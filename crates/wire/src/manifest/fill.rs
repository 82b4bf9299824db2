//! A template with other values: `ready.path=/health` and the like, in the words of the file. Pure.

use toml::{Table, Value};

use super::ManifestFile;
use crate::target::TargetKind;

/// A key of the manifest, such as `ready.path`, and its value: TOML, or else text.
pub type Assignment = (String, String);

/// Returns the manifest of a template with other values. Fails with the key of a value that does not fit, or else with
/// what is missing; whether the values are valid is not checked.
///
/// What the template has of the kind itself is an example: the first value for it replaces all of it.
pub fn fill(template: &str, kind: TargetKind, assignments: &[Assignment]) -> Result<ManifestFile, String> {
    let mut base: Table = template.parse().map_err(one_line)?;
    let own = own_key(kind);
    let paths: Vec<_> = assignments.iter().map(|(key, text)| Ok((path(key)?, text))).collect::<Result<_, String>>()?;
    if paths.iter().any(|(path, _)| path[0] == own) {
        base.remove(own);
    }
    let mut filled = base.clone();
    for (path, text) in paths {
        let value = fitting(&base, &path, text)?;
        set(&mut filled, &path, value)?;
    }
    read(filled)
}

/// Returns the kind to which values belong, if one of them does.
pub fn kind_of(assignments: &[Assignment]) -> Option<TargetKind> {
    let first = |key: &String| Some(path(key).ok()?.swap_remove(0));
    let keys: Vec<String> = assignments.iter().filter_map(|(key, _)| first(key)).collect();
    TargetKind::ALL.into_iter().find(|kind| keys.iter().any(|key| key == own_key(*kind)))
}

/// Returns the key of a field that several kinds have, such as `command`.
pub fn key(kind: TargetKind, field: &str) -> String {
    match kind {
        TargetKind::Process => field.to_owned(),
        _ => format!("{kind}.{field}"),
    }
}

/// Returns the TOML of a list.
pub fn list(words: Vec<String>) -> String {
    Value::from(words).to_string()
}

/// What only a manifest of this kind has.
fn own_key(kind: TargetKind) -> &'static str {
    match kind {
        TargetKind::Process => "command",
        _ => kind.as_str(),
    }
}

/// Takes a dotted key apart, whose parts may be quoted.
fn path(key: &str) -> Result<Vec<String>, String> {
    let bad = || format!("{key}: is not a key of a manifest");
    let mut value = Value::Table(format!("{key} = 0").parse().map_err(|_| bad())?);
    let mut path = Vec::new();
    while let Value::Table(table) = value {
        let mut entries = table.into_iter();
        let (Some((part, inner)), None) = (entries.next(), entries.next()) else { return Err(bad()) };
        path.push(part);
        value = inner;
    }
    Ok(path)
}

/// Returns a value as the field takes it: `version=2` is text, `ready.status=204` a number.
fn fitting(base: &Table, path: &[String], text: &str) -> Result<Value, String> {
    let words = Value::String(text.to_owned());
    let first = text.parse::<Value>().unwrap_or_else(|_| words.clone());
    let mut fault = String::new();
    for value in [first, words] {
        let mut table = base.clone();
        set(&mut table, path, value.clone())?;
        match table.try_into::<ManifestFile>() {
            // Another value may bring it.
            Err(error) if !error.message().starts_with("missing field") => {
                fault = if fault.is_empty() { error.message().to_owned() } else { fault };
            }
            _ => return Ok(value),
        }
    }
    Err(format!("{}: {fault}", path.join(".")))
}

fn set(table: &mut Table, path: &[String], value: Value) -> Result<(), String> {
    let Some((last, tables)) = path.split_last() else { return Ok(()) };
    let mut inner = table;
    for part in tables {
        let next = inner.entry(part).or_insert_with(|| Value::Table(Table::new()));
        inner = next.as_table_mut().ok_or_else(|| format!("{}: {part} is not a table", path.join(".")))?;
    }
    inner.insert(last.clone(), value);
    Ok(())
}

fn read(table: Table) -> Result<ManifestFile, String> {
    table.try_into().map_err(one_line)
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn one_line(error: toml::de::Error) -> String {
    error.to_string().trim().replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATE: &str = "name = \"my-server\"\nversion = \"1\"\n[container]\nimage = \"x\"\nport = 8080\n\
        [ready]\npath = \"/\"\ntimeout_s = 60\n";

    fn filled(assignments: &[&str]) -> Result<ManifestFile, String> {
        let pair = |text: &&str| text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
        let assignments: Vec<Assignment> = assignments.iter().filter_map(pair).collect();
        fill(TEMPLATE, kind_of(&assignments).unwrap_or(TargetKind::Container), &assignments)
    }

    #[test]
    fn a_value_is_what_its_field_takes() {
        let file = filled(&["version=2", "verify.contains=200", "verify.path=/x", "ready.status=204"]).expect("read");
        let verify = file.verify.expect("a check");
        assert_eq!((file.version.as_str(), verify.contains.as_deref(), file.ready.status), ("2", Some("200"), 204));
        assert_eq!(file.container.map(|container| container.port), Some(Some(8080)), "the example stays");
        let file = filled(&["container.image=y", "container.env.\"a.b\"=true", "name=\"a\""]).expect("read");
        let container = file.container.expect("a container");
        assert_eq!((container.image.as_str(), container.port, file.name.as_str()), ("y", None, "a"));
        assert_eq!(container.env["a.b"], "true");
        assert!(file.ready.timeout_s > 59.0, "that of the template");
    }

    #[test]
    fn a_wrong_key_or_type_is_named() {
        for (text, words) in [
            ("ready.pth=/x", "ready.pth: unknown field `pth`"),
            ("ready.status=ok", "ready.status: invalid type: string \"ok\", expected u16"),
            ("ready.status=70000", "ready.status: invalid value: integer `70000`, expected u16"),
            ("ready.path.x=1", "ready.path.x: path is not a table"),
            ("container.network=none", "container.network: unknown variant `none`"),
            ("container.command=serve", "container.command: invalid type: string \"serve\", expected a sequence"),
            ("verify.status=200", "missing field `path`"),
            ("=x", ": is not a key"),
            ("a b=x", "a b: is not a key"),
            ("a.=x", "a.: is not a key"),
            ("a=1\nb=x", "a: unknown field"),
        ] {
            let fault = filled(&[text]).expect_err(text);
            assert!(fault.starts_with(words), "{text}: {fault}");
            assert!(!fault.contains('\n'), "{fault}");
        }
    }

    #[test]
    fn values_tell_the_kind() {
        let kind = |key: &str| kind_of(&[("ready.path".to_owned(), "/".to_owned()), (key.to_owned(), String::new())]);
        assert_eq!((kind("vm.port"), kind("url.base")), (Some(TargetKind::Vm), Some(TargetKind::Url)));
        assert_eq!((kind("command"), kind("version")), (Some(TargetKind::Process), None));
        assert_eq!(
            (key(TargetKind::Process, "command"), key(TargetKind::Vm, "port").as_str()),
            ("command".to_owned(), "vm.port")
        );
        assert_eq!(list(vec!["a\"b".to_owned(), "{port}".to_owned()]), "['a\"b', \"{port}\"]");
    }
}
