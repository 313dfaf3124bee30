//! Running a command that prints a secret: an age key, or the password of a vault.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use zeroize::Zeroizing;

use crate::Environment;

/// Runs a program with the given environment and nothing else of ours, and returns what it printed.
pub(crate) fn output(
    program: &Path,
    arguments: &[String],
    environment: &Environment,
    extra: &[(&str, &str)],
) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stderr(Stdio::inherit());
    command.env_clear().envs(environment.variables()).envs(extra.iter().copied());
    if let Some(directory) = &environment.directory {
        command.current_dir(directory);
    }
    let output = command.output()?;
    let printed = Zeroizing::new(output.stdout);
    if output.status.success() {
        Ok(printed)
    } else {
        Err(io::Error::other(format!("it ended with {}", output.status)))
    }
}

/// Splits a command line into words: quotes group, a backslash takes the next character as it is.
pub(crate) fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next()? {
                        '\'' => break,
                        other => word.push(other),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next()? {
                        '"' => break,
                        '\\' => word.push(characters.next()?),
                        other => word.push(other),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(characters.next()?),
            // As a shell does, a word that starts with a number sign begins a comment.
            '#' if word.is_none() => break,
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_does() {
        assert_eq!(
            words(r#"pass 'show me' "a \"b\"" c\ d '' # not this"#).expect("balanced"),
            ["pass", "show me", "a \"b\"", "c d", ""]
        );
        assert_eq!(words("'open"), None);
        assert_eq!(words("x\\"), None);
        assert_eq!(words("  "), Some(vec![]));
    }

    #[test]
    fn a_command_sees_only_what_it_is_given() {
        let environment = Environment::new([("SEEN".to_owned(), "yes".to_owned())]);
        let arguments = ["-c".to_owned(), "echo $SEEN $EXTRA $HOME".to_owned()];
        let printed =
            output(Path::new("/bin/sh"), &arguments, &environment, &[("EXTRA", "too")]).expect("sh runs");
        assert_eq!(printed.as_slice(), b"yes too\n");
        let failing = ["-c".to_owned(), "exit 3".to_owned()];
        assert!(output(Path::new("/bin/sh"), &failing, &environment, &[]).is_err());
    }
}
