//! Whole numbers in as few bytes as they need: variable length, as differences from the row before.

use super::Damaged;

/// Writes columns.
#[derive(Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// What was written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Seven bits a byte, the lowest first; the highest bit says that there is more.
    pub fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            #[expect(clippy::cast_possible_truncation, reason = "the lowest bits are meant")]
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        #[expect(clippy::cast_possible_truncation, reason = "below 0x80")]
        self.bytes.push(number as u8);
    }

    /// The sign becomes the lowest bit, so that small negative numbers are short too.
    pub fn signed(&mut self, number: i64) {
        self.number((number.cast_unsigned() << 1) ^ (number >> 63).cast_unsigned());
    }

    /// One value of each row.
    pub fn column(&mut self, values: impl Iterator<Item = u64>) {
        let mut before = 0_u64;
        for value in values {
            self.signed(value.wrapping_sub(before).cast_signed());
            before = value;
        }
    }

    /// One value of each row that may be missing: which are there, and then their values.
    pub fn optional(&mut self, values: impl Iterator<Item = Option<u64>> + Clone) {
        self.column(values.clone().map(|value| u64::from(value.is_some())));
        self.column(values.flatten());
    }
}

/// Reads what a [`Writer`] wrote.
#[derive(Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// From the start.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Everything was read.
    pub fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    /// A number.
    pub fn number(&mut self) -> Result<u64, Damaged> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or(Damaged)?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Damaged)
    }

    /// A number with a sign.
    pub fn signed(&mut self) -> Result<i64, Damaged> {
        let number = self.number()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    /// How many of something follow, each of which takes a byte at least.
    pub fn length(&mut self) -> Result<usize, Damaged> {
        let length = usize::try_from(self.number()?).map_err(|_| Damaged)?;
        if length > self.rest.len() { Err(Damaged) } else { Ok(length) }
    }

    /// A column of so many rows.
    pub fn column(&mut self, rows: usize) -> Result<Vec<u64>, Damaged> {
        let mut before = 0_u64;
        let mut next = || {
            before = before.wrapping_add(self.signed()?.cast_unsigned());
            Ok(before)
        };
        (0..rows).map(|_| next()).collect()
    }

    /// A column of so many rows, some of which are missing.
    pub fn optional(&mut self, rows: usize) -> Result<Vec<Option<u64>>, Damaged> {
        let there = self.column(rows)?;
        let mut values = self.column(there.iter().filter(|&&there| there != 0).count())?.into_iter();
        Ok(there.into_iter().map(|there| if there == 0 { None } else { values.next() }).collect())
    }
}
