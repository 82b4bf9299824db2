//! The history as somebody looks at it: filters, order and columns. A saved view keeps it under a name.

use std::str::FromStr;

use axum::http::Uri;
use axum_extra::extract::Query;
use serde::{Deserialize, Serialize};
use url::form_urlencoded;
use utoipa::ToSchema;

use super::{
    column::{self, Column},
    filter::Wanted,
};

/// A view under a name, for everybody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SavedView {
    /// As people call it.
    pub name: String,
    /// The query of its address, e.g. `target=servy&sort=p99`.
    pub query: String,
    /// Who saved it.
    pub created_by: String,
    /// When, unix ms.
    pub created_at_ms: i64,
}

/// All saved views.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ViewList {
    /// By name.
    pub views: Vec<SavedView>,
}

/// What is to be saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ViewQuery {
    /// As the address of `/runs` has it, e.g. `target=servy&sort=p99`.
    pub query: String,
}

/// The columns of some keys, separated by commas or one by one, in the order in which they stand in a table; the usual
/// ones if there is none.
pub fn shown(keys: &[String]) -> Vec<Column> {
    let named = |column: &Column| keys.iter().flat_map(|part| part.split(',')).any(|key| key == column.key());
    let chosen: Vec<_> = column::all().filter(named).collect();
    if chosen.is_empty() { column::USUAL.to_vec() } else { chosen }
}

/// The keys of these columns as an address says them, unless they are the usual ones.
pub fn chosen(columns: &[Column]) -> Option<String> {
    let keys: Vec<_> = columns.iter().map(|column| column.key()).collect();
    (columns != column::USUAL).then(|| keys.join(","))
}

/// What an address says of filters, order and columns.
pub fn kept<'a>(wanted: &'a Wanted, chosen: Option<&'a str>) -> Vec<(&'a str, &'a str)> {
    let mut pairs = wanted.narrows();
    pairs.extend(wanted.sorted().map(|sort| ("sort", sort)));
    pairs.extend(chosen.map(|columns| ("columns", columns)));
    pairs
}

/// The one way to write a view, so that two that show the same are the same.
pub fn query(wanted: &Wanted, chosen: Option<&str>) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(kept(wanted, chosen)).finish()
}

/// Reads a query that somebody wrote and writes it in the one way; fails with a sentence.
pub fn canonical(text: &str) -> Result<String, String> {
    let text = text.trim().trim_start_matches('?');
    let uri = Uri::from_str(&format!("/runs?{text}")).map_err(|fault| format!("query: {fault}"))?;
    let Query(wanted) = Query::<Wanted>::try_from_uri(&uri).map_err(|fault| format!("query: {}", fault.body_text()))?;
    wanted.filter()?;
    // Where a page begins is no part of a view.
    let known = wanted.narrows().into_iter().map(|(name, _)| name).chain(["sort", "columns", "before", "runs"]);
    let known: Vec<&str> = known.collect();
    let foreign = form_urlencoded::parse(text.as_bytes())
        .find(|(name, value)| !value.trim().is_empty() && !known.contains(&name.as_ref()));
    if let Some((name, _)) = foreign {
        return Err(format!("query: {name:?} is no filter of the history"));
    }
    let pairs = form_urlencoded::parse(text.as_bytes()).filter(|(name, _)| name == "columns");
    let columns: Vec<String> = pairs.map(|(_, keys)| keys.into_owned()).collect();
    let query = query(&wanted, chosen(&shown(&columns)).as_deref());
    if query.is_empty() {
        return Err("query: it narrows nothing, sorts nothing and chooses no columns".to_owned());
    }
    Ok(query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_is_written_in_one_way_and_begins_at_the_beginning() {
        let same = Ok("target=a+%26+b&sort=p99&columns=rps%2Cp99".to_owned());
        assert_eq!(canonical("?columns=p99&columns=rps&sort=p99&target=a%20%26%20b&before=x&runs=y&q="), same);
        assert_eq!(canonical("target=a+%26+b&sort=p99&columns=rps,p99"), same);
        // The usual order and the usual columns need not be said.
        let usual = column::USUAL.map(Column::key).join(",");
        assert_eq!(canonical(&format!("target=a&sort=-submitted&columns={usual}")), Ok("target=a".to_owned()));
    }

    #[test]
    fn what_is_no_view_is_told() {
        for bad in ["", "sort=beauty", "colour=red", "before=x", "verdict=great", "target=a b\n", "target=a&target=b"] {
            assert!(canonical(bad).is_err(), "{bad:?}: {:?}", canonical(bad));
        }
    }
}
