//! YAML at the level of its text: exact places, comments, the types of scalars, and how to write them.

use std::collections::HashMap;

mod cursor;
mod parse;
pub(crate) mod resolve;
mod scalar;
pub(crate) mod scan;
mod token;
pub(crate) mod write;

use scan::{Event, Scalar};

/// What can go wrong while reading YAML.
#[derive(Debug, thiserror::Error)]
pub enum YamlError {
    #[error("line {line}: {reason}")]
    Syntax { line: usize, reason: String },
    #[error("line {line}: this layout of YAML is not supported")]
    Layout { line: usize },
    #[error("nested more than {deepest} levels deep")]
    TooDeep { deepest: usize },
    #[error("more than {most} values, with every alias written out")]
    TooLarge { most: usize },
}

/// More values than this, with every alias written out, are refused: a few lines of aliases can mean billions.
pub(crate) const MOST_VALUES: usize = 200_000;

/// The line of a place, counted from one.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// A scalar and the names that lead to it; items of lists have numbers.
pub(crate) struct NamedScalar<'e> {
    pub(crate) path: Vec<String>,
    pub(crate) scalar: &'e Scalar,
}

/// Every scalar of all documents that is a value, with aliases written out.
pub(crate) fn named_scalars(events: &[Event]) -> Result<Vec<NamedScalar<'_>>, YamlError> {
    let mut namer = Namer { events, next: 0, anchors: HashMap::new(), found: Vec::new() };
    while namer.next < events.len() {
        match &events[namer.next] {
            Event::DocumentStart { .. } | Event::DocumentEnd | Event::End { .. } => namer.next += 1,
            _ => namer.node(&[])?,
        }
    }
    Ok(namer.found)
}

struct Namer<'e> {
    events: &'e [Event],
    next: usize,
    /// What each anchor names: the values found there, and the path to cut from theirs.
    anchors: HashMap<usize, (std::ops::Range<usize>, usize)>,
    found: Vec<NamedScalar<'e>>,
}

impl<'e> Namer<'e> {
    fn node(&mut self, path: &[String]) -> Result<(), YamlError> {
        let first = self.found.len();
        let event: &'e Event = &self.events[self.next];
        self.next += 1;
        let anchor = match event {
            Event::Scalar(scalar) => {
                self.add(path.to_vec(), scalar)?;
                scalar.anchor
            }
            Event::Alias { anchor, .. } => {
                let (range, cut) = self.anchors.get(anchor).cloned().unwrap_or((0..0, 0));
                for index in range {
                    let below = self.found[index].path[cut..].iter().cloned();
                    let path = path.iter().cloned().chain(below).collect();
                    self.add(path, self.found[index].scalar)?;
                }
                0
            }
            Event::Start { list, anchor, .. } => {
                let mut index = 0;
                while !matches!(self.events.get(self.next), None | Some(Event::End { .. })) {
                    let name = if *list { index.to_string() } else { self.key() };
                    index += 1;
                    let below: Vec<String> = path.iter().cloned().chain([name]).collect();
                    self.node(&below)?;
                }
                self.next += 1;
                *anchor
            }
            Event::DocumentStart { .. } | Event::DocumentEnd | Event::End { .. } => 0,
        };
        if anchor != 0 {
            self.anchors.insert(anchor, (first..self.found.len(), path.len()));
        }
        Ok(())
    }

    /// The text of a key. One that is itself a mapping or list has none.
    fn key(&mut self) -> String {
        let mut depth = 0;
        let mut name = String::new();
        loop {
            match self.events.get(self.next) {
                Some(Event::Scalar(scalar)) if depth == 0 => name.clone_from(&scalar.text),
                Some(Event::Start { .. }) => depth += 1,
                Some(Event::End { .. }) => depth -= 1,
                None => return name,
                _ => {}
            }
            self.next += 1;
            if depth <= 0 {
                return name;
            }
        }
    }

    fn add(&mut self, path: Vec<String>, scalar: &'e Scalar) -> Result<(), YamlError> {
        if self.found.len() >= MOST_VALUES {
            return Err(YamlError::TooLarge { most: MOST_VALUES });
        }
        self.found.push(NamedScalar { path, scalar });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_a_name() {
        let text = "a: &x {b: 1, c: [x, y]}\nd: *x\n? [complex]\n: z\n---\n- top\n";
        let scanned = scan::scan(text).unwrap_or_else(|error| panic!("{error}"));
        let named = named_scalars(&scanned.events).unwrap_or_else(|error| panic!("{error}"));
        let named: Vec<String> =
            named.iter().map(|named| format!("{}={}", named.path.join("."), named.scalar.text)).collect();
        assert_eq!(named, ["a.b=1", "a.c.0=x", "a.c.1=y", "d.b=1", "d.c.0=x", "d.c.1=y", "=z", "0=top"]);
    }
}
