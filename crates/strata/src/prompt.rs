//! Asking a person at the terminal for a secret, without showing what is typed.

use std::io::{IsTerminal, Read, Write};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use strata_secret::SecretString;
use strata_secrets::Prompt;

/// Nobody types more than this.
const LONGEST: usize = 4096;

/// The person at standard input, if that is a terminal.
pub(crate) struct TerminalPrompt;

impl Prompt for TerminalPrompt {
    fn secret(&self, question: &str) -> Option<SecretString> {
        let mut terminal = std::io::stdin().lock();
        if !terminal.is_terminal() {
            return None;
        }
        let no_echo = NoEcho::begin()?;
        let mut say = anstream::stderr();
        let _ = write!(say, "{question}: ").and_then(|()| say.flush());
        let answer = read_line(&mut terminal);
        drop(no_echo);
        let _ = writeln!(say);
        answer
    }
}

/// Whether the person agrees; only somebody at a terminal can.
pub(crate) fn confirm(question: &str) -> bool {
    if !std::io::stdin().is_terminal() {
        return false;
    }
    let mut say = anstream::stderr();
    let _ = write!(say, "{question} [Y/n] ").and_then(|()| say.flush());
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer).unwrap_or(0);
    read > 0 && matches!(answer.trim().to_lowercase().as_str(), "" | "y" | "yes")
}

/// A terminal that shows nothing and sends no signals, until dropped: an interrupt must not leave it like that.
struct NoEcho(Termios);

impl NoEcho {
    fn begin() -> Option<Self> {
        let before = tcgetattr(std::io::stdin()).ok()?;
        let mut hidden = before.clone();
        hidden.local_modes &= !(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        tcsetattr(std::io::stdin(), OptionalActions::Flush, &hidden).ok()?;
        Some(Self(before))
    }
}

impl Drop for NoEcho {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, &self.0);
    }
}

/// Reads to the end of the line, with the keys that a terminal gives a meaning; `None` if it was broken off.
fn read_line(input: &mut impl Read) -> Option<SecretString> {
    // With its whole room from the start, so that growing leaves no copies behind.
    let mut line = zeroize::Zeroizing::new(Vec::with_capacity(LONGEST));
    let mut byte = [0];
    loop {
        if input.read(&mut byte).ok()? == 0 {
            return None;
        }
        match byte[0] {
            b'\r' | b'\n' => break,
            // Control-C and control-D.
            3 | 4 => return None,
            // Backspace takes a whole character, control-U the line.
            8 | 127 => while line.pop().is_some_and(|last| last & 0b1100_0000 == 0b1000_0000) {},
            21 => line.clear(),
            other if line.len() < LONGEST => line.push(other),
            _ => return None,
        }
    }
    std::str::from_utf8(&line).ok().map(SecretString::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &str) -> Option<String> {
        read_line(&mut keys.as_bytes()).map(|line| line.expose().to_owned())
    }

    #[test]
    fn keys_mean_what_they_mean_at_a_terminal() {
        assert_eq!(typed("pass word\nrest").as_deref(), Some("pass word"));
        assert_eq!(typed("aäb\u{7f}\u{7f}c\r").as_deref(), Some("ac"));
        assert_eq!(typed("wrong\u{15}right\n").as_deref(), Some("right"));
        assert_eq!(typed("half\u{3}\n"), None);
        assert_eq!(typed("no end"), None);
        assert_eq!(typed(&"x".repeat(LONGEST + 1)), None);
    }
}
