//! The package of a function and its kind: flame graphs are coloured by it, and it says which callers locate a
//! difference. Pure.
//!
//! Profiles of Go and Rust name one program for most functions, so the package comes from the function's name.

use serde::Serialize;

use super::tree::Symbol;

/// Whose code a function is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PackageKind {
    /// The target's own.
    App,
    /// A library that the target uses.
    Library,
    /// The language's runtime and standard library, and what starts programs and threads.
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

/// Roots of packages of runtimes and standard libraries.
const RUNTIMES: [&str; 9] = ["std", "core", "alloc", "runtime", "internal", "syscall", "sync", "java", "node:internal"];

/// Beginnings of functions that start a program or a thread.
const STARTS: [&str; 6] = ["_start", "__libc_start", "start_thread", "clone", "__clone", "entry_SYSCALL"];

/// Beginnings of the files of C's runtime.
const C_RUNTIMES: [&str; 6] = ["libc.", "libc-", "ld-", "libpthread", "libm.", "libgcc"];

/// Returns the package of a function.
pub fn package(symbol: &Symbol) -> Package {
    let of = |name: &str, kind| Package { name: name.to_owned(), kind };
    if symbol.kernel {
        return of("[kernel]", PackageKind::Kernel);
    }
    let file = symbol.module.rsplit('/').next().unwrap_or_default();
    if file.contains(".so") {
        let is_c = C_RUNTIMES.iter().any(|start| file.starts_with(start));
        return of(file, if is_c { PackageKind::Runtime } else { PackageKind::Library });
    }
    if STARTS.iter().any(|start| symbol.name.starts_with(start)) {
        return of(if file.is_empty() { &symbol.name } else { file }, PackageKind::Runtime);
    }
    let Some(name) = package_name(&symbol.name) else {
        let is_plain = symbol.name.starts_with(|letter: char| letter.is_alphabetic() || letter == '_');
        let kind = if is_plain && !file.is_empty() { PackageKind::App } else { PackageKind::Other };
        return of(if file.is_empty() { "unknown" } else { file }, kind);
    };
    let root = name.split(['/', '.']).next().unwrap_or(name);
    let is_own = name == "main" || name == file.replace('-', "_");
    let kind = match (RUNTIMES.contains(&root), is_own) {
        (true, _) => PackageKind::Runtime,
        (_, true) => PackageKind::App,
        _ => PackageKind::Library,
    };
    of(name, kind)
}

/// Returns the package in a function's name: crate, Go package, namespace, source file or Java package.
fn package_name(function: &str) -> Option<&str> {
    // Rust: the trait says more than a type parameter in `<T as digest::Digest>::finalize`.
    let function = match function.strip_prefix('<').and_then(|name| name.split_once(" as ")) {
        Some((of, by)) if !of.contains("::") => by,
        _ => function,
    };
    let name = function.trim_start_matches(['<', '&', '(', '[', '*']);
    let name = name.strip_prefix("mut ").unwrap_or(name).trim_start_matches("dyn ").trim_start_matches("impl ");
    let is_path = |letter: char| letter.is_alphanumeric() || "_-./$%~@".contains(letter);
    let path = name.find(|letter: char| !is_path(letter)).map_or(name, |end| &name[..end]);
    // Rust, C++, Python and Node: crate::module::function, file.py:function.
    if name[path.len()..].starts_with(':') {
        return Some(path).filter(|path| !path.is_empty());
    }
    // Go: net/http.(*conn).serve, runtime.mallocgc. JVM: com.example.Server.handle.
    let end = package_end(path, path.rfind('/').unwrap_or(0))?;
    Some(&path[..end]).filter(|path| !path.is_empty())
}

/// Returns where the package ends: before a class, which begins with a capital, or else before the first dot.
fn package_end(path: &str, slash: usize) -> Option<usize> {
    let dots = || path.match_indices('.').map(|(dot, _)| dot).filter(|dot| *dot >= slash);
    let is_class = |dot: &usize| path[dot + 1..].starts_with(|letter: char| letter.is_uppercase());
    dots().find(is_class).or_else(|| dots().next())
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
    fn functions_of_each_language_have_their_package() {
        use PackageKind::{App, Kernel, Library, Other, Runtime};
        for (name, module, package, kind) in [
            ("net/http.(*conn).serve", "go-nethttp", "net/http", Library),
            ("main.handler", "go-nethttp", "main", App),
            ("main.(*site).hash.func1", "go-nethttp", "main", App),
            ("runtime.mallocgc", "go-nethttp", "runtime", Runtime),
            ("internal/poll.(*FD).Read", "go-nethttp", "internal/poll", Runtime),
            ("github.com/valyala/fasthttp.(*Server).serveConn", "shop", "github.com/valyala/fasthttp", Library),
            ("hyper::proto::h1::run", "rust-hyper", "hyper", Library),
            ("rust_hyper::site::hash", "rust-hyper", "rust_hyper", App),
            ("<tokio::task::Task as core::Future>::poll", "rust-hyper", "tokio", Library),
            ("<D as digest::digest::Digest>::finalize", "rust-hyper", "digest", Library),
            ("core::fmt::write", "rust-hyper", "core", Runtime),
            ("std::vector<…>::push_back", "shop", "std", Runtime),
            ("com.example.Server.handle", "java", "com.example", Library),
            ("server.py:handle", "python3", "server.py", Library),
            ("handle_request", "server", "server", App),
            ("__libc_start_main", "server", "server", Runtime),
            ("malloc", "libc.so.6", "libc.so.6", Runtime),
            ("SSL_read", "/usr/lib/libssl.so.3", "libssl.so.3", Library),
            ("tcp_sendmsg", "[kernel]", "[kernel]", Kernel),
            ("[unknown]", "shop", "shop", Other),
            ("<[T]>::sort", "shop", "shop", Other),
            ("", "", "unknown", Other),
        ] {
            assert_eq!(of(name, module), (package.to_owned(), kind), "{name}");
        }
    }
}
