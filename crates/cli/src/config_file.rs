//! The configuration file of `serve` and `agent`: a section for each, whose keys are the names of its flags.
//! A variable overrides the file, and a flag overrides both.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use clap::{Arg, ArgAction, Args, Command, CommandFactory, Subcommand, builder::BoolishValueParser};
use toml::{Table, Value};

use super::Cli;

/// Where it is unless a variable names another one.
const DEFAULT: &str = "/etc/brewbench/brewbench.toml";

/// Names another file; empty to read none.
const VARIABLE: &str = "BREWBENCH_CONFIG";

/// The sections, and the commands that they configure.
const SECTIONS: [(&str, &str); 2] = [("server", "serve"), ("agent", "agent")];

/// Check the configuration file.
#[derive(Debug, Subcommand)]
pub enum Config {
    /// Check names and values of a configuration file; exits with 1 if the server or the agent would refuse it
    Check(Check),
}

/// Checks a file.
#[derive(Debug, Args)]
pub struct Check {
    /// The file [default: /etc/brewbench/brewbench.toml]
    file: Option<PathBuf>,
}

impl Config {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let Self::Check(Check { file }) = self;
        let file = file.or_else(named).unwrap_or_else(|| DEFAULT.into());
        check(&file).map_err(|fault| anyhow::anyhow!("{}: {fault}", file.display()))?;
        println!("{} is valid", file.display());
        Ok(())
    }
}

/// Checks a file; an error names the section and the setting.
pub fn check(file: &Path) -> Result<(), String> {
    let text = fs::read_to_string(file).map_err(|fault| fault.to_string())?;
    for (section, service) in SECTIONS {
        let line = ["brewbench".into(), service.into()].into_iter().chain(flags(&text, service, |_| false)?);
        root().try_get_matches_from(line).map_err(|fault| format!("[{section}] {}", first_line(&fault)))?;
    }
    Ok(())
}

/// The arguments of the program with what the file adds, and the file if it adds something.
#[derive(Debug)]
pub struct Configured {
    /// The arguments.
    pub line: Vec<OsString>,
    /// The file.
    pub file: Option<PathBuf>,
}

/// Adds the settings of the file to the arguments of a service.
pub fn configured(mut line: Vec<OsString>) -> Result<Configured, String> {
    let word = |n: usize| line.get(n).and_then(|word| word.to_str());
    let Some(service) = word(1).filter(|word| SECTIONS.iter().any(|(_, service)| service == word)) else {
        return Ok(Configured { line, file: None });
    };
    let place = match (service, word(2)) {
        ("agent", Some("doctor")) => 3,
        // It takes none of these flags.
        ("agent", Some("restore" | "help")) => return Ok(Configured { line, file: None }),
        _ => 2,
    };
    let file = named().unwrap_or_else(|| DEFAULT.into());
    let flags = match fs::read_to_string(&file) {
        Ok(text) => flags(&text, service, |flag| has_variable(flag) || is_given(&line, flag))
            .map_err(|fault| format!("{}: {fault}", file.display()))?,
        Err(fault) if fault.kind() == io::ErrorKind::NotFound && file == Path::new(DEFAULT) => Vec::new(),
        Err(_) if file.as_os_str().is_empty() => Vec::new(),
        Err(fault) => return Err(format!("{}: {fault}; {VARIABLE} names another file", file.display())),
    };
    let file = (!flags.is_empty()).then_some(file);
    line.splice(place..place, flags);
    Ok(Configured { line, file })
}

fn named() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).map(PathBuf::from)
}

fn has_variable(flag: &Arg) -> bool {
    flag.get_env().is_some_and(|variable| std::env::var_os(variable).is_some())
}

/// Whether a flag is on the command line, as `--flag VALUE` or `--flag=VALUE`.
fn is_given(line: &[OsString], flag: &Arg) -> bool {
    let name = format!("--{}", flag.get_long().unwrap_or_default());
    let mut rests = line.iter().filter_map(|word| word.to_str()?.strip_prefix(&name));
    rests.any(|rest| rest.is_empty() || rest.starts_with('='))
}

/// Returns the commands. A variable switches a flag on or off by any of the usual words.
pub fn root() -> Command {
    let service = |command: Command| {
        command.mut_args(|flag| match flag.get_action() {
            ArgAction::SetTrue if flag.get_env().is_some() => flag.value_parser(BoolishValueParser::new()),
            _ => flag,
        })
    };
    Cli::command()
        .mut_subcommand("serve", service)
        .mut_subcommand("agent", |agent| service(agent).mut_subcommand("doctor", service))
}

/// Returns the settings of a service as flags, without those that something else replaces.
fn flags(text: &str, service: &str, is_replaced: impl Fn(&Arg) -> bool) -> Result<Vec<OsString>, String> {
    let file: Table = text.parse().map_err(|fault: toml::de::Error| fault.to_string())?;
    if let Some(section) = file.keys().find(|key| SECTIONS.iter().all(|(name, _)| name != key)) {
        return Err(format!("unknown section [{section}]; it has [server] and [agent]"));
    }
    let Some((section, _)) = SECTIONS.iter().find(|(_, command)| *command == service) else { return Ok(Vec::new()) };
    let settings = match file.get(*section) {
        None => return Ok(Vec::new()),
        Some(Value::Table(settings)) => settings,
        Some(_) => return Err(format!("{section} is no section; write [{section}]")),
    };
    let root = root();
    let known: Vec<&Arg> = root
        .find_subcommand(service)
        .into_iter()
        .flat_map(Command::get_arguments)
        .filter(|flag| flag.get_env().is_some())
        .collect();
    let mut flags = Vec::new();
    for (name, value) in settings {
        let Some(flag) = known.iter().find(|flag| flag.get_long() == Some(name)) else {
            let names: Vec<_> = known.iter().filter_map(|flag| flag.get_long()).collect();
            return Err(format!("[{section}] has no setting {name:?}; it has {}", names.join(", ")));
        };
        let argument = argument(name, value, flag).map_err(|fault| format!("[{section}] {name}: {fault}"))?;
        flags.extend(argument.filter(|_| !is_replaced(flag)).map(OsString::from));
    }
    Ok(flags)
}

/// Returns a setting as an argument; none for a switch that is off.
fn argument(name: &str, value: &Value, flag: &Arg) -> Result<Option<String>, String> {
    if matches!(flag.get_action(), ArgAction::SetTrue) {
        return match value {
            Value::Boolean(is_on) => Ok(is_on.then(|| format!("--{name}"))),
            _ => Err("write true or false".to_owned()),
        };
    }
    Ok(Some(format!("--{name}={}", plain(value)?)))
}

/// Returns a value as on the command line, a list with commas.
fn plain(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        Value::Array(values) => Ok(values.iter().map(plain).collect::<Result<Vec<_>, _>>()?.join(",")),
        _ => Err("write a text, a number or a list of them".to_owned()),
    }
}

fn first_line(fault: &clap::Error) -> String {
    let text = fault.to_string();
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_flags_and_lists_have_commas() {
        let text = "[server]\nlisten = \"0.0.0.0:1\"\nmax-summary-bytes = 5\nlocal-agent = true\nallow-any-address = \
            false\nprofilers = [\"perf\", \"pprof\"]\n[agent]\nidle-limit = 0.5\n";
        let mut own = flags(text, "serve", |_| false).expect("flags");
        own.sort();
        let expected = ["--listen=0.0.0.0:1", "--local-agent", "--max-summary-bytes=5", "--profilers=perf,pprof"];
        assert_eq!(own, expected.map(OsString::from));
        assert_eq!(flags(text, "agent", |_| false).expect("flags"), [OsString::from("--idle-limit=0.5")]);
    }

    #[test]
    fn what_a_flag_or_a_variable_sets_is_not_taken_from_the_file() {
        let text = "[server]\nlisten = \"0.0.0.0:1\"\ndata = \"/srv\"\nprofilers = [\"perf\"]\nlease = \"9s\"\n";
        let line = ["brewbench", "serve", "--listen", "x", "--profilers=pprof", "--leases=1s"].map(OsString::from);
        let own = flags(text, "serve", |flag| flag.get_long() == Some("data") || is_given(&line, flag)).expect("flags");
        assert_eq!(own, [OsString::from("--lease=9s")]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        for (text, words) in [
            ("[server]\npublic_url = \"x\"\n", "[server] has no setting \"public_url\"; it has listen, "),
            ("[sever]\n", "unknown section [sever]; it has [server] and [agent]"),
            ("server = 1\n", "server is no section"),
            ("[server]\nlocal-agent = \"yes\"\n", "[server] local-agent: write true or false"),
            ("[server]\nlisten = 2026-01-01\n", "[server] listen: write a text"),
            ("[server\n", "line 1"),
        ] {
            let fault = flags(text, "serve", |_| false).expect_err(text);
            assert!(fault.contains(words), "{fault}");
        }
    }
}
