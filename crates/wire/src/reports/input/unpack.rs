//! Decompresses and bounds a file while it is read. Pure.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::reports::validate::{Fault, Place};

/// Maximum size of a file of records, decompressed.
const RECORDS_MAX: u64 = 2 << 30;

/// Maximum length of a line in a file of records.
const LINE_MAX: usize = 1 << 20;

/// Maximum length of a record that may span lines.
const RECORD_MAX: usize = 4 << 20;

/// Maximum size of a file that is read as a whole, decompressed.
pub const DOCUMENT_MAX: usize = 16 << 20;

/// Bytes by which the format of a file of records is recognised.
pub const HEAD: u64 = 64 << 10;

/// A zstd frame without content.
const EMPTY_FRAME: [u8; 9] = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 1, 0, 0];

/// A decompressed file with its start.
pub struct Opened<'a> {
    /// Its first bytes: all of them if there are less than 64 KiB.
    pub head: Vec<u8>,
    /// All of it.
    pub all: Chain<Cursor<Vec<u8>>, Box<dyn Read + 'a>>,
    /// The compression.
    pub compression: Option<&'static str>,
}

/// Opens a file: recognises its compression by its first bytes.
pub fn open<'a>(mut source: impl Read + 'a) -> Result<Opened<'a>, Fault> {
    let mut magic = Vec::new();
    source.by_ref().take(4).read_to_end(&mut magic).map_err(|error| to_fault(&error))?;
    let compression = match magic.as_slice() {
        [0x1f, 0x8b, ..] => Some("gzip"),
        // A file may begin with a frame that is skipped.
        [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => Some("zstd"),
        _ => None,
    };
    let packed = Cursor::new(magic).chain(source);
    let mut plain: Box<dyn Read + 'a> = match compression {
        Some("gzip") => Box::new(flate2::read::MultiGzDecoder::new(BufReader::new(packed))),
        Some(_) => Box::new(Frames::new(packed).map_err(|error| to_fault(&error))?),
        None => Box::new(packed),
    };
    let mut head = Vec::new();
    plain.by_ref().take(HEAD).read_to_end(&mut head).map_err(|error| to_fault(&error))?;
    Ok(Opened { all: Cursor::new(head.clone()).chain(plain), head, compression })
}

/// All frames of a zstd file, one after another.
struct Frames<R> {
    source: BufReader<R>,
    decoder: FrameDecoder,
}

impl<R: Read> Frames<R> {
    fn new(source: R) -> io::Result<Self> {
        let mut decoder = FrameDecoder::new();
        // The decoder limits the windows of all frames but its first one.
        decoder.decode_all(&EMPTY_FRAME, &mut []).map_err(io::Error::other)?;
        Ok(Self { source: BufReader::new(source), decoder })
    }

    /// Begins the next frame, or skips one.
    fn begin(&mut self) -> io::Result<()> {
        let skipped = match self.decoder.reset(&mut self.source) {
            Ok(()) => return Ok(()),
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => length,
            Err(FrameDecoderError::WindowSizeTooBig { .. }) => {
                return Err(io::Error::other("its zstd window is larger than 100 MiB: compress it without --long"));
            }
            Err(error) => return Err(io::Error::other(format!("a zstd frame was expected: {error}"))),
        };
        let length = u64::from(skipped);
        if io::copy(&mut self.source.by_ref().take(length), &mut io::sink())? < length {
            return Err(io::Error::other("its last zstd frame is truncated"));
        }
        Ok(())
    }
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.decoder.can_collect() == 0 {
            if !self.decoder.is_finished() {
                let block = self.decoder.decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1));
                block.map_err(io::Error::other)?;
            } else if self.source.fill_buf()?.is_empty() {
                return Ok(0);
            } else {
                self.begin()?;
            }
        }
        self.decoder.read(into)
    }
}

/// Reads all of a file that is read as a whole.
pub fn document(source: impl Read) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    source.take(DOCUMENT_MAX as u64 + 1).read_to_end(&mut bytes).map_err(|error| to_fault(&error))?;
    if bytes.len() > DOCUMENT_MAX {
        let what = "is larger than 16 MiB and of no format that is read line by line: import a summary of it";
        return Err(Place::root("the file").fault(what));
    }
    Ok(bytes)
}

/// A failure to read or decompress, as a sentence.
pub fn to_fault(error: &io::Error) -> Fault {
    Place::root("the file").fault(format_args!("can't be read: {error}"))
}

/// Bounds a file of records, and each of its lines, so that no input takes unbounded memory.
pub struct Records<R> {
    inner: R,
    left: u64,
    line: usize,
}

impl<R> Records<R> {
    /// Bounds a source.
    pub fn new(inner: R) -> Self {
        Self { inner, left: RECORDS_MAX, line: 0 }
    }
}

impl<R: Read> Read for Records<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(into)?;
        self.left = self.left.checked_sub(count as u64).ok_or_else(|| io::Error::other("it has more than 2 GiB"))?;
        for part in into.get(..count).unwrap_or_default().split_inclusive(|byte| *byte == b'\n') {
            self.line += part.len();
            if self.line > LINE_MAX {
                return Err(io::Error::other("a line has more than 1 MiB"));
            }
            if part.ends_with(b"\n") {
                self.line = 0;
            }
        }
        Ok(count)
    }
}

/// Bounds each record of a source that may span lines, such as a quoted field with line ends.
pub struct Bounded<'a, R> {
    inner: R,
    state: &'a State,
}

/// What was read of a bounded source.
#[derive(Debug, Default)]
pub struct State {
    since_record: Cell<usize>,
    ended: Cell<bool>,
}

impl State {
    /// Begins the next record.
    pub fn next_record(&self) {
        self.since_record.set(0);
    }

    /// Whether the source was read until its end.
    pub fn has_ended(&self) -> bool {
        self.ended.get()
    }
}

impl<'a, R> Bounded<'a, R> {
    /// Bounds the records that are counted in `state`.
    pub fn new(inner: R, state: &'a State) -> Self {
        Self { inner, state }
    }
}

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(into)?;
        let State { since_record, ended } = self.state;
        ended.set(count == 0);
        since_record.set(since_record.get().saturating_add(count));
        if since_record.get() > RECORD_MAX {
            return Err(io::Error::other("a record is longer than 4 MiB: is a quotation mark or a tag not closed?"));
        }
        Ok(count)
    }
}
