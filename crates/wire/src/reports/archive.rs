//! Reads the files of a tar or zip archive, which may be compressed, and packs files into one. Pure.

use std::io::{self, Read};

use crate::reports::input::unpack::{self, Opened, to_fault};
use crate::reports::validate::{Fault, Place};
use crate::scenario::Content;
use crate::scenario::unpack::{is_archive, unpack_without_links};

/// Maximum size of a tar, decompressed.
const TAR_MAX: u64 = 128 << 20;

/// A file of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedFile {
    /// Its path, without the folder that all files are in.
    pub path: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// Returns the files of an archive, without hidden ones and symbolic links; `None` if the file is none.
pub fn files(bytes: &[u8]) -> Result<Option<Vec<ArchivedFile>>, Fault> {
    let Opened { head, all, compression } = unpack::open(bytes)?;
    if !is_archive(&head) {
        return Ok(None);
    }
    let mut unpacked = Vec::new();
    let archive = if compression.is_some() {
        all.take(TAR_MAX).read_to_end(&mut unpacked).map_err(|error| to_fault(&error))?;
        unpacked.as_slice()
    } else {
        bytes
    };
    let fault = |what: String| Place::root("the archive").fault(what);
    let unpacked = unpack_without_links(archive).map_err(fault)?;
    if unpacked.entry.is_some() {
        return Err(fault("is a k6 script with its files, and no result".to_owned()));
    }
    let file = |(path, content): (String, Content)| ArchivedFile { path, bytes: content.bytes().to_vec() };
    Ok(Some(unpacked.files.into_iter().map(file).collect()))
}

/// Packs files into an archive, by their paths.
pub fn pack<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        archive.append_data(&mut header, path, bytes)?;
    }
    archive.into_inner()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    #[test]
    fn an_archive_has_its_files_compressed_or_not() {
        let paths = ["results/go/1.json", "results/rust/1.json", "results/.git/config"];
        let plain = pack(paths.map(|path| (path, &b"{}"[..]))).expect("packed");
        let mut compressed = GzEncoder::new(Vec::new(), Compression::fast());
        compressed.write_all(&plain).expect("compressed");
        for bytes in [plain, compressed.finish().expect("compressed")] {
            let found = files(&bytes).expect("read").expect("an archive");
            let paths: Vec<&str> = found.iter().map(|file| file.path.as_str()).collect();
            assert_eq!(paths, ["go/1.json", "rust/1.json"]);
        }
        assert_eq!(files(b"{}"), Ok(None));
        let escapes = files(&zip_of("../x")).expect_err("outside").to_string();
        assert!(escapes.starts_with("the archive: \"../x\": the path"), "{escapes}");
    }

    fn zip_of(path: &str) -> Vec<u8> {
        let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        archive.start_file(path, zip::write::SimpleFileOptions::default()).expect("started");
        archive.finish().expect("packed").into_inner()
    }
}
