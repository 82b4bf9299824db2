//! The command line.

use std::time::Duration;

/// Usage of the program.
pub const USAGE: &str = "usage: rust-hyper --listen HOST:PORT [--name NAME] [--extra-rounds N] [--slow-start S] \
    [--other-work redirect|empty|not-modified|error-page|close|headers]";

/// The parsed command line.
#[derive(Debug, PartialEq, Eq)]
pub struct Arguments {
    /// Address to listen on, `HOST:PORT`; port 0 chooses a free one.
    pub listen: String,
    /// Name of the target in `/hash`.
    pub name: String,
    /// Additional SHA-256 rounds per request, to simulate a regression.
    pub extra_rounds: u32,
    /// Time over which the extra rounds decrease to none, to simulate a just-in-time compiler.
    pub slow_start: Option<Duration>,
    /// Different work for `/hash`, to simulate unequal work.
    pub other_work: Option<OtherWork>,
}

/// Work that differs from the normal response of `/hash`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherWork {
    /// Redirects first.
    Redirect,
    /// Status 200 and an empty body.
    Empty,
    /// Status 304.
    NotModified,
    /// An error page with status 200.
    ErrorPage,
    /// Closes the connection after each response.
    Close,
    /// The same work, with a longer header in each response.
    Headers,
}

impl OtherWork {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "redirect" => Self::Redirect,
            "empty" => Self::Empty,
            "not-modified" => Self::NotModified,
            "error-page" => Self::ErrorPage,
            "close" => Self::Close,
            "headers" => Self::Headers,
            _ => return None,
        })
    }
}

impl Arguments {
    /// Parses the arguments after the program's name. The error is a sentence for the user.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut listen, mut name, mut extra_rounds) = (None, "rust-hyper".to_owned(), 0);
        let (mut slow_start, mut other_work) = (None, None);
        while let Some(flag) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{flag} needs a value"));
            match flag.as_str() {
                "--listen" => listen = Some(value()?),
                "--name" => name = value()?,
                "--extra-rounds" => {
                    let text = value()?;
                    extra_rounds =
                        text.parse().map_err(|_| format!("--extra-rounds {text}: not a number of rounds"))?;
                }
                "--slow-start" => {
                    let text = value()?;
                    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                    slow_start = Some(seconds.ok_or_else(|| format!("--slow-start {text}: not a number of seconds"))?);
                }
                "--other-work" => {
                    let text = value()?;
                    let kind = OtherWork::parse(&text);
                    other_work = Some(kind.ok_or_else(|| format!("--other-work {text}: unknown kind of work"))?);
                }
                _ => return Err(format!("{flag} is not an option")),
            }
        }
        let listen = listen.ok_or("--listen is missing")?;
        Ok(Self { listen, name, extra_rounds, slow_start, other_work })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Arguments, OtherWork};

    fn parse(line: &str) -> Result<Arguments, String> {
        Arguments::parse(line.split_whitespace().map(str::to_owned))
    }

    fn plain(listen: &str) -> Arguments {
        Arguments {
            listen: listen.to_owned(),
            name: "rust-hyper".to_owned(),
            extra_rounds: 0,
            slow_start: None,
            other_work: None,
        }
    }

    #[test]
    fn only_the_address_is_required() {
        assert_eq!(parse("--listen 127.0.0.1:80"), Ok(plain("127.0.0.1:80")));
    }

    #[test]
    fn name_and_extra_rounds_are_parsed() {
        let expected = Arguments { name: "slow".to_owned(), extra_rounds: 40, ..plain("[::1]:0") };
        assert_eq!(parse("--extra-rounds 40 --name slow --listen [::1]:0"), Ok(expected));
    }

    #[test]
    fn slow_start_and_other_work_are_parsed() {
        let expected = Arguments {
            slow_start: Some(Duration::from_millis(1_500)),
            other_work: Some(OtherWork::NotModified),
            ..plain("[::1]:0")
        };
        assert_eq!(parse("--listen [::1]:0 --slow-start 1.5 --other-work not-modified"), Ok(expected));
    }

    #[test]
    fn an_invalid_command_line_is_reported() {
        for (line, fault) in [
            ("", "--listen is missing"),
            ("--listen", "--listen needs a value"),
            ("--listen :1 --fast", "--fast is not an option"),
            ("--listen :1 --extra-rounds -3", "--extra-rounds -3: not a number of rounds"),
            ("--listen :1 --slow-start -3", "--slow-start -3: not a number of seconds"),
            ("--listen :1 --other-work none", "--other-work none: unknown kind of work"),
        ] {
            assert_eq!(parse(line), Err(fault.to_owned()));
        }
    }
}
