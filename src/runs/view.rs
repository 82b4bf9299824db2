//! The view of a history that its address describes: filters, order and columns.

use super::{
    column::{self, Column},
    filter::RunQuery,
};

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
