//! Pages of lists: `limit` is how many items a page has, `next` in an answer is `after` of the next page. Pure.

use crate::app::error::{Error, Result};

/// Checks the length of a page.
pub fn limit(given: Option<u32>, default: u32, most: u32) -> Result<u32> {
    let limit = given.unwrap_or(default);
    if !(1..=most).contains(&limit) {
        return Err(Error::Invalid(format!("limit: {limit} is not between 1 and {most}")));
    }
    Ok(limit)
}

/// Cuts items, of which one more than the limit was read, to a page. Returns its last item if there are more pages.
pub fn cut<T>(items: &mut Vec<T>, limit: u32) -> Option<&T> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = items.len() > limit;
    items.truncate(limit);
    items.last().filter(|_| more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_page_has_no_next() {
        for (count, page, next) in [(0, 0, None), (2, 2, None), (3, 2, Some(1))] {
            let mut items: Vec<usize> = (0..count).collect();
            assert_eq!((cut(&mut items, 2).copied(), items.len()), (next, page));
        }
    }

    #[test]
    fn a_limit_that_cannot_be_met_is_an_error() {
        assert_eq!(limit(None, 20, 200).ok(), Some(20));
        assert_eq!(limit(Some(200), 20, 200).ok(), Some(200));
        for wrong in [0, 201] {
            let error = limit(Some(wrong), 20, 200).expect_err("out of range").to_string();
            assert!(error.contains("limit: ") && error.contains("between 1 and 200"), "{error}");
        }
    }
}
