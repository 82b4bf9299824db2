//! The types of the API have names of their own: of two with one name, the OpenAPI document keeps one for both.

use std::collections::BTreeMap;

use super::production_files;

/// Returns the types of a file that are schemas.
fn schemas(text: &str) -> Vec<&str> {
    let mut lines = text.lines();
    let mut names = Vec::new();
    while let Some(line) = lines.next() {
        if !line.contains("ToSchema") || line.trim_start().starts_with("use ") || !line.contains(")]") {
            continue;
        }
        let declared = lines.find_map(|line| {
            let rest = line.trim_start().strip_prefix("pub struct ").or(line.trim_start().strip_prefix("pub enum "))?;
            rest.split(|letter: char| !letter.is_alphanumeric()).next()
        });
        names.extend(declared);
    }
    names
}

#[test]
fn types_of_the_api_have_names_of_their_own() {
    let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (file, text) in production_files() {
        for name in schemas(text) {
            files.entry(name).or_default().push(file);
        }
    }
    assert!(files.len() > 200, "only {} schemas were found", files.len());
    files.retain(|_, files| files.len() > 1);
    assert!(files.is_empty(), "one name for several types: {files:#?}");
}
