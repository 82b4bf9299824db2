//! What somebody typed into a form.

use url::form_urlencoded;

/// A field of a form's body by its name; none where it is not there.
pub fn field(body: &[u8], name: &str) -> Option<String> {
    form_urlencoded::parse(body).find(|(field, _)| field == name).map(|(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_name_and_read_as_it_was_typed() {
        let body = b"name=a+b%26c&empty=&name=second";
        assert_eq!(field(body, "name").as_deref(), Some("a b&c"));
        assert_eq!(field(body, "empty").as_deref(), Some(""));
        assert_eq!(field(body, "nam"), None);
    }
}
