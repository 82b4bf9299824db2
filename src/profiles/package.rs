//! The package of a function and its kind, by which flame graphs are coloured. Pure.
//!
//! Profiles of Go and Rust name one program for most functions, so the package comes from the function's name.

use serde::Serialize;

use crate::profiles::tree::Symbol;

/// Whose code a function is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PackageKind {
    /// The target's own.
    App,
    /// A library that the target uses.
    Library,
    /// The language's runtime and standard library.
    Runtime,
    /// The kernel.
    Kernel,
    /// Unknown.
    Other,
}

/// A package, crate, module or shared library.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Whose code it is.
    pub kind: PackageKind,
}

/// Roots of Rust's standard library, Go's runtime and interpreters.
const RUNTIMES: [&str; 9] = ["std", "core", "alloc", "runtime", "internal", "syscall", "sync", "java", "node:internal"];

/// Returns the package of a function.
pub fn package(symbol: &Symbol) -> Package {
    let of = |name: &str, kind| Package { name: name.to_owned(), kind };
    if symbol.kernel {
        return of("[kernel]", PackageKind::Kernel);
    }
    let file = symbol.module.rsplit('/').next().unwrap_or_default();
    if file.contains(".so") {
        return of(file, if is_c_runtime(file) { PackageKind::Runtime } else { PackageKind::Library });
    }
    let Some(name) = named(&symbol.name) else {
        return of(if file.is_empty() { "unknown" } else { file }, PackageKind::Other);
    };
    let root = name.split(['/', '.']).next().unwrap_or(name);
    let is_runtime = RUNTIMES.contains(&root);
    let is_own = name == "main" || name == file.replace('-', "_");
    let kind = match (is_runtime, is_own) {
        (true, _) => PackageKind::Runtime,
        (_, true) => PackageKind::App,
        _ => PackageKind::Library,
    };
    of(name, kind)
}

fn is_c_runtime(file: &str) -> bool {
    ["libc.", "libc-", "ld-", "libpthread", "libm.", "libgcc"].iter().any(|start| file.starts_with(start))
}

/// Returns the package in a function's name: `net/http` of `net/http.(*conn).serve`, `hyper` of `hyper::proto::run` and
/// of `<hyper::Conn as Future>::poll`.
fn named(function: &str) -> Option<&str> {
    let bare =
        function.trim_start_matches(['<', '&', '*', '(', '[']).trim_start_matches("mut ").trim_start_matches("dyn ");
    if bare.is_empty() || bare.starts_with("unknown]") || bare.starts_with("other]") {
        return None;
    }
    if let Some((first, _)) = bare.split_once("::") {
        return Some(first).filter(|first| is_word(first));
    }
    let path_end = bare.rfind('/').map_or(0, |slash| slash + 1);
    let dot = bare[path_end..].find('.')?;
    Some(&bare[..path_end + dot]).filter(|name| name.split('/').all(|part| is_word(part) || part.contains('.')))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_alphanumeric() || "_-$:%".contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, module: &str) -> (String, PackageKind) {
        let symbol = Symbol { name: name.to_owned(), module: module.to_owned(), kernel: module == "[kernel]" };
        let Package { name, kind } = package(&symbol);
        (name, kind)
    }

    #[test]
    fn functions_of_go_rust_c_and_the_kernel_have_their_package() {
        use PackageKind::{App, Kernel, Library, Other, Runtime};
        for (name, module, package, kind) in [
            ("net/http.(*conn).serve", "go-nethttp", "net/http", Library),
            ("main.handler", "go-nethttp", "main", App),
            ("main.(*site).hash.func1", "go-nethttp", "main", App),
            ("runtime.mallocgc", "go-nethttp", "runtime", Runtime),
            ("internal/poll.(*FD).Read", "go-nethttp", "internal/poll", Runtime),
            ("github.com/acme/shop.Buy", "shop", "github.com/acme/shop", Library),
            ("hyper::proto::h1::run", "rust-hyper", "hyper", Library),
            ("rust_hyper::site::hash", "rust-hyper", "rust_hyper", App),
            ("<tokio::task::Task as core::Future>::poll", "rust-hyper", "tokio", Library),
            ("core::fmt::write", "rust-hyper", "core", Runtime),
            ("malloc", "libc.so.6", "libc.so.6", Runtime),
            ("SSL_read", "/usr/lib/libssl.so.3", "libssl.so.3", Library),
            ("tcp_sendmsg", "[kernel]", "[kernel]", Kernel),
            ("[unknown]", "shop", "shop", Other),
            ("", "", "unknown", Other),
        ] {
            assert_eq!(of(name, module), (package.to_owned(), kind), "{name}");
        }
    }
}
