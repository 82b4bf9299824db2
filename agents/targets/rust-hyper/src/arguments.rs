//! The command line.

/// How to call the program.
pub const USAGE: &str = "usage: rust-hyper --listen HOST:PORT [--name NAME] [--extra-rounds N]";

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub struct Arguments {
    /// Address to listen on, `HOST:PORT`; port 0 takes a free one.
    pub listen: String,
    /// The target's name, as `/hash` tells it.
    pub name: String,
    /// SHA-256 rounds that each request costs in addition, for showing what a regression looks like.
    pub extra_rounds: u32,
}

impl Arguments {
    /// Reads the arguments that follow the program's name. The error is a sentence for the user.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut listen, mut name, mut extra_rounds) = (None, "rust-hyper".to_owned(), 0);
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
                _ => return Err(format!("{flag} is not an option")),
            }
        }
        let listen = listen.ok_or("--listen is missing")?;
        Ok(Self { listen, name, extra_rounds })
    }
}

#[cfg(test)]
mod tests {
    use super::Arguments;

    fn parse(line: &str) -> Result<Arguments, String> {
        Arguments::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn only_the_address_is_required() {
        let expected = Arguments { listen: "127.0.0.1:80".to_owned(), name: "rust-hyper".to_owned(), extra_rounds: 0 };
        assert_eq!(parse("--listen 127.0.0.1:80"), Ok(expected));
    }

    #[test]
    fn name_and_extra_rounds_are_taken() {
        let expected = Arguments { listen: "[::1]:0".to_owned(), name: "slow".to_owned(), extra_rounds: 40 };
        assert_eq!(parse("--extra-rounds 40 --name slow --listen [::1]:0"), Ok(expected));
    }

    #[test]
    fn a_wrong_command_line_names_its_fault() {
        for (line, fault) in [
            ("", "--listen is missing"),
            ("--listen", "--listen needs a value"),
            ("--listen :1 --fast", "--fast is not an option"),
            ("--listen :1 --extra-rounds -3", "--extra-rounds -3: not a number of rounds"),
        ] {
            assert_eq!(parse(line), Err(fault.to_owned()));
        }
    }
}
