//! Long texts as zlib blobs.

use std::io::{Read, Write};

use flate2::{Compression, read::ZlibDecoder, write::ZlibEncoder};

/// Compresses; fast rather than small, because every result waits for it.
///
/// # Panics
/// Never: writing to memory does not fail.
pub fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("writing to memory does not fail")
}

/// What was packed.
pub fn unpack(blob: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(blob.len() * 4);
    ZlibDecoder::new(blob).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_comes_back() {
        let text = "http_reqs ".repeat(1_000);
        let blob = pack(text.as_bytes());
        assert!(blob.len() < text.len() / 10);
        assert_eq!(unpack(&blob).expect("a whole blob"), text.as_bytes());
        assert!(unpack(&blob[..blob.len() / 2]).is_err());
    }
}
