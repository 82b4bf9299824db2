//! Names of modules and source files without folders of the build. Pure.

use super::characters::{is_decimal, is_hex, printable};

/// Name of the kernel as a module.
const KERNEL: &str = "[kernel]";

/// Name of code that a virtual machine has compiled.
const JIT: &str = "[jit]";

/// Folders below which a file has the same path in all builds; the name stays unless it is empty.
const ROOTS: [(&str, &str); 9] = [
    ("/library/", "library/"),
    ("/registry/src/", ""),
    ("/pkg/mod/", ""),
    ("/usr/local/go/src/", ""),
    ("/usr/lib/go/src/", ""),
    ("/site-packages/", ""),
    ("/dist-packages/", ""),
    ("/node_modules/", "node_modules/"),
    ("/src/", "src/"),
];

/// Normalises the path of a program or library.
pub fn module(path: &str, kernel: bool) -> String {
    let path = printable(path);
    let name = base_name(path.trim().trim_end_matches(" (deleted)").trim_end());
    if kernel && !name.starts_with('[') || name.starts_with("[kernel.kallsyms]") || name.starts_with("vmlinux") {
        return KERNEL.to_owned();
    }
    let is_map = name.strip_prefix("perf-").and_then(|rest| rest.strip_suffix(".map")).is_some_and(is_decimal);
    let is_dump = name.strip_prefix("jitted-").is_some_and(|rest| rest.strip_suffix(".so").is_some());
    if is_map || is_dump {
        return JIT.to_owned();
    }
    let name = without_library_version(without_cargo_hash(name));
    super::cut(name)
}

/// Normalises the path of a source file.
pub fn file(path: &str) -> String {
    let path = printable(path);
    let path = path.trim().trim_start_matches("file://");
    let found = ROOTS.iter().find_map(|(folder, name)| Some((path.rfind(folder)? + folder.len(), *folder, *name)));
    let Some((start, folder, name)) = found else { return super::cut(base_name(path)) };
    let rest = &path[start..];
    // cargo's registry begins with the name of an index.
    let rest = if folder == "/registry/src/" { rest.split_once('/').map_or(rest, |(_, rest)| rest) } else { rest };
    let short: Vec<&str> = rest.split('/').map(without_version).collect();
    super::cut(&format!("{name}{}", short.join("/")))
}

/// Returns the last part of a path.
pub(super) fn base_name(path: &str) -> &str {
    let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or(path);
    if last.is_empty() { path } else { last }
}

/// `rust_hyper-0123456789abcdef` becomes `rust_hyper`.
fn without_cargo_hash(name: &str) -> &str {
    let hashed = name.rsplit_once('-').filter(|(rest, hash)| hash.len() == 16 && is_hex(hash) && !rest.is_empty());
    hashed.map_or(name, |(rest, _)| rest)
}

/// `libssl.so.3.0.2` becomes `libssl.so`.
fn without_library_version(name: &str) -> &str {
    let Some((rest, version)) = name.split_once(".so.") else { return name };
    if version.split('.').all(is_decimal) { &name[..rest.len() + 3] } else { name }
}

/// `hyper-1.2.0` and `router@v1.4.2` become `hyper` and `router`.
fn without_version(folder: &str) -> &str {
    let is_version = |text: &str| {
        let text = text.strip_prefix('v').unwrap_or(text);
        text.contains('.') && text.starts_with(|first: char| first.is_ascii_digit())
    };
    let found = folder.match_indices(['-', '@']).find(|(at, _)| *at > 0 && is_version(&folder[at + 1..]));
    found.filter(|(at, _)| !folder[*at..].contains(".rs")).map_or(folder, |(at, _)| &folder[..at])
}
