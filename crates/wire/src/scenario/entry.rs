//! Finds the script among the files of a folder. Pure.

use std::collections::BTreeMap;

use super::imports::modules;
use super::{Content, REQUESTS};

/// Endings of scripts and their modules.
const MODULES: [&str; 2] = [".js", ".ts"];

/// Names that a script among several usually has.
const USUAL: [&str; 4] = ["main", "script", "index", "test"];

/// How a script exports what k6 runs.
const EXPORTS: [&str; 4] = ["export default", "const options", "exports.options", "exports.default"];

/// Returns the path of the script, or that of the request list if there is no script: the only file that exports what k6 runs and that no other imports, or the one with a
/// usual name. The error is a sentence that names the candidates.
pub fn find(files: &BTreeMap<String, Content>) -> Result<String, String> {
    let modules = files.iter().filter(|(path, _)| MODULES.iter().any(|ending| path.ends_with(ending)));
    let texts: Vec<(&str, &str)> = modules.filter_map(|(path, file)| Some((path.as_str(), file.text()?))).collect();
    let is_imported = |path: &str| texts.iter().any(|(other, text)| *other != path && imports(text, path));
    let is_script = |text: &str| EXPORTS.iter().any(|words| text.contains(words));
    let candidates: Vec<&str> =
        texts.iter().filter(|(path, text)| is_script(text) && !is_imported(path)).map(|(path, _)| *path).collect();
    let usual = |name: &str| {
        let named =
            candidates.iter().filter(move |path| MODULES.iter().any(|ending| ***path == format!("{name}{ending}")));
        named.copied().next()
    };
    match candidates.as_slice() {
        [one] => Ok((*one).to_owned()),
        [] if files.contains_key(REQUESTS) => Ok(REQUESTS.to_owned()),
        [] if texts.is_empty() => Err(format!("there is no script among the files: a .js or .ts file, or {REQUESTS}")),
        [] => Err(format!("no file exports a default function or options; which is the script: {}?", list(&texts))),
        several => USUAL
            .iter()
            .find_map(|name| usual(name))
            .map(str::to_owned)
            .ok_or_else(|| format!("there are several scripts: {}; say which", several.join(", "))),
    }
}

fn list(texts: &[(&str, &str)]) -> String {
    texts.iter().map(|(path, _)| *path).collect::<Vec<_>>().join(", ")
}

/// Whether a module imports a path: the last names are the same.
pub(super) fn imports(text: &str, path: &str) -> bool {
    let last = |path: &'_ str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let name = last(path);
    modules(text).any(|(_, module)| last(module) == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Result<String, String> {
        find(&files.iter().map(|&(path, text)| (path.to_owned(), text.into())).collect())
    }

    #[test]
    fn the_script_is_what_nothing_imports() {
        let script = "import { a } from './lib/a.ts'; export default () => a();";
        let files = [("tests/browse.ts", script), ("tests/lib/a.ts", "export const a = 1;"), ("users.csv", "")];
        assert_eq!(found(&files), Ok("tests/browse.ts".to_owned()));
        let helper = ("lib/x.js", "export default function () {}");
        assert_eq!(
            found(&[("main.js", "import x from './lib/x.js'; export const options = {};"), helper]),
            Ok("main.js".to_owned())
        );
    }

    #[test]
    fn of_several_scripts_the_one_with_a_usual_name_counts() {
        let text = "export default function () {}";
        assert_eq!(found(&[("soak.js", text), ("script.js", text)]), Ok("script.js".to_owned()));
        let fault = found(&[("soak.js", text), ("smoke.ts", text)]).expect_err("two");
        assert_eq!(fault, "there are several scripts: smoke.ts, soak.js; say which");
        assert!(found(&[("a.csv", "")]).is_err_and(|why| why.starts_with("there is no script")));
        assert!(found(&[("a.js", "1")]).is_err_and(|why| why.contains("a.js?")));
    }
}
