//! The result as JUnit XML, which CI systems show: one case for each rule and setting. Pure.

use std::fmt::Write;

use super::xml::escaped;
use crate::gate::model::{Gate, Outcome, RuleCheck};

/// Renders the file.
pub fn text(gate: &Gate) -> String {
    let Gate { headline, title, checks, url, .. } = gate;
    let counts = format!(
        r#"tests="{}" failures="{}" errors="{}" skipped="0" time="{:.3}""#,
        checks.len(),
        gate.count(Outcome::Regression),
        gate.count(Outcome::CannotSay),
        gate.measured_s()
    );
    let name = escaped(title);
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"brewbench gate\" {counts}>\n  \
         <testsuite name=\"{name}\" {counts}>\n"
    );
    for check in checks {
        text.push_str(&case(check));
    }
    let lines: Vec<&str> =
        [headline.as_str()].into_iter().chain(gate.imported.as_deref()).chain([url.as_str()]).collect();
    let out = escaped(&lines.join("\n"));
    let _ = write!(text, "    <system-out>{out}</system-out>\n  </testsuite>\n</testsuites>\n");
    text
}

fn case(check: &RuleCheck) -> String {
    let RuleCheck { rule, setting, outcome, reason, repetitions: [base, new], .. } = check;
    let (class, name, took) = (escaped(setting), escaped(rule), check.measured_s);
    let head = format!("    <testcase classname=\"{class}\" name=\"{name}\" time=\"{took:.3}\"");
    let detail = format!(
        "{reason}; baseline {} ({base} repetitions), candidate {} ({new} repetitions)",
        check.figure(check.baseline),
        check.figure(check.candidate)
    );
    let (reason, detail) = (escaped(reason), escaped(&detail));
    match outcome {
        Outcome::Fine => format!("{head}>\n      <system-out>{detail}</system-out>\n    </testcase>\n"),
        Outcome::Regression => format!(
            "{head}>\n      <failure message=\"{reason}\" type=\"regression\">{detail}</failure>\n    </testcase>\n"
        ),
        Outcome::CannotSay => {
            format!(
                "{head}>\n      <error message=\"{reason}\" type=\"cannot_say\">{detail}</error>\n    </testcase>\n"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::markdown::tests::gate, *};

    #[test]
    fn every_rule_in_every_setting_is_a_case_and_cannot_say_is_an_error() {
        let text = text(&gate());
        assert_eq!(text.matches("<testcase ").count(), 3);
        assert!(text.contains(r#"tests="3" failures="1" errors="1" skipped="0" time="90.000""#), "{text}");
        assert!(text.contains(r#"name="rps&lt;-5%" time="30.000""#), "{text}");
        assert!(text.contains(r#"name="rps&lt;-5%""#) && text.contains(r#"type="cannot_say""#), "{text}");
    }

    #[test]
    fn any_name_gives_well_formed_xml() {
        let text = text(&gate());
        assert!(text.contains("a &quot;branch&quot; &amp; more against main") && !text.contains('\u{1}'), "{text}");
        let mut open: Vec<&str> = Vec::new();
        for tag in text.split('<').skip(2).filter_map(|part| part.split('>').next()) {
            match tag.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name)),
                None => open.push(tag.split(' ').next().unwrap_or_default()),
            }
            assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        }
        assert!(open.is_empty(), "{open:?}");
    }
}
