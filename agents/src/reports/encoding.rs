//! Text as it comes in files and bodies: UTF-8, perhaps behind a byte order mark. Pure.

/// The mark that some editors put before UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Text in an encoding that is not read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is {0}, not UTF-8; save it as UTF-8 (in PowerShell: `Out-File -Encoding utf8`)")]
pub struct Foreign(&'static str);

/// The text without a byte order mark. Text in UTF-16 or UTF-32 is refused by name; whether the rest is UTF-8 is left to
/// who reads it.
pub fn without_mark(bytes: &[u8]) -> Result<&[u8], Foreign> {
    if let Some(text) = bytes.strip_prefix(MARK) {
        return Ok(text);
    }
    match bytes {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => Err(Foreign("UTF-32")),
        // Without a mark, the text that is read here begins with a letter of ASCII.
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [1..=0x7f, 0, ..] | [0, 1..=0x7f, ..] => Err(Foreign("UTF-16")),
        _ => Ok(bytes),
    }
}

/// The text as it is, with its mark; or what is wrong with it.
pub fn text(bytes: Vec<u8>) -> Result<String, String> {
    without_mark(&bytes).map_err(|fault| fault.to_string())?;
    String::from_utf8(bytes)
        .map_err(|fault| format!("is no text in UTF-8, from byte {} on", fault.utf8_error().valid_up_to()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_before_utf_8_does_not_count() {
        assert_eq!(without_mark(b"\xef\xbb\xbf{}"), Ok(&b"{}"[..]));
        for plain in [&b"{}"[..], b"", b"{", b"\xef\xbb", b"\0", "é".as_bytes()] {
            assert_eq!(without_mark(plain), Ok(plain));
        }
    }

    #[test]
    fn other_encodings_are_refused_by_name() {
        let utf16: Vec<u8> = "{\"metrics\"".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let marked = [&b"\xff\xfe"[..], &utf16].concat();
        for bytes in [&utf16[..], &marked, b"\xfe\xff\0{", b"\0{\0}"] {
            let told = without_mark(bytes).expect_err("no UTF-8").to_string();
            assert!(told.starts_with("is UTF-16, not UTF-8; save it as UTF-8"), "{told}");
        }
        assert_eq!(without_mark(b"\xff\xfe\0\0{\0\0\0"), Err(Foreign("UTF-32")));
        assert_eq!(text(b"a\xff".to_vec()).expect_err("no UTF-8"), "is no text in UTF-8, from byte 1 on");
    }
}
