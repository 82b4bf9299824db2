//! The tree of groups and checks: lists in `handleSummary`, objects by name in `--summary-export`.

use super::json::{Node, required};
use super::{names, values};
use crate::reports::summary::{Check, Group};
use crate::reports::validate::{Fault, Place};

/// Maximum nesting of groups.
const DEPTH_MAX: usize = 32;

/// Reads `root_group`, if present.
pub(super) fn root(document: &Node<'_>) -> Result<Group, Fault> {
    match document.get("root_group") {
        Some(node) => group("", node, &Place::root("root_group"), 0),
        None => Ok(Group::default()),
    }
}

fn group(name: &str, node: &Node<'_>, place: &Place<'_>, depth: usize) -> Result<Group, Fault> {
    if depth > DEPTH_MAX {
        return Err(place.fault(format_args!("groups are nested deeper than {DEPTH_MAX} levels")));
    }
    node.entries(place)?;
    names::text(name, &place.key("name"))?;
    Ok(Group {
        name: name.to_owned(),
        path: path(name, node, place)?,
        groups: children(node, "groups", place, |name, node, place| group(name, node, place, depth + 1))?,
        checks: children(node, "checks", place, check)?,
    })
}

/// Reads one check.
pub(super) fn check(name: &str, node: &Node<'_>, place: &Place<'_>) -> Result<Check, Fault> {
    names::text(name, &place.key("name"))?;
    let [passes, fails] = ["passes", "fails"]
        .map(|key| values::count(required(node, key, place), &place.key(key)).map(values::to_integer));
    Ok(Check { name: name.to_owned(), path: path(name, node, place)?, passes: passes?, fails: fails? })
}

/// Returns the path as written by k6. Building it from the names could take far more memory than the file, with many
/// checks below long names.
fn path(name: &str, node: &Node<'_>, place: &Place<'_>) -> Result<String, Fault> {
    let Some(found) = node.get("path") else {
        return Ok(if name.is_empty() { String::new() } else { format!("::{name}") });
    };
    let place = place.key("path");
    let path = found.text(&place)?;
    names::path(path, &place)?;
    Ok(path.to_owned())
}

fn children<T>(
    node: &Node<'_>,
    key: &str,
    place: &Place<'_>,
    read: impl Fn(&str, &Node<'_>, &Place<'_>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let place = place.key(key);
    match node.get(key) {
        None | Some(Node::Null) => Ok(Vec::new()),
        Some(Node::List(nodes)) => {
            let one = |(index, node): (usize, &Node<'_>)| {
                let place = place.index(index);
                let name = required(node, "name", &place)?.text(&place.key("name"))?;
                read(name, node, &place)
            };
            nodes.iter().enumerate().map(one).collect()
        }
        Some(Node::Map(entries)) => entries.iter().map(|(name, node)| read(name, node, &place.key(name))).collect(),
        Some(other) => Err(place.fault(format_args!("is {}, expected a list or an object", other.what()))),
    }
}
