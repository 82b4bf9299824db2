//! Names of real programs, and properties of all names.

use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(names: &[(&str, &str)]) {
    for (raw, expected) in names {
        assert_eq!(function(raw), *expected, "{raw}");
        assert_eq!(function(expected), *expected, "{raw} is normalised twice");
    }
}

#[test]
fn rust_names_with_legacy_mangling_match() {
    check(&[
        ("tokio::runtime::task::raw::poll::h0123456789abcdef", "tokio::runtime::task::raw::poll"),
        ("alloc::vec::Vec<T,A>::push::hfedcba9876543210", "alloc::vec::Vec<…>::push"),
        ("alloc::vec::Vec<T,A>::push::hfedcba9876543210.llvm.1234567890", "alloc::vec::Vec<…>::push"),
        ("<T as core::convert::Into<U>>::into::h0123456789abcdef", "<T as core::convert::Into<…>>::into"),
        (
            "<alloc::vec::Vec<T,A> as core::ops::drop::Drop>::drop",
            "<alloc::vec::Vec<…> as core::ops::drop::Drop>::drop",
        ),
        ("core::ptr::drop_in_place<alloc::string::String>", "core::ptr::drop_in_place<…>"),
        (
            "core::fmt::num::<impl core::fmt::Debug for u32>::fmt",
            "core::fmt::num::<impl core::fmt::Debug for u32>::fmt",
        ),
        ("<&mut W as core::fmt::Write>::write_str::h00112233445566ff", "<&mut W as core::fmt::Write>::write_str"),
        ("app::main::{{closure}}::{{closure}}::h0123456789abcdef", "app::main::{closure}::{closure}"),
        (
            "core::ops::function::FnOnce::call_once{{vtable.shim}}",
            "core::ops::function::FnOnce::call_once{vtable.shim}",
        ),
        ("app::h0123456789abcde", "app::h0123456789abcde"),
        ("app::h0123456789abcdeg", "app::h0123456789abcdeg"),
    ]);
}

#[test]
fn rust_names_with_v0_mangling_match() {
    check(&[
        ("core[846817f741e54dfd]::slice::sort::heapsort::<u8, fn(u8) -> bool>", "core::slice::sort::heapsort<…>"),
        ("<alloc[a1b2c3]::vec::Vec<u8>>::push", "alloc::vec::Vec<…>::push"),
        (
            "<alloc::vec::Vec<u8> as core::iter::Extend<u8>>::extend::<I>",
            "<alloc::vec::Vec<…> as core::iter::Extend<…>>::extend<…>",
        ),
        ("app[0]::main::{closure#0}", "app::main::{closure}"),
        (
            "<app::Service as tower::Service<http::Request<()>>>::call::{closure#0}::{closure#12}",
            "<app::Service as tower::Service<…>>::call::{closure}::{closure}",
        ),
        ("<[u8] as core::cmp::PartialEq>::eq", "<[u8] as core::cmp::PartialEq>::eq"),
        ("<[u8; 4]>::len", "<[u8; 4]>::len"),
        ("<fn(u8) -> u8 as core::ops::FnOnce<(u8,)>>::call_once", "<fn(u8) -> u8 as core::ops::FnOnce<…>>::call_once"),
        ("<dyn app::Handler<X>>::call", "<dyn app::Handler<…>>::call"),
        ("<<A as B>::C as D<E>>::f", "<<A as B>::C as D<…>>::f"),
        ("f::<<A as B>::C>", "f<…>"),
        ("app::run::{shim:vtable#0}", "app::run::{shim:vtable}"),
    ]);
}

#[test]
fn go_names_match() {
    check(&[
        ("net/http.(*conn).serve", "net/http.(*conn).serve"),
        ("runtime.mallocgc", "runtime.mallocgc"),
        ("main.main.func1.2", "main.main.func1.2"),
        ("main.Map[go.shape.int_0]", "main.Map[…]"),
        ("main.Map[...]", "main.Map[…]"),
        ("main.(*List[go.shape.struct { main.a [4]int; main.b string }]).Add", "main.(*List[…]).Add"),
        ("slices.SortFunc[go.shape.[]int,go.shape.int].func1", "slices.SortFunc[…].func1"),
        ("gopkg.in/yaml%2ev3.Unmarshal", "gopkg.in/yaml.v3.Unmarshal"),
        ("runtime.memmove.abi0", "runtime.memmove"),
        ("type:.eq.main.T", "type:.eq.main.T"),
        ("main.(*T).Serve-fm", "main.(*T).Serve-fm"),
        ("main.run.deferwrap1", "main.run.deferwrap1"),
    ]);
}

#[test]
fn cpp_names_match() {
    check(&[
        ("std::vector<int, std::allocator<int> >::push_back(int const&)", "std::vector<…>::push_back(int const&)"),
        (
            "std::ostream& std::operator<< <std::char_traits<char> >(std::ostream&, char const*)",
            "std::ostream& std::operator<< <…>(std::ostream&, char const*)",
        ),
        ("app::operator<(app::A const&, app::B<int> const&)", "app::operator<(app::A const&, app::B<…> const&)"),
        ("app::operator<=><int>(app::P<int>)", "app::operator<=><…>(app::P<…>)"),
        ("app::Ptr<int>::operator->() const", "app::Ptr<…>::operator->() const"),
        ("app::Ptr<int>::operator->*(int)", "app::Ptr<…>::operator->*(int)"),
        ("app::operator>><int>(app::Stream<int>&)", "app::operator>><…>(app::Stream<…>&)"),
        ("app::F<int>::operator()<char>(char)", "app::F<…>::operator()<…>(char)"),
        ("app::operator><int>(int)", "app::operator><…>(int)"),
        ("app::If<((4)>(3))>::run()", "app::If<…>::run()"),
        ("app::run()::{lambda(int)#2}::operator()(int) const", "app::run()::{lambda}::operator()(int) const"),
        ("foo(int) [clone .isra.0] [clone .cold]", "foo(int)"),
        ("foo(int) (.constprop.3)", "foo(int)"),
        ("foo.isra.0.constprop.1.part.2.cold", "foo"),
        ("app::name[abi:cxx11](int)", "app::name(int)"),
        ("std::__cxx11::basic_string<char>::append(char const*)", "std::basic_string<…>::append(char const*)"),
        ("A::operator[](unsigned long)", "A::operator[](unsigned long)"),
        ("(anonymous namespace)::run()", "(anonymous namespace)::run()"),
        ("memcpy@@GLIBC_2.14", "memcpy"),
        ("write@plt", "write"),
        ("cooperator<int>::run()", "cooperator<…>::run()"),
    ]);
}

#[test]
fn python_names_match() {
    check(&[
        ("py::handle:/app/src/server.py", "server.py:handle"),
        ("handle (app/server.py:12)", "server.py:handle"),
        ("/usr/lib/python3/dist-packages/flask/app.py:wsgi_app", "app.py:wsgi_app"),
        ("server.py:<module>", "server.py:<module>"),
        ("server.py:<lambda>", "server.py:<lambda>"),
        ("py::<listcomp>:/app/server.py", "server.py:<listcomp>"),
        ("_PyEval_EvalFrameDefault.cold", "_PyEval_EvalFrameDefault"),
    ]);
}

#[test]
fn jvm_names_match() {
    check(&[
        ("Lcom/example/Server;::handle", "com.example.Server.handle"),
        ("com.example.Server.<init>", "com.example.Server.<init>"),
        ("com.example.Server::<clinit>", "com.example.Server::<clinit>"),
        ("com.example.Server$$Lambda$14/0x0000000800c03000.run", "com.example.Server$$Lambda.run"),
        ("com.example.Server$$Lambda/0x00007f1234567890.run", "com.example.Server$$Lambda.run"),
        ("java.lang.invoke.LambdaForm$MH/0x0000000800c03000.invoke", "java.lang.invoke.LambdaForm$MH.invoke"),
        (
            "jdk.internal.reflect.GeneratedMethodAccessor12.invoke",
            "jdk.internal.reflect.GeneratedMethodAccessor.invoke",
        ),
        ("com.sun.proxy.$Proxy12.close", "com.sun.proxy.$Proxy.close"),
        ("com.example.Server.lambda$main$0", "com.example.Server.lambda$main$0"),
    ]);
}

#[test]
fn node_names_match() {
    check(&[
        ("LazyCompile:*handler /app/server.js:10:5", "server.js:handler"),
        ("LazyCompile:~handler /app/server.js:12:5", "server.js:handler"),
        ("JS:^handler file:///app/server.mjs:10:5", "server.mjs:handler"),
        ("JS:*get value /app/server.js:10:5", "server.js:get value"),
        ("JS:~ /app/server.js:1:1", "server.js:(anonymous)"),
        ("JS:*emit node:events:465:44", "node:events:emit"),
        ("Builtin:ArrayMap", "Builtin:ArrayMap"),
        ("Object.<anonymous>", "Object.<anonymous>"),
        ("node::http::(anonymous namespace)::Parser::Execute", "node::http::(anonymous namespace)::Parser::Execute"),
    ]);
}

#[test]
fn unknown_functions_have_one_name() {
    for raw in
        ["", " ", "[unknown]", "??", "0x7f1234567890", "0xffffffffa1b2c3d4", "00007f1234567890", "<unknown>", "\u{7}"]
    {
        assert_eq!(function(raw), UNKNOWN, "{raw}");
    }
    check(&[("do_syscall_64+0x5c", "do_syscall_64"), ("stub_0x1234_5", "stub_0x1234_5"), ("at 0x7f12aa", "at 0x…")]);
}

#[test]
fn names_from_outside_are_harmless() {
    assert_eq!(function("a\u{1b}[31mb\n\u{202e}c"), "a[31mbc");
    let long = function(&"x".repeat(2_000));
    assert_eq!((long.chars().count(), long.ends_with("x…")), (MAX_CHARS, true));
    let generic = format!("f<{}>", "Vec<u8>,".repeat(600));
    assert_eq!(function(&generic), "f<…>", "a name is cut after it has been shortened");
    for part in ["<", "a<", "<a as ", "{{", "[", "a[", "operator<", "(<", "0x0", "::<"] {
        assert!(function(&part.repeat(20_000)).chars().count() <= MAX_CHARS, "{part}");
    }
}

#[test]
fn modules_lose_folders_versions_and_hashes() {
    for (path, expected) in [
        ("/tmp/build/target/release/deps/rust_hyper-0123456789abcdef", "rust_hyper"),
        ("/usr/lib/x86_64-linux-gnu/libssl.so.3", "libssl.so"),
        ("/usr/bin/node (deleted)", "node"),
        ("/tmp/perf-1234.map", "[jit]"),
        ("[vdso]", "[vdso]"),
        ("", ""),
    ] {
        assert_eq!(module(path, false), expected);
    }
    for (path, expected) in [("", "[kernel]"), ("[kernel.kallsyms]_text", "[kernel]"), ("[nf_tables]", "[nf_tables]")] {
        assert_eq!(module(path, true), expected);
    }
}

#[test]
fn files_lose_folders_of_the_build() {
    for (path, expected) in [
        ("/rustc/0123abcd/library/core/src/ops/function.rs", "library/core/src/ops/function.rs"),
        ("/home/me/.cargo/registry/src/index.crates.io-6f17d22bba15001f/hyper-1.2.0/src/lib.rs", "hyper/src/lib.rs"),
        ("/root/go/pkg/mod/github.com/valyala/fasthttp@v1.51.0/server.go", "github.com/valyala/fasthttp/server.go"),
        ("/usr/local/go/src/net/http/server.go", "net/http/server.go"),
        ("/usr/lib/python3/site-packages/flask/app.py", "flask/app.py"),
        ("/home/me/app/node_modules/express/lib/router.js", "node_modules/express/lib/router.js"),
        ("/home/me/build-12/src/main.rs", "src/main.rs"),
        ("/home/me/server.py", "server.py"),
    ] {
        assert_eq!(file(path), expected);
    }
}

/// Parts that the rules look for, separated by `~`.
const PARTS: [&str; 3] = [
    "<~>~<T as U>~::~operator~<<~->~=>~ ~(~)~[~]~{~}~{{closure}}~#0~a~B~_~.~$~/~,~&~:~…~",
    "h0123456789abcdef~.llvm.12~.cold~.isra.0~0x~0x12345~abi:~a1b2~impl ~dyn ~ as ~$$Lambda~$14~py::~.py~",
    "JS:~*~.js:1:2~L~;::~%2e~+0x1f~@plt~init~lambda(~ [clone .x]~std::__1::~node:~12",
];

/// Names out of the parts that the rules look for.
fn names() -> impl Strategy<Value = String> {
    let parts: Vec<&str> = PARTS.iter().flat_map(|line| line.split('~')).collect();
    let part = prop::sample::select(parts);
    prop_oneof![
        4 => prop::collection::vec(part, 0..14).prop_map(|parts| parts.concat()),
        1 => "\\PC{0,40}",
        1 => "[a-z<>:(){}\\[\\]#. ]{480,560}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn normalising_twice_changes_nothing(raw in names()) {
        let once = function(&raw);
        prop_assert_eq!(function(&once), once);
    }

    #[test]
    fn normalised_names_are_short_and_never_empty(raw in any::<String>()) {
        let name = function(&raw);
        prop_assert!(!name.is_empty() && name.chars().count() <= MAX_CHARS);
        prop_assert!(!name.chars().any(char::is_control));
    }

    #[test]
    fn normalising_modules_and_files_twice_changes_nothing(path in "[a-c/.0-9@v-]{0,30}( \\(deleted\\))?") {
        prop_assert_eq!(module(&module(&path, false), false), module(&path, false));
    }
}
