//! Texts that fit a number of columns.

use anstream::adapter::strip_str;

/// Breaks a text that may be painted: at its commas where that is enough, else between words. Lines after the first are indented.
pub fn folded(text: &str, indent: usize, columns: usize) -> String {
    let room = columns.saturating_sub(indent).max(24);
    let mut lines: Vec<String> = vec![String::new()];
    let mut push = |part: &str| {
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && seen(line) + seen(part.trim_end()) > room {
            lines.push(part.to_owned());
        } else {
            line.push_str(part);
        }
    };
    for part in text.split_inclusive(", ") {
        match seen(part.trim_end()) > room {
            true => part.split_inclusive(' ').flat_map(|word| broken(word, room)).for_each(&mut push),
            false => push(part),
        }
    }
    lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join(&format!("\n{}", " ".repeat(indent)))
}

/// A word that is longer than a line, in pieces. Colours take no room.
fn broken(word: &str, room: usize) -> Vec<&str> {
    let (mut pieces, mut start, mut seen, mut in_escape) = (Vec::new(), 0, 0, false);
    for (at, letter) in word.char_indices() {
        match letter {
            '\u{1b}' => in_escape = true,
            _ if in_escape => in_escape = letter != 'm',
            ' ' => {}
            _ if seen == room => {
                pieces.push(&word[start..at]);
                (start, seen) = (at, 1);
            }
            _ => seen += 1,
        }
    }
    pieces.push(&word[start..]);
    pieces
}

/// Wraps prose between words. Lines that are set in are files, and stay; an item of a list hangs under its text.
pub fn wrapped(text: &str, columns: usize) -> String {
    let wrap = |line: &str| {
        if line.starts_with("    ") || line.starts_with('|') || seen(line) <= columns {
            return line.to_owned();
        }
        let hang = line.len() - line.trim_start_matches([' ', '-']).len();
        let (mut out, mut width) = (String::new(), 0);
        for word in line.split(' ') {
            if width > 0 && width + 1 + seen(word) > columns {
                out.push('\n');
                out.push_str(&" ".repeat(hang));
                out.push_str(word);
                width = hang + seen(word);
            } else {
                if !out.is_empty() {
                    out.push(' ');
                    width += 1;
                }
                out.push_str(word);
                width += seen(word);
            }
        }
        out
    };
    text.lines().map(wrap).collect::<Vec<_>>().join("\n")
}

/// How many characters of a painted text are seen.
pub fn seen(painted: &str) -> usize {
    strip_str(painted).map(|part| part.chars().count()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_come_first_and_then_words() {
        assert_eq!(
            folded("one two three, four five six, seven", 2, 26),
            "one two three,\n  four five six, seven"
        );
        let long = "a sentence without any comma that is longer than the room";
        assert_eq!(folded(long, 2, 30), "a sentence without any comma\n  that is longer than the room");
        assert_eq!(folded(long, 2, usize::MAX), long);
        let word = "\u{1b}[32mabcdefghijklmnopqrstuvwxyz0123456789\u{1b}[0m";
        assert_eq!(folded(word, 1, 20), "\u{1b}[32mabcdefghijklmnopqrstuvwx\n yz0123456789\u{1b}[0m");
    }

    #[test]
    fn prose_is_wrapped_and_files_are_not() {
        let text = "one two three four\n- five six seven eight\n    a: a file stays as it is\n";
        assert_eq!(
            wrapped(text, 12),
            "one two\nthree four\n- five six\n  seven\n  eight\n    a: a file stays as it is"
        );
        assert_eq!(wrapped(text, usize::MAX), text.trim_end());
    }
}
