//! Spellings of names that depend on the profiler or on a virtual machine. Pure.

use super::{
    characters::{is_decimal, is_identifier},
    modules::base_name,
};

/// Prefixes of names in Node's perf maps.
const NODE_PREFIXES: [&str; 7] =
    ["LazyCompile:", "Function:", "JS:", "Script:", "Eval:", "InterpretedFunction:", "BaselineFunction:"];

/// Ends of JavaScript files.
const NODE_FILES: [&str; 7] = [".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx"];

/// Names of classes that the JVM generates and numbers.
const NUMBERED_CLASSES: [&str; 5] = [
    "$$Lambda",
    "GeneratedMethodAccessor",
    "GeneratedConstructorAccessor",
    "SerializationConstructorAccessor",
    "$Proxy",
];

/// Returns the spelling that is used for all profilers.
pub(super) fn unify(name: &str) -> String {
    let name = node(name).or_else(|| python(name)).or_else(|| java(name)).unwrap_or_else(|| name.to_owned());
    let name = without_class_numbers(&name);
    // Go's symbol table escapes dots in the last element of a package's path.
    name.replace("%2e", ".").replace("std::__cxx11::", "std::").replace("std::__1::", "std::")
}

/// `LazyCompile:*handler /app/server.js:10:5` becomes `server.js:handler`, whether optimised or not.
fn node(name: &str) -> Option<String> {
    let rest = NODE_PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix))?;
    let rest = rest.trim_start_matches(['*', '~', '^', '+']);
    let (function, place) = rest.rsplit_once(' ').unwrap_or(("", rest));
    let file = without_position(without_position(place));
    let is_internal = file.starts_with("node:");
    if !is_internal && !NODE_FILES.iter().any(|ending| file.ends_with(ending)) {
        return Some(rest.to_owned());
    }
    let file = if is_internal { file } else { base_name(file) };
    let function = if function.is_empty() { "(anonymous)" } else { function };
    Some(format!("{file}:{function}"))
}

/// Removes the number of a line or column.
fn without_position(place: &str) -> &str {
    place.rsplit_once(':').filter(|(_, number)| is_decimal(number)).map_or(place, |(rest, _)| rest)
}

/// `py::handle:/app/server.py` and `handle (app/server.py:12)` become `server.py:handle`.
fn python(name: &str) -> Option<String> {
    if let Some((function, file)) = name.strip_prefix("py::").and_then(|rest| rest.split_once(':')) {
        return Some(format!("{}:{function}", base_name(file)));
    }
    if let Some((function, place)) = name.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")) {
        let file = without_position(place);
        file.strip_suffix(".py")?;
        return Some(format!("{}:{function}", base_name(file)));
    }
    let (file, function) = name.split_once(".py:")?;
    let is_path = file.contains('/') && !file.contains(' ');
    is_path.then(|| format!("{}.py:{function}", base_name(file)))
}

/// `Lcom/example/Server;::handle` becomes `com.example.Server.handle`.
fn java(name: &str) -> Option<String> {
    let (class, method) = name.strip_prefix('L')?.split_once(";::")?;
    let is_class = !class.is_empty() && class.chars().all(|letter| is_identifier(letter) || "/.-".contains(letter));
    is_class.then(|| format!("{}.{method}", class.replace('/', ".")))
}

/// Removes the numbers of generated classes: `$$Lambda$14` becomes `$$Lambda`.
fn without_class_numbers(name: &str) -> String {
    let mut name = name.to_owned();
    for class in NUMBERED_CLASSES {
        let mut from = 0;
        while let Some(found) = name.get(from..).and_then(|rest| rest.find(class)) {
            let end = from + found + class.len();
            let number = end + usize::from(name[end..].starts_with('$'));
            let digits = name[number..].bytes().take_while(u8::is_ascii_digit).count();
            if digits > 0 {
                name.replace_range(end..number + digits, "");
            }
            from = end;
        }
    }
    name
}
