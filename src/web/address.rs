//! Names in addresses.

/// A name as one segment of a path, whatever is in it.
pub fn segment(name: &str) -> String {
    name.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => char::from(byte).to_string(),
            // Dots as well: a segment of one or two of them would lead elsewhere.
            other => format!("%{other:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_leads_out_of_its_segment() {
        assert_eq!(segment("go-nethttp"), "go-nethttp");
        assert_eq!(segment("2 vCPU / 4 GiB"), "2%20vCPU%20%2F%204%20GiB");
        assert_eq!(segment("a?b#c\"<é>'"), "a%3Fb%23c%22%3C%C3%A9%3E%27");
    }
}
