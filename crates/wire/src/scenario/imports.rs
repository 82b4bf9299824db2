//! What the modules of a scenario import. Pure.

use super::{REMOTE, Scenario};

/// Modules that need a browser beside k6.
const BROWSER: [&str; 2] = ["k6/browser", "k6/experimental/browser"];

/// How the modules of k6's extensions begin.
const EXTENSION: &str = "k6/x/";

/// What precedes the name of a module.
const WORDS: [&str; 5] = ["from ", "from", "import ", "import(", "require("];

/// An import of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Import<'a> {
    path: &'a str,
    line: usize,
    module: &'a str,
}

/// Explains why a script that k6 refused imports what it can't get here; none if that is not the reason.
pub fn explain(scenario: &Scenario, fault: &str) -> Option<String> {
    let named = |import: &Import<'_>| fault.contains(import.module);
    let mut imports = all(scenario).into_iter().filter(named);
    let Import { path, line, module } =
        imports.find(|import| import.module.starts_with(EXTENSION) || is_missing(scenario, import.module))?;
    Some(if module.starts_with(EXTENSION) {
        format!(
            "{path}:{line} imports {module}, which this k6 does not have: start the agent with --k6 and a k6 that has it"
        )
    } else {
        format!(
            "{path}:{line} imports {module}, and agents load no modules from the network: upload the script with \
             `brewbench scenario new` where k6 is in PATH and reaches it"
        )
    })
}

/// Explains which import no load generator here can run; none if there is no such import.
pub fn refusal(scenario: &Scenario) -> Option<String> {
    let Import { path, line, module } = all(scenario).into_iter().find(|import| BROWSER.contains(&import.module))?;
    Some(format!("{path}:{line} imports {module}, which needs a browser: load generators run without one"))
}

fn is_missing(scenario: &Scenario, module: &str) -> bool {
    module.starts_with(REMOTE) && !scenario.files.contains_key(module)
}

fn all(scenario: &Scenario) -> Vec<Import<'_>> {
    let imports = |(path, text)| modules(text).map(move |(line, module)| Import { path, line, module });
    scenario.modules().flat_map(imports).collect()
}

/// Whether a module imports another one from the network.
pub fn has_remote(text: &str) -> bool {
    modules(text).any(|(_, module)| module.starts_with(REMOTE))
}

/// Returns what a module imports, each with its line, from 1.
pub(super) fn modules(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let code = text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
    code.flat_map(|(number, line)| {
        WORDS.iter().filter_map(move |word| after(line, word)).map(move |module| (number + 1, module))
    })
}

/// Returns the string that follows a word in a line.
fn after<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    text.match_indices(word).find_map(|(at, _)| {
        let rest = &text[at + word.len()..];
        let quote = rest.chars().next().filter(|quote| "'\"`".contains(*quote))?;
        rest[1..].split_once(quote).map(|(module, _)| module)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_that_is_missing_is_named_with_its_line() {
        let script = "import http from 'k6/http';\n// import 'https://a.example/old.js'\nimport x from \"https://a.example/x.js\";";
        let scenario = Scenario::of_script("x", script);
        let fault = "The module at \"https://a.example/x.js\" couldn't be retrieved";
        let why = explain(&scenario, fault).expect("missing");
        assert!(why.starts_with("script.js:3 imports https://a.example/x.js, and agents load no modules"), "{why}");
        assert_eq!(explain(&scenario.with_file("https://a.example/x.js", "1"), fault), None);
        let sql = Scenario::of_script("x", "import sql from'k6/x/sql';");
        let why = explain(&sql, "unknown modules [\"k6/x/sql\"]").expect("an extension");
        assert!(why.starts_with("script.js:1 imports k6/x/sql, which this k6 does not have"), "{why}");
    }

    #[test]
    fn a_browser_is_refused() {
        let browser = Scenario::of_script("x", "import { browser } from 'k6/browser';");
        assert!(refusal(&browser).is_some_and(|why| why.starts_with("script.js:1 imports k6/browser, which needs")));
        assert_eq!(refusal(&Scenario::of_script("x", "import http from 'k6/http'; // k6/browser")), None);
    }
}
