//! Reads the text format of Prometheus, as far as counters and gauges need it. Pure.
//!
//! The format is described at <https://prometheus.io/docs/instrumenting/exposition_formats/>.

use std::collections::BTreeMap;

/// Labels of a series.
pub type Labels = BTreeMap<String, String>;

/// One line with a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its labels.
    pub labels: Labels,
    /// Its value; may be infinite or not a number.
    pub value: f64,
}

/// Returns the series of a metric. Lines that can't be read are skipped.
pub fn series<'a>(text: &'a str, metric: &'a str) -> impl Iterator<Item = Series> + 'a {
    text.lines().filter_map(move |line| {
        let rest = line.trim_start().strip_prefix(metric)?;
        let (labels, rest) = match rest.strip_prefix('{') {
            Some(inner) => labels(inner)?,
            // Otherwise it is another metric whose name is longer.
            None => (Labels::new(), rest.strip_prefix([' ', '\t'])?),
        };
        // A timestamp may follow.
        let value = rest.split_whitespace().next()?.parse().ok()?;
        Some(Series { labels, value })
    })
}

/// Reads labels up to the closing brace. Returns them with the rest of the line.
fn labels(mut text: &str) -> Option<(Labels, &str)> {
    let mut labels = Labels::new();
    loop {
        text = text.trim_start_matches([' ', '\t', ',']);
        if let Some(rest) = text.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, rest) = text.split_once('=')?;
        let (value, rest) = quoted(rest.trim_start())?;
        labels.insert(name.trim().to_owned(), value);
        text = rest;
    }
}

/// Reads a text in quotes. Returns it with the rest of the line.
fn quoted(text: &str) -> Option<(String, &str)> {
    let inner = text.strip_prefix('"')?;
    let mut value = String::new();
    let mut letters = inner.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, &inner[at + 1..])),
            '\\' => value.push(match letters.next()?.1 {
                'n' => '\n',
                other => other,
            }),
            _ => value.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_of_a_metric_are_read_and_others_skipped() {
        let text = "# HELP cpu_total Seconds.\n# TYPE cpu_total counter\ncpu_total 1.5\ncpu_total_extra 9\n\
            cpu_total{cpu=\"0\",path=\"a,b=c\\\"}\"} 2e3 1543182234000\n  cpu_total { } 3\ncpu_total{broken 4\ncpu_total x\n\
            cpu_total{cpu=\"1\",} NaN\n";
        let found: Vec<_> = series(text, "cpu_total").collect();
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!((&found[0].labels, found[0].value), (&Labels::new(), 1.5));
        assert_eq!((found[1].labels["path"].as_str(), found[1].value), ("a,b=c\"}", 2_000.0));
        assert!(found[2].value.is_nan() && found[2].labels["cpu"] == "1");
    }

    proptest! {
        /// Whatever a label contains.
        #[test]
        fn a_written_label_is_read(value in any::<String>(), text in any::<String>()) {
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            // A line ends there, too, and labels have no carriage returns in practice.
            prop_assume!(!value.contains('\r'));
            let line = format!("m{{a=\"{escaped}\"}} 1");
            let found: Vec<_> = series(&line, "m").collect();
            prop_assert_eq!(&found[0].labels["a"], &value);
            // No input panics.
            let _ = series(&text, "m").count() + series(&format!("m{text}"), "m").count();
        }
    }
}
