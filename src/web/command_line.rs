//! Words of a command that users paste into a shell. Pure.

/// Quotes a word for the shell.
pub fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,@%+".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    if word.chars().any(char::is_control) {
        // Pasted unescaped, a terminal would execute control characters.
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
