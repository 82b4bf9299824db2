//! A line of k6's log: `time="…" level=debug msg="…" executor=s`, as its library logrus writes it. Pure.

use std::borrow::Cow;

use brewbench_wire::sanitize::unquoted;

/// A line of the log. Values are as written, in quotes if they contain special characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// `debug`, `info`, `warning`, `error`, …
    pub level: &'a str,
    message: &'a str,
    fields: &'a str,
}

impl<'a> Entry<'a> {
    /// Reads a line; `None` if it is other text, or not complete.
    pub fn parse(line: &'a str) -> Option<Self> {
        let (_, rest) = value(line.strip_prefix("time=")?)?;
        let (level, rest) = value(rest.strip_prefix(" level=")?)?;
        let (message, fields) = value(rest.strip_prefix(" msg=")?)?;
        Some(Self { level, message, fields })
    }

    /// Returns the message as written, to compare it with others.
    pub fn raw_message(&self) -> &'a str {
        self.message
    }

    /// Returns the message without quotes.
    pub fn message(&self) -> Cow<'a, str> {
        plain(self.message)
    }

    /// Returns the value of a field as written.
    pub fn raw(&self, name: &str) -> Option<&'a str> {
        let mut rest = self.fields;
        loop {
            let (found, after) = rest.strip_prefix(' ')?.split_once('=')?;
            let (value, after) = value(after)?;
            if found == name {
                return Some(value);
            }
            rest = after;
        }
    }

    /// Returns the value of a field without quotes.
    pub fn get(&self, name: &str) -> Option<Cow<'a, str>> {
        self.raw(name).map(plain)
    }

    /// Whether the script wrote it, as opposed to k6.
    pub fn is_of_script(&self) -> bool {
        self.raw("source") == Some("console")
    }
}

/// Splits a value from what follows it; `None` if its quote does not end.
fn value(text: &str) -> Option<(&str, &str)> {
    let end = match text.strip_prefix('"') {
        None => text.find(' ').unwrap_or(text.len()),
        Some(quoted) => {
            let mut is_escaped = false;
            let end = quoted.bytes().position(|byte| {
                let ends = byte == b'"' && !is_escaped;
                is_escaped = byte == b'\\' && !is_escaped;
                ends
            })?;
            end + 2
        }
    };
    Some(text.split_at(end))
}

fn plain(value: &str) -> Cow<'_, str> {
    unquoted(value).map_or(Cow::Borrowed(value), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_and_fields_are_read() {
        let line = r#"time="t" level=warning msg="Request Failed" error="Get \"http://a/\": refused" n=1"#;
        let entry = Entry::parse(line).expect("an entry");
        assert_eq!((entry.level, entry.message().as_ref()), ("warning", "Request Failed"));
        assert_eq!(entry.get("error").as_deref(), Some("Get \"http://a/\": refused"));
        assert_eq!((entry.raw("n"), entry.raw("m"), entry.is_of_script()), (Some("1"), None, false));
        assert_eq!(Entry::parse("time=t level=info msg=up").map(|entry| entry.raw_message()), Some("up"));
    }

    #[test]
    fn what_a_script_writes_is_its_own() {
        let forged = r#"time="t" level=error msg="time=\"x\" level=error msg=\"no\" executor=s source=stacktrace" source=console"#;
        let entry = Entry::parse(forged).expect("an entry");
        assert!(entry.is_of_script() && entry.raw("executor").is_none(), "{entry:?}");
        let escaped = r#"time="t" level=info msg="\\" source=console"#;
        assert!(Entry::parse(escaped).is_some_and(|entry| entry.is_of_script()));
    }

    #[test]
    fn other_and_incomplete_lines_are_no_entries() {
        for line in ["", "running (1.0s)", "time=", r#"time="t" level=error msg="endless"#, "panic: time=\"t\""] {
            assert_eq!(Entry::parse(line), None, "{line}");
        }
    }
}
