//! Which tags k6 puts on its figures by itself.
//!
//! Each set of tags is a series of its own, in k6's memory and in each push. k6 tags by address, so a script that asks
//! for ten thousand pages would have ten thousand sets. A tag is left away if it is needed neither for the summary nor
//! for the series, and if the script can't mean it: thresholds name tags, and one that is not there would pass unheard.

/// By these k6 builds its summary, and we the series and what is known of the work: `proto` and `status` have few values.
const NEEDED: [&str; 6] = ["check", "expected_response", "group", "proto", "scenario", "status"];

/// The others that k6 sets if it is not told otherwise.
const OPTIONAL: [&str; 8] = ["error", "error_code", "method", "name", "service", "subproto", "tls_version", "url"];

/// For k6's `--system-tags`: what is needed and whatever occurs as a word in the script, its files or its parameters.
/// Nothing, if the script chooses its tags itself.
pub fn system_tags(texts: &[&str]) -> Option<String> {
    let occurs = |word: &str| texts.iter().any(|text| text.split(|c| !is_of_a_word(c)).any(|found| found == word));
    if occurs("systemTags") {
        return None;
    }
    let mentioned = OPTIONAL.into_iter().filter(|tag| occurs(tag));
    Some(NEEDED.into_iter().chain(mentioned).collect::<Vec<_>>().join(","))
}

fn is_of_a_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_needed_is_set_where_nothing_else_is_mentioned() {
        let script = "http.get(`${__ENV.BASE_URL}/names/${__ITER}`); // the_url";
        assert_eq!(system_tags(&[script]).as_deref(), Some("check,expected_response,group,proto,scenario,status"));
    }

    #[test]
    fn a_tag_that_a_threshold_may_mean_is_kept() {
        let kept =
            |text: &str, tag: &str| system_tags(&["", text]).is_some_and(|tags| tags.ends_with(&format!(",{tag}")));
        assert!(kept("thresholds: { 'http_req_duration{name:front page}': ['p(95)<200'] }", "name"));
        assert!(kept("thresholds[`http_req_failed{${tag}:${value}}`], for (const tag of ['url'])", "url"));
        assert!(kept("error_code", "error_code"));
    }

    #[test]
    fn a_script_that_chooses_its_tags_is_obeyed() {
        assert_eq!(system_tags(&["export const options = { systemTags: ['url'] };"]), None);
    }
}
