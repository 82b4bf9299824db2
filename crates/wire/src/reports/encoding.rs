//! Decodes text of files and request bodies: UTF-8, with or without a byte order mark. Pure.

use std::borrow::Cow;

/// The name of an encoding that can be decoded.
const UTF_16: &str = "UTF-16";

/// The byte order mark of UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Text in an unsupported encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is {0}, not UTF-8; save it as UTF-8 (in PowerShell: `Out-File -Encoding utf8`)")]
pub struct Foreign(&'static str);

/// Removes a byte order mark. Rejects UTF-16 and UTF-32; does not check that the rest is valid UTF-8.
pub fn without_mark(bytes: &[u8]) -> Result<&[u8], Foreign> {
    if let Some(text) = bytes.strip_prefix(MARK) {
        return Ok(text);
    }
    match bytes {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => Err(Foreign("UTF-32")),
        // Without a mark, valid input starts with an ASCII character.
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [1..=0x7f, 0, ..] | [0, 1..=0x7f, ..] => Err(Foreign(UTF_16)),
        _ => Ok(bytes),
    }
}

/// Removes a byte order mark, and turns UTF-16, as PowerShell writes it, into UTF-8. Rejects UTF-32 and broken UTF-16.
pub fn decoded(bytes: &[u8]) -> Result<Cow<'_, [u8]>, Foreign> {
    let fault = match without_mark(bytes) {
        Ok(plain) => return Ok(Cow::Borrowed(plain)),
        Err(fault) => fault,
    };
    let is_big = matches!(bytes, [0xfe, 0xff, ..] | [0, _, ..]);
    let (pairs, rest) = bytes.as_chunks::<2>();
    if fault.0 != UTF_16 || !rest.is_empty() {
        return Err(fault);
    }
    let units = pairs.iter().map(|pair| if is_big { u16::from_be_bytes(*pair) } else { u16::from_le_bytes(*pair) });
    let text: String = char::decode_utf16(units).collect::<Result<_, _>>().map_err(|_| fault)?;
    Ok(Cow::Owned(text.trim_start_matches('\u{feff}').as_bytes().to_vec()))
}

/// Returns the text including its mark, or an error message.
pub fn text(bytes: Vec<u8>) -> Result<String, String> {
    without_mark(&bytes).map_err(|fault| fault.to_string())?;
    String::from_utf8(bytes).map_err(|fault| format!("is not valid UTF-8 at byte {}", fault.utf8_error().valid_up_to()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_is_removed() {
        assert_eq!(without_mark(b"\xef\xbb\xbf{}"), Ok(&b"{}"[..]));
        for plain in [&b"{}"[..], b"", b"{", b"\xef\xbb", b"\0", "é".as_bytes()] {
            assert_eq!(without_mark(plain), Ok(plain));
        }
    }

    #[test]
    fn other_encodings_are_rejected_by_name() {
        let utf16: Vec<u8> = "{\"metrics\"".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let marked = [&b"\xff\xfe"[..], &utf16].concat();
        for bytes in [&utf16[..], &marked, b"\xfe\xff\0{", b"\0{\0}"] {
            let error = without_mark(bytes).expect_err("not UTF-8").to_string();
            assert!(error.starts_with("is UTF-16, not UTF-8; save it as UTF-8"), "{error}");
        }
        assert_eq!(without_mark(b"\xff\xfe\0\0{\0\0\0"), Err(Foreign("UTF-32")));
        for bytes in [&utf16[..], &marked, b"\xfe\xff\0{\0\"\0m\0e\0t\0r\0i\0c\0s\0\""] {
            assert_eq!(decoded(bytes).as_deref(), Ok(&b"{\"metrics\""[..]));
        }
        for broken in [&b"\xff\xfe\0\0{\0\0\0"[..], b"{\0\"", b"\xff\xfe\0\xd8"] {
            assert!(decoded(broken).is_err(), "{broken:?}");
        }
        assert_eq!(text(b"a\xff".to_vec()).expect_err("not UTF-8"), "is not valid UTF-8 at byte 1");
    }
}
