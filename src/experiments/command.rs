//! A plan as the command that submits it. Pure.

use std::fmt::Write;

use brewbench_agent::wire::load::{Form, Load, Open};

use super::{Plan, draft::written};
use crate::runs::load::stages_text;

/// `brewbench run new …`, to be pasted into a shell.
pub fn command(plan: &Plan) -> String {
    let Plan { name, targets, sizes, scenario, parameters, load, warm_up_s, repetitions, agent } = plan;
    let mut flags: Vec<(&str, String)> = Vec::new();
    flags.extend(targets.iter().map(|target| ("target", target.clone())));
    flags.extend(sizes.iter().map(|size| ("size", size.clone())));
    flags.push(("scenario", scenario.clone()));
    flags.extend(parameters.iter().map(|(name, value)| ("set", format!("{name}={value}"))));
    flags.extend(load_flags(load));
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

fn load_flags(load: &Load) -> Vec<(&'static str, String)> {
    let (Load::Closed(_) | Load::Open(_), Some(shape)) = (load, load.shape()) else { return Vec::new() };
    let is_open = matches!(load, Load::Open(_));
    let mut flags = match shape.form() {
        Form::Constant { level, duration_ms } => vec![
            (if is_open { "rate" } else { "vus" }, level.to_string()),
            ("duration", written(*duration_ms as f64 / 1_000.0)),
        ],
        Form::Stages(stages) => vec![(if is_open { "rate-stages" } else { "vus-stages" }, stages_text(stages))],
    };
    if let Load::Open(open) = load
        && open.max_vus() != Open::usual_vus(shape)
    {
        flags.push(("max-vus", open.max_vus().to_string()));
    }
    flags
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
    use crate::{
        experiments::told::tests::plan,
        runs::load::{LoadBody, tests::rate, tests::vus_stages},
    };

    #[test]
    fn the_line_says_all_of_the_plan() {
        assert_eq!(
            command(&plan()),
            "brewbench run new --target gosherve --target servy --size 2/4GiB --scenario hash --vus 10 --duration 10s \
             --warm-up 2s --repeat 3"
        );
        let script = Plan { load: Load::Script, agent: Some("-x".to_owned()), ..plan() };
        assert!(command(&script).ends_with("--warm-up 2s --repeat 3 --agent=-x"), "{}", command(&script));
    }

    #[test]
    fn each_load_has_its_flags() {
        let line = |load| command(&Plan { load, ..plan() });
        assert!(
            line(rate(2_000, 1.5)).contains(" --rate 2000 --duration 1.5s --warm-up"),
            "{}",
            line(rate(2_000, 1.5))
        );
        let stages = line(vus_stages("5s:10,500ms:0"));
        assert!(stages.contains(" --vus-stages 5s:10,500ms:0 --warm-up"), "{stages}");
        let open = LoadBody::Rate { rate: 20, duration_s: 1.0, max_vus: Some(7) }.try_into().expect("a load");
        assert!(line(open).contains(" --rate 20 --duration 1s --max-vus 7 --warm-up"));
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
