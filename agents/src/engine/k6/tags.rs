//! Chooses the system tags that k6 puts on its metrics.
//!
//! Each set of tags is a separate series, in k6's memory and in each push. k6 tags by URL, so a script that requests
//! ten thousand pages would create ten thousand series. A tag is omitted if neither the summary nor the series needs
//! it, and the script does not seem to use it: a threshold on a missing tag would silently pass.

/// Tags needed for the summary, the series and the counts of requests: `method`, `proto` and `status` have few values.
const NEEDED: [&str; 7] = ["check", "expected_response", "group", "method", "proto", "scenario", "status"];

/// k6's other default tags.
const OPTIONAL: [&str; 7] = ["error", "error_code", "name", "service", "subproto", "tls_version", "url"];

/// Tags that k6 sets only if the script chooses them.
const CHOSEN: [&str; 4] = ["ip", "iter", "ocsp_status", "vu"];

/// Returns the value of `--system-tags`: needed tags, and those that occur as a word in the script, its files or its
/// parameters. A script's own choice is completed: without the needed tags nobody knows which requests failed.
pub fn system_tags(texts: &[&str]) -> String {
    let occurs = |word: &str| texts.iter().any(|text| text.split(|c| !is_word_char(c)).any(|found| found == word));
    let chosen = CHOSEN.into_iter().filter(|_| occurs("systemTags"));
    let mentioned = OPTIONAL.into_iter().chain(chosen).filter(|tag| occurs(tag));
    NEEDED.into_iter().chain(mentioned).collect::<Vec<_>>().join(",")
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_needed_tags_are_set_if_no_other_is_mentioned() {
        let script = "http.get(`${__ENV.BASE_URL}/names/${__ITER}`); // the_url";
        assert_eq!(system_tags(&[script]), "check,expected_response,group,method,proto,scenario,status");
    }

    #[test]
    fn a_tag_mentioned_by_a_threshold_is_set() {
        let has = |text: &str, tag: &str| system_tags(&["", text]).ends_with(&format!(",{tag}"));
        assert!(has("thresholds: { 'http_req_duration{name:front page}': ['p(95)<200'] }", "name"));
        assert!(has("thresholds[`http_req_failed{${tag}:${value}}`], for (const tag of ['url'])", "url"));
        assert!(has("error_code", "error_code"));
    }

    #[test]
    fn the_choice_of_a_script_is_completed() {
        let tags = system_tags(&["export const options = { systemTags: ['url', 'vu'] };"]);
        assert_eq!(tags, "check,expected_response,group,method,proto,scenario,status,url,vu");
        assert!(!system_tags(&["vu"]).ends_with(",vu"), "a variable of the script");
    }
}
