//! Form bodies.

use url::form_urlencoded;

/// Returns the first field with this name in a form's body.
pub fn field(body: &[u8], name: &str) -> Option<String> {
    form_urlencoded::parse(body).find(|(field, _)| field == name).map(|(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_name_and_decoded() {
        let body = b"name=a+b%26c&empty=&name=second";
        assert_eq!(field(body, "name").as_deref(), Some("a b&c"));
        assert_eq!(field(body, "empty").as_deref(), Some(""));
        assert_eq!(field(body, "nam"), None);
    }
}
