//! A plan as the command that submits it. Pure.

use std::fmt::Write;

use super::{Plan, draft::written};

/// `brewbench run new …`, to be pasted into a shell.
pub fn command(plan: &Plan) -> String {
    let Plan { name, targets, sizes, scenario, parameters, vus, duration_s, warm_up_s, repetitions, agent } = plan;
    let mut flags: Vec<(&str, String)> = Vec::new();
    flags.extend(targets.iter().map(|target| ("target", target.clone())));
    flags.extend(sizes.iter().map(|size| ("size", size.clone())));
    flags.push(("scenario", scenario.clone()));
    flags.extend(parameters.iter().map(|(name, value)| ("set", format!("{name}={value}"))));
    flags.extend(vus.map(|vus| ("vus", vus.to_string())));
    flags.extend(duration_s.map(|seconds| ("duration", written(seconds))));
    flags.push(("warm-up", written(*warm_up_s)));
    flags.push(("repeat", repetitions.to_string()));
    flags.extend(agent.clone().map(|agent| ("agent", agent)));
    flags.extend(name.clone().map(|name| ("name", name)));
    flags.iter().fold("brewbench run new".to_owned(), |mut line, (flag, value)| {
        // What begins with a dash would be taken for another flag.
        let between = if value.starts_with('-') { '=' } else { ' ' };
        let _ = write!(line, " --{flag}{between}{}", quoted(value));
        line
    })
}

/// A word that a shell takes as it is, whatever is in it.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,@%+".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    if word.chars().any(char::is_control) {
        // Pasted raw, a terminal would obey them.
        return word.chars().fold("$'".to_owned(), |text, letter| text + &escaped(letter)) + "'";
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn escaped(letter: char) -> String {
    match letter {
        '\n' => r"\n".to_owned(),
        '\t' => r"\t".to_owned(),
        '\'' | '\\' => format!("\\{letter}"),
        letter if letter.is_control() => format!("\\u{:04x}", u32::from(letter)),
        letter => letter.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::experiments::told::tests::plan;

    #[test]
    fn the_line_says_all_of_the_plan() {
        assert_eq!(
            command(&plan()),
            "brewbench run new --target gosherve --target servy --size 2/4GiB --scenario hash --vus 10 --duration 10s \
             --warm-up 2s --repeat 3"
        );
        let script = Plan { vus: None, duration_s: None, agent: Some("-x".to_owned()), ..plan() };
        assert!(command(&script).ends_with("--warm-up 2s --repeat 3 --agent=-x"), "{}", command(&script));
    }

    #[test]
    fn whatever_is_in_a_word_a_shell_hands_it_on_as_it_is() {
        for word in ["", "a b", "it's", "$(reboot)", "`x`", "a\\b", "\"", "*", "~", "a;b", "é", "#", "!", "two\nlines"]
        {
            let line = format!("printf %s {}", quoted(word));
            let said = Command::new("bash").args(["-c", &line]).output().expect("bash").stdout;
            assert_eq!(String::from_utf8_lossy(&said), word, "{line}");
        }
        assert!(!quoted("\u{1b}[2J").contains('\u{1b}'));
    }
}
