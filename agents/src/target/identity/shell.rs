//! What the text of a shell starts and names, as far as it can be read without running it. Pure.

/// Programs that start the one that is named by one of their arguments.
pub(super) const LAUNCHERS: [&str; 16] = [
    "busybox",
    "catchsegv",
    "chrt",
    "dumb-init",
    "env",
    "exec",
    "ionice",
    "nice",
    "nohup",
    "numactl",
    "setpriv",
    "setsid",
    "stdbuf",
    "taskset",
    "timeout",
    "tini",
];

/// Words after which a command follows.
const BEFORE_COMMANDS: [&str; 12] =
    ["if", "then", "elif", "else", "while", "until", "do", "!", "time", "command", "{", "}"];

/// Words of the shell itself, which start no other program.
const BUILTINS: [&str; 37] = [
    ":", "[", "[[", "alias", "break", "cd", "continue", "declare", "done", "echo", "esac", "eval", "exit", "export",
    "false", "fi", "for", "case", "getopts", "hash", "in", "local", "printf", "pwd", "read", "readonly", "return",
    "set", "shift", "shopt", "test", "trap", "true", "type", "ulimit", "umask", "wait",
];

/// Ends of names of code.
const CODE: [&str; 8] = [".jar", ".js", ".mjs", ".php", ".py", ".rb", ".so", ".war"];

/// What a text of a shell starts and names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Reading {
    /// Words in the place of a program.
    pub(super) programs: Vec<String>,
    /// All other words, without options.
    pub(super) words: Vec<String>,
    /// Folders that it enters.
    pub(super) folders: Vec<String>,
    /// The first word whose program or file is decided only when it runs.
    pub(super) unknown: Option<String>,
}

/// Reads a text. What a function, an `eval` or a variable starts is unknown.
pub(super) fn read(text: &str) -> Reading {
    let mut reading = Reading::default();
    let mut previous: Option<String> = None;
    // Before the current command.
    let mut programs = 0;
    let mut is_command = true;
    for token in tokens(text) {
        match token {
            Token::Pattern => reading.programs.truncate(programs),
            Token::Separator => {
                is_command = true;
                previous = None;
                programs = reading.programs.len();
            }
            Token::Word(word) => {
                if is_command {
                    is_command = reading.add_command(&word);
                } else {
                    if previous.as_deref() == Some("cd") {
                        reading.folders.push(word.clone());
                    }
                    if matches!(previous.as_deref(), Some("." | "source")) {
                        reading.programs.push(word.clone());
                    }
                    if !previous.as_deref().is_some_and(|previous| previous.ends_with('>')) {
                        reading.add_word(&word);
                    }
                }
                previous = Some(word);
            }
        }
    }
    let is_function = |name: &String| text.contains(&format!("{name}()")) || text.contains(&format!("{name} ()"));
    reading.programs.retain(|name| !is_function(name));
    reading
}

impl Reading {
    /// Adds a word where a command is expected; returns whether one is still expected.
    fn add_command(&mut self, word: &str) -> bool {
        let name = word.split('=').next().unwrap_or_default();
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        // Options of a launcher, numbers such as its priority, and redirections stand before the command, too.
        let is_option = word.starts_with('-') || word.starts_with(|first: char| first.is_ascii_digit());
        if BEFORE_COMMANDS.contains(&word) || LAUNCHERS.contains(&word) || is_option || word.starts_with(['>', '<']) {
            return true;
        }
        if word.contains('=') && is_name {
            self.add_word(word);
            return true;
        }
        if word == "eval" || word.contains(['$', '`']) {
            self.unknown.get_or_insert_with(|| word.to_owned());
        } else if !BUILTINS.contains(&word) && word != "." && word != "source" {
            self.programs.push(word.to_owned());
        }
        false
    }

    fn add_word(&mut self, word: &str) {
        if names_unknown_file(word) {
            self.unknown.get_or_insert_with(|| word.to_owned());
        }
        if !word.starts_with('-') || word.contains('=') {
            self.words.push(word.to_owned());
        }
    }
}

/// Whether a word names a file that depends on a variable.
fn names_unknown_file(word: &str) -> bool {
    let is_code = || CODE.iter().any(|extension| word.ends_with(extension));
    word.contains(['$', '`']) && !word.contains('>') && !word.contains("://") && (word.contains('/') || is_code())
}

enum Token {
    Word(String),
    Separator,
    /// What is before is a pattern of a `case`, not a command.
    Pattern,
}

/// Splits a text as a shell does: quotes are removed, comments are left out.
fn tokens(text: &str) -> Vec<Token> {
    let mut all = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.chars().peekable();
    let mut depth = 0_usize;
    let end = |word: &mut Option<String>, all: &mut Vec<Token>| all.extend(word.take().map(Token::Word));
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('\n') | None => {}
                Some(next) => word.get_or_insert_default().push(next),
            },
            '\'' | '"' => {
                let own = word.get_or_insert_default();
                while let Some(next) = letters.next() {
                    match next {
                        next if next == letter => break,
                        '\\' if letter == '"' => own.extend(letters.next()),
                        next => own.push(next),
                    }
                }
            }
            '#' if word.is_none() => while letters.next_if(|next| *next != '\n').is_some() {},
            '&' if word.as_deref().is_some_and(|word| word.ends_with('>')) => word.get_or_insert_default().push('&'),
            ';' | '&' | '|' | '\n' | '(' | ')' => {
                // `$(…)`: what it returns is unknown, what it starts is not.
                end(&mut word, &mut all);
                match letter {
                    '(' => depth += 1,
                    ')' if depth == 0 => all.push(Token::Pattern),
                    ')' => depth -= 1,
                    _ => {}
                }
                all.push(Token::Separator);
            }
            letter if letter.is_whitespace() => end(&mut word, &mut all),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    end(&mut word, &mut all);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn programs_and_files_are_found() {
        let reading = read("cd 'my app' && A=1 exec ./server --config=a.toml b.json > log 2>&1 # ./other\n");
        assert_eq!(reading.programs, texts(&["./server"]));
        assert_eq!(reading.folders, texts(&["my app"]));
        assert!(["--config=a.toml", "b.json", "A=1"].iter().all(|word| reading.words.contains(&(*word).to_owned())));
        assert_eq!(reading.unknown, None);
        let script =
            "#!/bin/sh\nset -e\nif [ -f x ]; then . ./env.sh; fi\nsed s/a/b/ in > out; nginx -c out | tee log\n";
        assert_eq!(read(script).programs, texts(&["./env.sh", "sed", "nginx", "tee"]));
        assert_eq!(read(script).unknown, None);
    }

    #[test]
    fn what_is_decided_at_run_time_is_unknown() {
        for text in ["exec $APP", "\"$JAVACMD\" \"$@\"", "eval \"$x\"", "exec `which java`", "true; ${X:-y} z"] {
            assert!(read(text).unknown.is_some(), "{text}");
        }
        for text in ["exec java -jar \"$HOME/x.jar\"", "exec python3 $APP.py", "exec ./server --root=$SITE/www"] {
            assert!(read(text).unknown.is_some(), "{text}");
        }
        for text in
            ["exec ./server --port $PORT http://0.0.0.0:$PORT/ \"$@\" > $LOGS/out 2>>$LOGS/err", "exec ./a > log/$X"]
        {
            assert_eq!(read(text).unknown, None, "{text}");
        }
    }

    #[test]
    fn launchers_functions_and_patterns_are_no_programs() {
        let text = "start() { nice -n 5 taskset 0x3 ./a; }\ncase $1 in run) start ;; *) exec >log 2>&1; ./b ;; esac\n";
        assert_eq!(read(text).programs, texts(&["./a", "./b"]));
    }
}
