//! JSON among brackets, texts that begin like JSON, and JSON that breaks off.

use super::{contents, fault, one, text};

#[test]
fn lines_in_brackets_and_braces_hide_no_json() {
    let log = "[12:00:01] build step\n[ ok ] service\n{{ template }}\n".repeat(60);
    let all = [text("wrk.txt"), log, text("oha.json")].join("\n");
    let formats: Vec<&str> = contents(all.as_bytes()).reports.iter().map(|report| report.format).collect();
    assert_eq!(formats, ["wrk", "oha"]);
}

#[test]
fn a_text_may_begin_like_json() {
    for (name, line) in [("wrk.txt", "[INFO] starting"), ("oha.json", "[1/2] \"load\""), ("ab.txt", "\"load\"")] {
        let found = one(format!("{line}\n{}", text(name)).as_bytes());
        assert_eq!(found.requests, one(text(name).as_bytes()).requests, "{name}");
    }
    let table = "\"server\",\"requests/s\",\"p99\"\n\"a\",\"1000\",\"12\"\n";
    let message = fault(table.as_bytes());
    assert!(
        message.contains("is like a table as CSV, TSV or Markdown, but line 2: p99: \"12\" has no unit"),
        "{message}"
    );
    assert_eq!(message, fault(table.replace('"', "").as_bytes()));
    assert!(fault(b"\"text\"").starts_with("the document: is a string of no known format"));
    let cut = text("httparena.json");
    let cut = fault(cut.get(..cut.len() - 20).unwrap_or_default().as_bytes());
    assert!(cut.starts_with("line "), "{cut}");
}

#[test]
fn a_truncated_json_among_others_is_refused_with_its_line() {
    for name in ["oha.json", "k6-summary-export.json", "vegeta.json", "bombardier.json", "fortio.json"] {
        let whole = text(name);
        let cut = whole.get(..whole.len() * 9 / 10).unwrap_or_default();
        for [before, after] in [["", ""], ["```json\n", "\n```\n"], ["", "\n\n# newest\n\nNothing.\n"]] {
            let all = format!("# old\n\n{before}{whole}{after}\n\n# new\n\n{before}{cut}{after}");
            let found = contents(all.as_bytes());
            assert_eq!(found.reports.len(), 1, "{name}: {found:?}");
            let line = all.lines().position(|line| line == "# new").expect("a heading") + 3 + before.lines().count();
            let expected = format!(
                "line {line}: JSON begins here that breaks off or is damaged: replace it by the complete result, or \
                 remove it"
            );
            assert_eq!(found.refused.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected], "{name}");
        }
    }
    for other in
        ["{\n", "{ not JSON\n", "{\"level\": \"info\", \"message\": \"cut", "```\n{\n  \"a\": 1,\n  ...\n}\n```\n"]
    {
        let found = contents(format!("{}\n{other}", text("wrk.txt")).as_bytes());
        assert_eq!((found.reports.len(), found.refused), (1, Vec::new()), "{other}");
    }
}
