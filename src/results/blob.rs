//! Compresses long texts with zlib.

use std::{cell::RefCell, io::Read};

use flate2::{Compress, Compression, FlushCompress, Status, read::ZlibDecoder};

thread_local! {
    /// Reused, because allocating its tables takes longer than compressing a summary.
    static PACKER: RefCell<Compress> = RefCell::new(Compress::new(Compression::fast(), true));
}

/// Compresses bytes, fast rather than small, because every result waits for it.
///
/// # Panics
/// Never: a packer that was reset accepts any bytes.
pub fn pack(bytes: &[u8]) -> Vec<u8> {
    PACKER.with_borrow_mut(|packer| {
        packer.reset();
        let (mut packed, mut rest) = (Vec::with_capacity(bytes.len() / 2 + 64), bytes);
        loop {
            let before = packer.total_in();
            let status =
                packer.compress_vec(rest, &mut packed, FlushCompress::Finish).expect("a packer that was reset");
            if status == Status::StreamEnd {
                return packed;
            }
            let consumed = usize::try_from(packer.total_in() - before).expect("no more than the rest");
            rest = &rest[consumed..];
            packed.reserve(packed.capacity());
        }
    })
}

/// Decompresses a blob.
pub fn unpack(blob: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(blob.len() * 4);
    ZlibDecoder::new(blob).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_is_lossless() {
        // Incompressible bytes work, too, and the packer keeps no state between calls.
        let noise: Vec<u8> = (0..100_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_769).to_be_bytes()).collect();
        for bytes in [&b""[..], b"k6", &noise, &noise] {
            assert_eq!(unpack(&pack(bytes)).expect("a complete blob"), bytes);
        }
        let text = "http_reqs ".repeat(1_000);
        let blob = pack(text.as_bytes());
        assert!(blob.len() < text.len() / 10);
        assert_eq!(unpack(&blob).expect("a complete blob"), text.as_bytes());
        assert!(unpack(&blob[..blob.len() / 2]).is_err());
    }
}
