//! Views of the history: filters, order and columns. A saved view stores them under a name.

use std::str::FromStr;

use axum::http::Uri;
use axum_extra::extract::Query;
use serde::{Deserialize, Serialize};
use url::form_urlencoded;
use utoipa::ToSchema;

use super::{
    column::{self, Column},
    filter::RunQuery,
};

/// A named view, shared by all users.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SavedView {
    /// Name.
    pub name: String,
    /// Query string of its address, e.g. `target=servy&sort=p99`.
    pub query: String,
    /// Who saved it.
    pub created_by: String,
    /// When it was saved, unix ms.
    pub created_at_ms: i64,
}

/// All saved views.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ViewList {
    /// Views, sorted by name.
    pub views: Vec<SavedView>,
}

/// A view to save.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ViewQuery {
    /// Query string of `/runs`, e.g. `target=servy&sort=p99`.
    pub query: String,
}

/// Returns the columns with these keys, which may be comma-separated, in table order; the defaults if there are none.
pub fn columns_of(keys: &[String]) -> Vec<Column> {
    let named = |column: &Column| keys.iter().flat_map(|part| part.split(',')).any(|key| key == column.key());
    let chosen: Vec<_> = column::all().filter(named).collect();
    if chosen.is_empty() { column::DEFAULT.to_vec() } else { chosen }
}

/// Returns the keys of these columns as written in an address, unless they are the defaults.
pub fn column_keys(columns: &[Column]) -> Option<String> {
    let keys: Vec<_> = columns.iter().map(|column| column.key()).collect();
    (columns != column::DEFAULT).then(|| keys.join(","))
}

/// Returns the query parameters of filters, order and columns.
pub fn pairs<'a>(query: &'a RunQuery, columns: Option<&'a str>) -> Vec<(&'a str, &'a str)> {
    let mut pairs = query.filters();
    pairs.extend(query.sorted().map(|sort| ("sort", sort)));
    pairs.extend(columns.map(|columns| ("columns", columns)));
    pairs
}

/// Writes a view in canonical form, so that equal views have equal texts.
pub fn write(query: &RunQuery, columns: Option<&str>) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs(query, columns)).finish()
}

/// Validates a query string and returns it in canonical form.
pub fn canonical(text: &str) -> Result<String, String> {
    let text = text.trim().trim_start_matches('?');
    let uri = Uri::from_str(&format!("/runs?{text}")).map_err(|fault| format!("query: {fault}"))?;
    let Query(parsed) =
        Query::<RunQuery>::try_from_uri(&uri).map_err(|fault| format!("query: {}", fault.body_text()))?;
    parsed.filter()?;
    // The start of a page is not part of a view.
    let known = parsed.filters().into_iter().map(|(name, _)| name).chain(["sort", "columns", "before", "runs"]);
    let known: Vec<&str> = known.collect();
    let unknown = form_urlencoded::parse(text.as_bytes())
        .find(|(name, value)| !value.trim().is_empty() && !known.contains(&name.as_ref()));
    if let Some((name, _)) = unknown {
        return Err(format!("query: unknown filter {name:?}"));
    }
    let pairs = form_urlencoded::parse(text.as_bytes()).filter(|(name, _)| name == "columns");
    let columns: Vec<String> = pairs.map(|(_, keys)| keys.into_owned()).collect();
    let query = write(&parsed, column_keys(&columns_of(&columns)).as_deref());
    if query.is_empty() {
        return Err("query: needs at least one filter, an order or columns".to_owned());
    }
    Ok(query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_views_have_one_canonical_form() {
        let same = Ok("target=a+%26+b&sort=p99&columns=rps%2Cp99".to_owned());
        assert_eq!(canonical("?columns=p99&columns=rps&sort=p99&target=a%20%26%20b&before=x&runs=y&q="), same);
        assert_eq!(canonical("target=a+%26+b&sort=p99&columns=rps,p99"), same);
        // The default order and columns are left out.
        let default = column::DEFAULT.map(Column::key).join(",");
        assert_eq!(canonical(&format!("target=a&sort=-submitted&columns={default}")), Ok("target=a".to_owned()));
    }

    #[test]
    fn an_invalid_view_is_refused() {
        for bad in ["", "sort=beauty", "colour=red", "before=x", "verdict=great", "target=a b\n", "target=a&target=b"] {
            assert!(canonical(bad).is_err(), "{bad:?}: {:?}", canonical(bad));
        }
    }
}
