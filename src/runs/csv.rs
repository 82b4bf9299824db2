//! CSV (RFC 4180) in which spreadsheets find no formulas. Pure.

/// Writes one line, including the line end.
pub fn line<'a>(cells: impl IntoIterator<Item = &'a str>) -> String {
    let cells: Vec<String> = cells.into_iter().map(cell).collect();
    format!("{}\r\n", cells.join(","))
}

/// Quotes a cell. An apostrophe before text that looks like a formula makes spreadsheets treat it as text; numbers may
/// start with a minus.
fn cell(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    let safe = if is_formula && text.parse::<f64>().is_err() { format!("'{text}") } else { text.to_owned() };
    if safe.contains([',', '"', '\n', '\r']) { format!("\"{}\"", safe.replace('"', "\"\"")) } else { safe }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_if_necessary() {
        assert_eq!(line(["a", "b,c", "d\"e", "f\ng", ""]), "a,\"b,c\",\"d\"\"e\",\"f\ng\",\r\n");
    }

    #[test]
    fn a_text_that_looks_like_a_formula_stays_text_and_a_number_stays_a_number() {
        for (text, safe) in [
            ("=1+1", "'=1+1"),
            ("+cmd", "'+cmd"),
            ("-2+3", "'-2+3"),
            ("@x", "'@x"),
            ("\t=1", "'\t=1"),
            ("-3.5", "-3.5"),
            ("a=1", "a=1"),
        ] {
            assert_eq!(cell(text), safe);
        }
    }
}
