//! What a stack lets others ask of it: `vms.web[*].address`.

use std::fmt;

use strata_diagnostics::nearest;
use strata_yaml::{Choice, TextShape, choice};

use crate::value::text::text_value;

choice! {
    /// The part of the source that a path begins in.
    pub enum OutputKind { Vms = "vms", Containers = "containers", Templates = "templates", Nodes = "nodes" }
}

choice! {
    /// What is asked of a machine.
    pub enum OutputField {
        /// The first address that is known.
        Address = "address",
        Name = "name",
        VmId = "vmId",
        Mac = "mac",
        Node = "node",
    }
}

/// Which of the machines that an entry stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The only one.
    One,
    /// `[0]`, counted from 0.
    Index(u32),
    /// `[*]`: a list of all.
    All,
}

/// A path to a value of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPath {
    pub kind: OutputKind,
    pub name: String,
    pub which: Which,
    pub field: OutputField,
}

impl fmt::Display for OutputPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.kind, self.name)?;
        match self.which {
            Which::One => {}
            Which::Index(index) => write!(f, "[{index}]")?,
            Which::All => f.write_str("[*]")?,
        }
        write!(f, ".{}", self.field)
    }
}

const TEXT: TextShape = TextShape {
    what: "a path such as `vms.web.address` or `vms.web[*].address`",
    pattern: Some(
        "^(vms|containers|templates|nodes)\\.[^\\s\\[\\]]+(\\[(\\*|[0-9]+)\\])?\\.(address|name|vmId|mac|node)$",
    ),
};

fn word<T: Choice>(text: &str, what: &str) -> Result<T, String> {
    let found = T::ALL.iter().copied().find(|choice| choice.as_str() == text);
    found.ok_or_else(|| match nearest(text, T::WORDS.iter().copied()) {
        Some(meant) => format!("`{text}` is not {what}; did you mean `{meant}`?"),
        None => format!("`{text}` is not {what}; it is one of {}", T::WORDS.join(", ")),
    })
}

fn parse(text: &str) -> Result<OutputPath, String> {
    let (kind, rest) = text.split_once('.').ok_or_else(|| format!("`{text}` is not a path"))?;
    let (machine, field) = rest.rsplit_once('.').ok_or_else(|| format!("`{text}` names no field"))?;
    let kind = word(kind, "a part of a stack")?;
    let field = word(field, "a field of a machine")?;
    let (name, which) = match machine.split_once('[') {
        None => (machine, Which::One),
        Some((name, index)) => {
            let index = index.strip_suffix(']').ok_or_else(|| format!("`{machine}` has no `]`"))?;
            let which = if index == "*" { Some(Which::All) } else { index.parse().ok().map(Which::Index) };
            (name, which.ok_or_else(|| format!("`[{index}]` is neither a number nor `[*]`"))?)
        }
    };
    if name.is_empty() {
        return Err(format!("`{text}` names no machine"));
    }
    Ok(OutputPath { kind, name: name.to_owned(), which, field })
}

text_value! {
    OutputPath = TEXT, parse;
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn paths_are_read_and_written() {
        for text in ["vms.web[*].address", "containers.dns.vmId", "vms.a.b[2].mac"] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        assert_eq!(
            parse("vm.web.address").unwrap_err(),
            "`vm` is not a part of a stack; did you mean `vms`?"
        );
        assert_eq!(
            parse("vms.web.adress").unwrap_err(),
            "`adress` is not a field of a machine; did you mean `address`?"
        );
        assert!(parse("vms.web[x].name").unwrap_err().contains("neither a number"));
        assert!(parse("vms").is_err() && parse("vms.web").is_err() && parse("vms.[0].name").is_err());
    }
}
