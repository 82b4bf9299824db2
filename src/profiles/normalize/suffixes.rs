//! Endings that compilers and linkers add to names of functions. Pure.

use super::characters::{is_decimal, is_hex};

/// Endings as they are.
const FIXED: [&str; 13] = [
    ".cold",
    ".localalias",
    ".abi0",
    ".abiinternal",
    "@plt",
    "$plt",
    "[abi:cxx11]",
    " [inlined]",
    " [k]",
    "_[j]",
    "_[i]",
    "_[k]",
    "_[1]",
];

/// Endings before a number: clones of functions and numbers of compilation units.
const NUMBERED: [&str; 8] =
    [".llvm.", ".isra.", ".constprop.", ".part.", ".cold.", ".lto_priv.", ".__uniq.", ".localalias."];

/// Removes all such endings. Never returns an empty name for one that is not.
pub(super) fn strip(name: &str) -> &str {
    let mut name = name;
    while let Some(shorter) = without_last(name).filter(|shorter| !shorter.trim().is_empty()) {
        name = shorter.trim_end();
    }
    name
}

fn without_last(name: &str) -> Option<&str> {
    without_rust_hash(name)
        .or_else(|| FIXED.iter().find_map(|ending| name.strip_suffix(ending)))
        .or_else(|| without_number(name))
        .or_else(|| without_clone(name))
        .or_else(|| without_offset(name))
        .or_else(|| without_version(name))
}

/// `::h0123456789abcdef` of Rust's legacy mangling.
fn without_rust_hash(name: &str) -> Option<&str> {
    let (rest, hash) = name.rsplit_once("::h")?;
    (hash.len() == 16 && is_hex(hash)).then_some(rest)
}

/// `.isra.0`.
fn without_number(name: &str) -> Option<&str> {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (rest, number) = name.split_at(name.len() - digits);
    NUMBERED.iter().find_map(|ending| rest.strip_suffix(ending)).filter(|_| is_decimal(number))
}

/// ` [clone .isra.0]` of GCC's demangler and ` (.isra.0)` of LLVM's.
fn without_clone(name: &str) -> Option<&str> {
    let of = |open: &str, close: &str| {
        let (rest, clone) = name.strip_suffix(close)?.rsplit_once(open)?;
        (!clone.contains([' ', '[', '('])).then_some(rest)
    };
    of(" [clone .", "]").or_else(|| of(" (.", ")"))
}

/// `+0x1f`.
fn without_offset(name: &str) -> Option<&str> {
    let (rest, offset) = name.rsplit_once("+0x")?;
    is_hex(offset).then_some(rest)
}

/// `@@GLIBC_2.34`.
fn without_version(name: &str) -> Option<&str> {
    let (rest, version) = name.split_once('@')?;
    version.trim_start_matches('@').starts_with("GLIBC").then_some(rest)
}
