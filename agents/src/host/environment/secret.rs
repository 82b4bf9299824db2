//! Hides values that look like secrets, which must not leave the machine.

/// Replaces a hidden value.
pub const LEFT_OUT: &str = "(left out)";

/// Parts of variable names that indicate a secret.
const WORDS: [&str; 12] = [
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSW",
    "PASSPHRASE",
    "CREDENTIAL",
    "AUTH",
    "COOKIE",
    "PRIVATE",
    "SIGNATURE",
    "SALT",
    "DSN",
];

/// Prefixes of well-known kinds of tokens.
const TOKENS: [&str; 10] = ["eyJ", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "sk-", "AKIA"];

/// Precedes a secret within a longer value, as in `Server=db;Password=x` or `https://host/?token=x`.
const BEFORE: [&str; 6] = ["password=", "passwd=", "pwd=", "token=", "secret=", "key="];

/// Returns the value of a variable, or [`LEFT_OUT`] for a secret.
pub fn value(name: &str, value: &str) -> String {
    if is_secret(name) || has_secret(value) { LEFT_OUT.to_owned() } else { value.to_owned() }
}

/// Hides the secrets of a command: words after flags such as `--token`, and values of `TOKEN=`.
pub fn command(words: &[String]) -> Vec<String> {
    let mut shown: Vec<String> = Vec::with_capacity(words.len());
    let mut flag: Option<&str> = None;
    for word in words {
        let named = word.split_once('=').filter(|(name, _)| is_secret(name));
        shown.push(match named {
            Some((name, _)) => format!("{name}={LEFT_OUT}"),
            None if has_secret(word) => LEFT_OUT.to_owned(),
            None if flag.is_some_and(is_secret) && !word.starts_with('-') => LEFT_OUT.to_owned(),
            None => word.clone(),
        });
        flag = Some(word.as_str()).filter(|word| word.starts_with('-') && !word.contains('='));
    }
    shown
}

fn is_secret(name: &str) -> bool {
    let name = name.to_uppercase();
    // MYSQL_PWD is a password, PWD and OLDPWD are folders.
    let ends = ["_PWD", "_PASS", "-PASS", "_PAT"];
    WORDS.iter().any(|word| name.contains(word)) || ends.iter().any(|end| name.ends_with(end))
}

fn has_secret(text: &str) -> bool {
    let small = text.to_lowercase();
    has_password(text)
        || text.contains("-----BEGIN")
        || TOKENS.iter().any(|start| text.starts_with(start))
        || BEFORE.iter().any(|word| small.contains(word))
}

/// Whether a text contains a password in a URL, as in `postgres://ada:secret@host/db`.
fn has_password(text: &str) -> bool {
    text.split("://").skip(1).any(|rest| {
        let place = rest.split(['/', '?', '#', ' ']).next().unwrap_or_default();
        place.rsplit_once('@').is_some_and(|(who, _)| who.contains(':'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden() {
        let names =
            ["API_KEY", "token", "Db_Password", "AWS_SECRET_ACCESS", "SSH_AUTH_SOCK", "MYSQL_PWD", "SENTRY_DSN"];
        for name in names {
            assert_eq!(value(name, "x"), LEFT_OUT, "{name}");
        }
        assert_eq!(value("DATABASE_URL", "postgres://ada:secret@host/db"), LEFT_OUT);
        for hidden in ["eyJhbGciOi", "Server=db;Password=x", "https://host/?token=x", "-----BEGIN RSA", "ghp_0"] {
            assert_eq!(value("ANYTHING", hidden), LEFT_OUT, "{hidden}");
        }
        for (name, visible) in [
            ("PWD", "/srv"),
            ("GOMAXPROCS", "2"),
            ("URL", "http://host:80/a@b:c"),
            ("WHO", "git@host:x"),
            ("SSL_CERT_FILE", "/etc/ca.pem"),
        ] {
            assert_eq!(value(name, visible), visible);
        }
    }

    #[test]
    fn only_the_secrets_of_a_command_are_hidden() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let shown =
            command(&words("serve --port {port} --token abc --api-key=def TLS_KEY=ghi --verbose --auth --quick"));
        let expected =
            "serve --port {port} --token (left out) --api-key=(left out) TLS_KEY=(left out) --verbose --auth --quick";
        assert_eq!(shown.join(" "), expected);
    }
}
