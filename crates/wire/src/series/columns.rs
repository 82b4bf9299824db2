//! Compact encoding of integers: variable length, as differences to the previous row.

use super::DecodeError;

/// Writes columns.
#[derive(Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// Returns the written bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Writes seven bits per byte, lowest first; the highest bit marks that more follow.
    pub fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            #[expect(clippy::cast_possible_truncation, reason = "only the lowest bits are needed")]
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        #[expect(clippy::cast_possible_truncation, reason = "below 0x80")]
        self.bytes.push(number as u8);
    }

    /// Writes a signed number with the sign as lowest bit, so that small negative numbers are short, too.
    pub fn signed(&mut self, number: i64) {
        self.number((number.cast_unsigned() << 1) ^ (number >> 63).cast_unsigned());
    }

    /// Writes a column with one value per row.
    pub fn column(&mut self, values: impl Iterator<Item = u64>) {
        let mut before = 0_u64;
        for value in values {
            self.signed(value.wrapping_sub(before).cast_signed());
            before = value;
        }
    }

    /// Writes a column of optional values: first which are present, then their values.
    pub fn optional(&mut self, values: impl Iterator<Item = Option<u64>> + Clone) {
        self.column(values.clone().map(|value| u64::from(value.is_some())));
        self.column(values.flatten());
    }
}

/// Reads the output of a [`Writer`].
#[derive(Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from the start.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Whether everything was read.
    pub fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads a number.
    pub fn number(&mut self) -> Result<u64, DecodeError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or(DecodeError)?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(DecodeError)
    }

    /// Reads a signed number.
    pub fn signed(&mut self) -> Result<i64, DecodeError> {
        let number = self.number()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    /// Reads the number of following items, each of which takes at least one byte.
    pub fn length(&mut self) -> Result<usize, DecodeError> {
        let length = usize::try_from(self.number()?).map_err(|_| DecodeError)?;
        if length > self.rest.len() { Err(DecodeError) } else { Ok(length) }
    }

    /// Reads a column.
    pub fn column(&mut self, rows: usize) -> Result<Vec<u64>, DecodeError> {
        let mut before = 0_u64;
        let mut next = || {
            before = before.wrapping_add(self.signed()?.cast_unsigned());
            Ok(before)
        };
        (0..rows).map(|_| next()).collect()
    }

    /// Reads a column of optional values.
    pub fn optional(&mut self, rows: usize) -> Result<Vec<Option<u64>>, DecodeError> {
        let present = self.column(rows)?;
        let mut values = self.column(present.iter().filter(|&&present| present != 0).count())?.into_iter();
        Ok(present.into_iter().map(|present| if present == 0 { None } else { values.next() }).collect())
    }
}
