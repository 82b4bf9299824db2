//! Reads scenarios from archives: k6's, or the tar or zip of a folder. Their content is not trusted. Pure.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};

use super::{Content, MAX_BYTES, MAX_FILES, REMOTE};

/// More entries are not read.
const MAX_ENTRIES: usize = 4 * MAX_FILES;

/// The files of an archive.
#[derive(Debug, PartialEq)]
pub struct Unpacked {
    /// The path of the script; none if the archive is not k6's.
    pub entry: Option<String>,
    /// All files by path.
    pub files: BTreeMap<String, Content>,
}

/// Whether a file is an archive, by its first bytes.
pub fn is_archive(bytes: &[u8]) -> bool {
    is_zip(bytes) || bytes.get(257..262) == Some(b"ustar")
}

/// Reads an archive. The error is a sentence that names the entry.
pub fn unpack(bytes: &[u8]) -> Result<Unpacked, String> {
    unpack_with(bytes, Reader::default())
}

/// Reads an archive without its symbolic links.
pub fn unpack_without_links(bytes: &[u8]) -> Result<Unpacked, String> {
    unpack_with(bytes, Reader { skips_links: true, ..Reader::default() })
}

fn unpack_with(bytes: &[u8], mut reader: Reader) -> Result<Unpacked, String> {
    if is_zip(bytes) {
        read_zip(bytes, &mut reader)?;
    } else {
        read_tar(bytes, &mut reader)?;
    }
    match reader.files.remove("metadata.json") {
        Some(metadata) if reader.files.contains_key("data") => from_k6(&metadata, reader.files),
        metadata => {
            reader.files.extend(metadata.map(|file| ("metadata.json".to_owned(), file)));
            let files = reader.files.into_iter().filter(|(path, _)| !is_ignored(path)).collect();
            Ok(Unpacked { entry: None, files: without_top(files) })
        }
    }
}

/// Whether a file in a folder is not for k6: hidden ones and packages.
pub fn is_ignored(path: &str) -> bool {
    !path.starts_with(REMOTE) && path.split('/').any(|name| name.starts_with('.') || name == "node_modules")
}

/// Removes the folder that all files are in, if there is one.
pub fn without_top(files: BTreeMap<String, Content>) -> BTreeMap<String, Content> {
    let top = files.keys().next().and_then(|path| path.split_once('/')).map(|(top, _)| format!("{top}/"));
    match top.filter(|top| files.keys().all(|path| path.starts_with(top.as_str()))) {
        Some(top) => files.into_iter().map(|(path, file)| (path[top.len()..].to_owned(), file)).collect(),
        None => files,
    }
}

fn is_zip(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06")
}

/// Collects files within limits.
#[derive(Default)]
struct Reader {
    files: BTreeMap<String, Content>,
    bytes: usize,
    /// Whether symbolic links are no error.
    skips_links: bool,
}

impl Reader {
    fn add(&mut self, path: &str, from: impl Read) -> Result<(), String> {
        if self.files.len() >= 2 * MAX_FILES {
            return Err(format!("the archive has more than {MAX_FILES} files"));
        }
        let room = 2 * MAX_BYTES - self.bytes;
        let mut content = Vec::new();
        let limit = u64::try_from(room + 1).unwrap_or(u64::MAX);
        from.take(limit).read_to_end(&mut content).map_err(|error| format!("{path:?} can't be read: {error}"))?;
        if content.len() > room {
            return Err(format!("the files have more than {} MiB", MAX_BYTES >> 20));
        }
        self.bytes += content.len();
        match self.files.insert(path.to_owned(), content.into()) {
            Some(_) => Err(format!("{path:?} occurs twice")),
            None => Ok(()),
        }
    }
}

fn read_tar(bytes: &[u8], reader: &mut Reader) -> Result<(), String> {
    let broken = |error: std::io::Error| format!("this is not a complete tar archive: {error}");
    let mut archive = tar::Archive::new(bytes);
    for (number, entry) in archive.entries().map_err(broken)?.enumerate() {
        let entry = entry.map_err(broken)?;
        if number >= MAX_ENTRIES {
            return Err(format!("the archive has more than {MAX_FILES} files"));
        }
        let path = String::from_utf8(entry.path_bytes().into_owned())
            .map_err(|error| format!("{:?} is not UTF-8", String::from_utf8_lossy(error.as_bytes())))?;
        let path = path.strip_prefix("./").unwrap_or(&path);
        let kind = entry.header().entry_type();
        if kind.is_file() || kind == tar::EntryType::Continuous {
            super::check_path(path).map_err(|why| format!("{path:?}: {why}"))?;
            reader.add(path, entry)?;
        } else if kind.is_hard_link() && entry.link_name_bytes().as_deref() == Some(b"data") {
            // k6's script, which its metadata names.
        } else if kind.is_symlink() && reader.skips_links {
            // What it names may be outside.
        } else if !kind.is_dir() && !kind.is_pax_global_extensions() {
            return Err(format!("{path:?} is neither a file nor a folder: links and devices are not accepted"));
        }
    }
    Ok(())
}

fn read_zip(bytes: &[u8], reader: &mut Reader) -> Result<(), String> {
    let broken = |error: zip::result::ZipError| format!("this is not a complete zip archive: {error}");
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(broken)?;
    if archive.len() > MAX_ENTRIES {
        return Err(format!("the archive has more than {MAX_FILES} files"));
    }
    for index in 0..archive.len() {
        let file = archive.by_index(index).map_err(broken)?;
        let path = String::from_utf8(file.name_raw().to_owned())
            .map_err(|error| format!("{:?} is not UTF-8", String::from_utf8_lossy(error.as_bytes())))?;
        if file.is_dir() {
            continue;
        }
        if file.is_symlink() && reader.skips_links {
            continue;
        }
        if file.is_symlink() {
            return Err(format!("{path:?} is neither a file nor a folder: links and devices are not accepted"));
        }
        super::check_path(&path).map_err(|why| format!("{path:?}: {why}"))?;
        reader.add(&path, file)?;
    }
    Ok(())
}

/// Reads the files of a k6 archive: `file/…`, `https/…` and `data`, the script. The folders that all files are in are
/// those of the machine that packed it.
fn from_k6(metadata: &Content, files: BTreeMap<String, Content>) -> Result<Unpacked, String> {
    #[derive(serde::Deserialize)]
    struct Metadata {
        filename: String,
    }
    let metadata: Metadata =
        serde_json::from_slice(metadata.bytes()).map_err(|error| format!("\"metadata.json\" of k6: {error}"))?;
    let script = url::Url::parse(&metadata.filename).ok().filter(|url| url.scheme() == "file");
    let script = script
        .and_then(|url| decoded(url.path()))
        .ok_or_else(|| format!("the script of the archive is {:?}, which is no file", metadata.filename))?;
    let (mut local, mut remote, mut data) = (BTreeMap::new(), BTreeMap::new(), None);
    for (path, content) in files {
        match (path.strip_prefix("file/"), path.strip_prefix("https/")) {
            (Some(own), _) => drop(local.insert(own.to_owned(), content)),
            (_, Some(module)) => drop(remote.insert(format!("{REMOTE}{module}"), content)),
            _ if path == "data" => data = Some(content),
            _ => return Err(format!("{path:?} is not in a k6 archive")),
        }
    }
    let script = script.trim_start_matches('/').to_owned();
    local.extend(data.map(|data| (script.clone(), data)));
    let above = common_folder(local.keys().map(String::as_str)).to_owned();
    let mut files: BTreeMap<_, _> =
        local.into_iter().map(|(path, file)| (path[above.len()..].to_owned(), file)).collect();
    files.append(&mut remote);
    Ok(Unpacked { entry: Some(script[above.len()..].to_owned()), files })
}

/// Decodes the path of a URL.
fn decoded(path: &str) -> Option<String> {
    let mut bytes = path.bytes();
    let mut all = Vec::with_capacity(path.len());
    while let Some(byte) = bytes.next() {
        all.push(if byte == b'%' {
            let digits = [bytes.next()?, bytes.next()?];
            u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
        } else {
            byte
        });
    }
    String::from_utf8(all).ok()
}

/// Returns the longest folder, as a prefix, that all paths are in.
fn common_folder<'a>(mut paths: impl Iterator<Item = &'a str>) -> &'a str {
    let folder = |path: &'a str| path.rfind('/').map_or("", |end| &path[..=end]);
    let first = paths.next().map(folder).unwrap_or_default();
    paths.fold(first, |mut common, path| {
        while !path.starts_with(common) {
            common = folder(&common[..common.len() - 1]);
        }
        common
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tar::{Builder, EntryType, Header};

    use super::*;

    /// Packs entries as they are, however wrong they are.
    fn packed(entries: &[(EntryType, &[u8], &[u8])]) -> Vec<u8> {
        let mut archive = Builder::new(Vec::new());
        for (kind, path, content) in entries {
            let mut header = Header::new_gnu();
            header.as_gnu_mut().expect("GNU").name[..path.len()].copy_from_slice(path);
            header.set_entry_type(*kind);
            header.set_size(if *kind == EntryType::Regular { content.len() as u64 } else { 0 });
            if *kind != EntryType::Regular {
                header.as_gnu_mut().expect("GNU").linkname[..content.len()].copy_from_slice(content);
            }
            header.set_cksum();
            archive.append(&header, if *kind == EntryType::Regular { *content } else { b"" }).expect("appended");
        }
        archive.into_inner().expect("packed")
    }

    fn zipped(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (path, content) in entries {
            archive.start_file(*path, zip::write::SimpleFileOptions::default()).expect("started");
            archive.write_all(content).expect("written");
        }
        archive.finish().expect("packed").into_inner()
    }

    fn file<'a>(path: &'a str, content: &'a str) -> (EntryType, &'a [u8], &'a [u8]) {
        (EntryType::Regular, path.as_bytes(), content.as_bytes())
    }

    #[test]
    fn a_k6_archive_loses_the_folders_of_its_machine() {
        let metadata = r#"{"type": "js", "filename": "file:///home/nobody/my%20tests/main.ts", "options": {}}"#;
        let bytes = packed(&[
            file("metadata.json", metadata),
            file("data", "script"),
            (EntryType::Directory, b"file/home", b""),
            (EntryType::Link, b"file/home/nobody/my tests/main.ts", b"data"),
            file("file/home/nobody/lib/a.ts", "a"),
            file("https/jslib.k6.io/x/index.js", "x"),
        ]);
        assert!(is_archive(&bytes));
        let Unpacked { entry, files } = unpack(&bytes).expect("read");
        assert_eq!(entry.as_deref(), Some("my tests/main.ts"));
        let paths: Vec<&str> = files.keys().map(String::as_str).collect();
        assert_eq!(paths, ["https://jslib.k6.io/x/index.js", "lib/a.ts", "my tests/main.ts"]);
        assert_eq!(files["my tests/main.ts"].text(), Some("script"));
    }

    #[test]
    fn a_folder_is_read_without_its_name_and_its_hidden_files() {
        let bytes = packed(&[file("./load/main.js", "1"), file("load/.git/x", ""), file("load/a/b.csv", "2")]);
        let Unpacked { entry, files } = unpack(&bytes).expect("read");
        assert_eq!((entry, files.keys().map(String::as_str).collect::<Vec<_>>()), (None, vec!["a/b.csv", "main.js"]));
    }

    #[test]
    fn what_is_not_a_file_below_the_folder_is_refused() {
        let fault = |entries: &[(EntryType, &[u8], &[u8])]| unpack(&packed(entries)).expect_err("refused");
        for path in ["../x", "/etc/passwd", "a/../../x", "a//b"] {
            assert!(fault(&[file(path, "")]).starts_with(&format!("{path:?}: the path ")), "{path}");
        }
        for kind in [EntryType::Symlink, EntryType::Link, EntryType::Char, EntryType::Block, EntryType::Fifo] {
            assert!(fault(&[(kind, b"x", b"/etc/passwd")]).contains("neither a file nor a folder"), "{kind:?}");
        }
        assert!(fault(&[(EntryType::Regular, b"\xff.js", b"")]).contains("is not UTF-8"));
        assert!(fault(&[file("a.js", "1"), file("a.js", "2")]).contains("\"a.js\" occurs twice"));
        assert!(unpack(b"nonsense").is_err());
        let many = vec![(EntryType::Directory, &b"x"[..], &b""[..]); MAX_ENTRIES + 1];
        assert!(fault(&many).contains("more than 2000 files"));
        let mut cut = packed(&[file("a.js", "1")]);
        cut.truncate(515);
        assert!(unpack(&cut).is_err());
    }

    #[test]
    fn links_are_skipped_if_that_is_asked_for() {
        let tar = packed(&[file("load/a.json", "1"), (EntryType::Symlink, b"load/latest.json", b"a.json")]);
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let options = zip::write::SimpleFileOptions::default();
        zip.start_file("load/a.json", options).expect("started");
        zip.add_symlink("load/latest.json", "a.json", options).expect("added");
        for bytes in [tar, zip.finish().expect("packed").into_inner()] {
            assert!(unpack(&bytes).is_err_and(|why| why.contains("links and devices are not accepted")));
            let files = unpack_without_links(&bytes).expect("read").files;
            assert_eq!(files.keys().map(String::as_str).collect::<Vec<_>>(), ["a.json"]);
        }
        let device = packed(&[(EntryType::Char, b"x", b"")]);
        assert!(unpack_without_links(&device).is_err_and(|why| why.contains("neither a file nor a folder")));
    }

    #[test]
    fn a_zip_is_read_like_a_tar() {
        let bytes = zipped(&[("load/main.js", b"1"), ("load/a.bin", b"\xff")]);
        assert!(is_archive(&bytes));
        let files = unpack(&bytes).expect("read").files;
        assert_eq!(files["a.bin"].bytes(), b"\xff");
        assert!(unpack(&zipped(&[("../x", b"")])).is_err_and(|why| why.starts_with("\"../x\": the path")));
        // It has 1/1000 of its size.
        let zeros = zipped(&[("zeros", &vec![0; 2 * MAX_BYTES + 1])]);
        assert!(zeros.len() < MAX_BYTES / 100);
        assert!(unpack(&zeros).is_err_and(|why| why.starts_with("the files have more than")));
        assert!(unpack(&bytes[..bytes.len() - 30]).is_err());
    }

    proptest::proptest! {
        #[test]
        fn damaged_archives_are_errors_or_files_below_the_folder(
            damage in proptest::collection::vec((0..4096_usize, proptest::prelude::any::<u8>()), 1..6),
            is_zip: bool,
        ) {
            let metadata = r#"{"filename": "file:///a/main.ts"}"#;
            let entries = [file("metadata.json", metadata), file("data", "1"), file("file/a/b.csv", "2")];
            let mut bytes = if is_zip { zipped(&[("load/main.js", b"1"), ("load/a.csv", b"2")]) } else { packed(&entries) };
            for (at, byte) in damage {
                let at = at % bytes.len();
                bytes[at] = byte;
            }
            for path in unpack(&bytes).into_iter().flat_map(|unpacked| unpacked.files.into_keys()) {
                proptest::prop_assert!(!path.split('/').any(|name| name == ".."), "{}", path);
            }
        }
    }
}
