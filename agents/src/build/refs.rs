//! Which refs of a repository may be built, and which of them a revision means. Pure.

use std::collections::BTreeMap;

/// Refs by their full names, with the ids of their commits.
pub type Refs = BTreeMap<String, String>;

/// Reads what `git ls-remote` prints. A tag with a message counts with its commit.
pub fn read(text: &str) -> Refs {
    let mut refs = Refs::new();
    for (id, name) in text.lines().filter_map(|line| line.split_once('\t')) {
        let name = name.strip_suffix("^{}").unwrap_or(name);
        // The line of the commit follows that of the tag.
        refs.insert(name.to_owned(), id.to_owned());
    }
    refs
}

/// Keeps the refs that patterns allow.
pub fn allowed(refs: &Refs, patterns: &[String]) -> Refs {
    let is_allowed = |name: &str| patterns.iter().any(|pattern| allows(pattern, name));
    refs.iter().filter(|(name, _)| is_allowed(name)).map(|(name, id)| (name.clone(), id.clone())).collect()
}

/// Returns the commit of a branch or tag; the error is a sentence if it could be two. A full id of a commit is no name
/// of one.
pub fn find<'a>(refs: &'a Refs, revision: &str) -> Result<Option<&'a str>, String> {
    if matches!(revision.len(), 40 | 64) && revision.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(None);
    }
    let full = [revision.to_owned(), format!("refs/tags/{revision}"), format!("refs/heads/{revision}")];
    let mut found: Vec<&str> = full.iter().filter_map(|name| refs.get(name).map(String::as_str)).collect();
    found.dedup();
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        _ => Err(format!("{revision} is a tag and a branch: write refs/tags/{revision} or refs/heads/{revision}")),
    }
}

/// A pattern without `refs/` means branches and tags.
fn allows(pattern: &str, name: &str) -> bool {
    if pattern.starts_with("refs/") {
        return matches(pattern.as_bytes(), name.as_bytes());
    }
    ["refs/heads/", "refs/tags/"]
        .iter()
        .filter_map(|folder| name.strip_prefix(folder))
        .any(|short| matches(pattern.as_bytes(), short.as_bytes()))
}

/// `*` stands for any part of a name, with slashes.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some((b'*', rest)) => (0..=name.len()).any(|skipped| matches(rest, &name[skipped..])),
        Some((letter, rest)) => name.split_first().is_some_and(|(first, name)| first == letter && matches(rest, name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "aa\tHEAD\naa\trefs/heads/main\nbb\trefs/heads/feature/x\ncc\trefs/tags/v1\ndd\trefs/tags/v1^{}\n\
        ee\trefs/pull/7/head\nff\trefs/heads/v1\n";

    fn names(patterns: &[&str]) -> Vec<String> {
        let patterns: Vec<_> = patterns.iter().map(|&pattern| pattern.to_owned()).collect();
        allowed(&read(LISTED), &patterns).into_keys().collect()
    }

    #[test]
    fn only_what_a_pattern_names_is_allowed() {
        assert_eq!(names(&["main"]), ["refs/heads/main"]);
        assert_eq!(names(&["v*"]), ["refs/heads/v1", "refs/tags/v1"]);
        assert_eq!(names(&["refs/tags/*"]), ["refs/tags/v1"]);
        assert_eq!(names(&["refs/pull/*/head"]), ["refs/pull/7/head"]);
        assert_eq!(names(&["feature/*"]), ["refs/heads/feature/x"]);
        assert_eq!(names(&["*"]).len(), 4, "pull requests are neither branches nor tags");
        assert_eq!(names(&["mai", "ain", "refs/heads/mai"]), Vec::<String>::new());
    }

    #[test]
    fn a_revision_means_one_commit() {
        let refs = read(LISTED);
        assert_eq!(find(&refs, "main"), Ok(Some("aa")));
        assert_eq!(find(&refs, "refs/tags/v1"), Ok(Some("dd")), "the commit of a tag with a message");
        assert_eq!(find(&refs, "none"), Ok(None));
        let id = "0123456789abcdef0123456789abcdef01234567";
        let named = read(&format!("aa\trefs/heads/{id}\n"));
        assert_eq!(find(&named, id), Ok(None), "a branch with the name of a commit");
        assert!(find(&refs, "v1").is_err_and(|fault| fault.contains("a tag and a branch")));
    }
}
