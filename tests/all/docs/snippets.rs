//! The snippets of a Markdown file, in order: commands with their exit codes and output, and files to save. Pure.
//!
//! Conventions of the docs: a command ends with `# exits 1 or 2` if it does not exit with 0. A `console` block shows
//! commands after `$ ` and their output, where `…` stands for any text and a line `…` for any lines. Words in capitals
//! stand for what the reader puts there. "Save it as `NAME`" follows the block with the file.

/// What a reader does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Runs a command.
    Run(Command),
    /// Saves a block as a file.
    Save {
        /// Name of the file.
        name: String,
        /// Its content.
        text: String,
    },
}

/// A command of a `sh` or `console` block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Line in the file, from 1.
    pub line: usize,
    /// The command without its comment, on one line.
    pub text: String,
    /// The exit codes that the docs state.
    pub codes: Vec<i32>,
    /// The output that the docs show.
    pub output: Vec<String>,
}

/// A fenced block of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Line of its first line of text in the file, from 1.
    pub line: usize,
    /// Its language.
    pub language: String,
    /// Its text.
    pub text: String,
    /// The prose that follows, up to the next block.
    pub after: String,
}

/// Returns the fenced blocks of a file.
pub fn blocks(markdown: &str) -> Vec<Block> {
    let mut all: Vec<Block> = Vec::new();
    let mut is_open = false;
    for (number, line) in markdown.lines().enumerate() {
        match (line.strip_prefix("```"), is_open) {
            (Some(language), false) => {
                let language = language.trim().to_owned();
                all.push(Block { line: number + 2, language, text: String::new(), after: String::new() });
                is_open = true;
            }
            (Some(_), true) => is_open = false,
            (None, _) => {
                if let Some(block) = all.last_mut() {
                    let part = if is_open { &mut block.text } else { &mut block.after };
                    part.push_str(line);
                    part.push('\n');
                }
            }
        }
    }
    all
}

/// Returns what a reader of a file does, in order.
pub fn steps(markdown: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for block in blocks(markdown) {
        if let Some((_, rest)) = block.after.split_once("Save it as `") {
            let name = rest.split('`').next().unwrap_or_default().to_owned();
            steps.push(Step::Save { name, text: block.text });
        } else {
            steps.extend(commands(&block).into_iter().map(Step::Run));
        }
    }
    steps
}

/// Returns the commands of a block; none if it is of another language.
pub fn commands(block: &Block) -> Vec<Command> {
    let prompt = match block.language.as_str() {
        "sh" => "",
        "console" => "$ ",
        _ => return Vec::new(),
    };
    let mut all: Vec<Command> = Vec::new();
    let mut continues = false;
    for (number, line) in block.text.lines().enumerate() {
        if continues {
            let command = all.last_mut().expect("a line that continues");
            continues = extend(command, line);
        } else if let Some(start) = line.strip_prefix(prompt).filter(|start| !start.trim().is_empty()) {
            let line = block.line + number;
            let mut command = Command { line, text: String::new(), codes: vec![0], output: Vec::new() };
            continues = extend(&mut command, start);
            all.push(command);
        } else if let Some(command) = all.last_mut().filter(|_| !prompt.is_empty()) {
            command.output.push(line.to_owned());
        }
    }
    all.retain(|command| !command.text.is_empty());
    all
}

/// Adds a line to a command. Returns whether the command continues on the next one.
fn extend(command: &mut Command, line: &str) -> bool {
    let (text, comment) = without_comment(line);
    if let Some((_, codes)) = comment.split_once("exits ") {
        let codes = codes.split(|letter: char| !letter.is_ascii_digit()).filter(|digits| !digits.is_empty());
        command.codes = codes.map(|digits| digits.parse().expect("an exit code")).collect();
    }
    let (text, continues) = text.trim().strip_suffix('\\').map_or((text.trim(), false), |text| (text.trim(), true));
    if !command.text.is_empty() {
        command.text.push(' ');
    }
    command.text.push_str(text);
    continues
}

/// Splits a line at its comment; only plain quotes are understood.
fn without_comment(line: &str) -> (&str, &str) {
    let (mut quote, mut before) = (None, ' ');
    for (at, letter) in line.char_indices() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            (None, '#') if before.is_whitespace() => return (&line[..at], &line[at..]),
            _ => {}
        }
        before = letter;
    }
    (line, "")
}

/// Returns the words of a command; only plain quotes are understood.
pub fn words(command: &str) -> Vec<String> {
    let (mut all, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in without_comment(command).0.chars() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, letter) if letter.is_whitespace() => all.extend(word.take()),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    all.extend(word);
    all
}

/// Returns the first shown line that the output lacks, if any. Spaces and how lines wrap do not count.
pub fn missing_line(shown: &[String], output: &str) -> Option<String> {
    let shown = unwrapped(shown.iter().map(String::as_str));
    let mut rest = unwrapped(output.lines());
    let mut may_skip = true;
    for line in shown {
        if line.trim() == "…" {
            may_skip = true;
            continue;
        }
        let found = rest.iter().position(|is| matches(&line, is));
        match found {
            Some(place) if may_skip || place == 0 => drop(rest.drain(..=place)),
            _ => return Some(line),
        }
        may_skip = false;
    }
    None
}

/// Joins each line with those that continue it, which are indented far.
fn unwrapped<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for line in lines {
        let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
        match all.last_mut().filter(|_| line.starts_with(&" ".repeat(16))) {
            Some(last) => *last = format!("{last} {words}"),
            None => all.push(words),
        }
    }
    all
}

/// Whether a line matches a pattern, where `…` stands for any text.
fn matches(pattern: &str, line: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('…') else { return pattern == line };
    let Some(tail) = line.strip_prefix(start) else { return false };
    tail.char_indices().map(|(at, _)| at).chain([tail.len()]).any(|at| matches(rest, &tail[at..]))
}

#[test]
fn commands_have_their_exit_codes_and_output() {
    let text = "a\n```sh\nx -f 'a # b' \\\n  y   # exits 1 or 2\n\nz\n```\nb\n```console\n$ run\nline …\n…\nend\n```\n";
    let found: Vec<_> = blocks(text).iter().flat_map(commands).collect();
    let command = |line, text: &str, codes: &[i32], output: &[&str]| Command {
        line,
        text: text.to_owned(),
        codes: codes.to_vec(),
        output: output.iter().map(|line| (*line).to_owned()).collect(),
    };
    let expected = [
        command(3, "x -f 'a # b' y", &[1, 2], &[]),
        command(6, "z", &[0], &[]),
        command(10, "run", &[0], &["line …", "…", "end"]),
    ];
    assert_eq!(found, expected);
    assert_eq!(words(&found[0].text), ["x", "-f", "a # b", "y"]);
    let save = "```js\n1\n```\n\nSave it as `a.js`.\n";
    assert_eq!(steps(save), [Step::Save { name: "a.js".to_owned(), text: "1\n".to_owned() }]);
}

#[test]
fn shown_output_must_appear_in_order() {
    let missing =
        |shown: &str, output: &str| missing_line(&shown.lines().map(str::to_owned).collect::<Vec<_>>(), output);
    assert_eq!(missing("b …\nc", "a\nb 12\nc\nd"), None);
    assert_eq!(missing("a\n…\nd", "a\nb 12\nc\nd"), None);
    assert_eq!(missing("a\nc", "a\nb\nc"), Some("c".to_owned()), "neighbours must be neighbours");
    assert_eq!(missing("c\n…\na", "a\nb\nc"), Some("a".to_owned()));
    let indent = " ".repeat(20);
    assert_eq!(missing("key a b c\nd", &format!("key a\n{indent}b\n{indent}c\nd")), None);
    assert_eq!(missing("rps … ms", "rps 1 s"), Some("rps … ms".to_owned()));
}
