//! Takes off what surrounds a result in real files: compression, encodings, prefixes of logs, colours, fences.

pub mod code_page;
pub mod document;
pub mod lines;
pub mod prefix;
pub mod unpack;
