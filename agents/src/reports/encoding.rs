//! Decodes text of files and request bodies: UTF-8, with or without a byte order mark. Pure.

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
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [1..=0x7f, 0, ..] | [0, 1..=0x7f, ..] => Err(Foreign("UTF-16")),
        _ => Ok(bytes),
    }
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
        assert_eq!(text(b"a\xff".to_vec()).expect_err("not UTF-8"), "is not valid UTF-8 at byte 1");
    }
}
