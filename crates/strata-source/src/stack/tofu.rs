//! What a stack that was written by hand in OpenTofu is given.

use std::fmt;

use strata_yaml::{Map, Spanned, TextRule, TextShape, Value, record};

use crate::value::name::is_name;
use crate::value::text::text_value;

/// Of a variable of OpenTofu.
const VARIABLE: TextRule = TextRule {
    shape: TextShape {
        what: "the name of a variable: letters, digits, `_` and `-`, no digit first",
        pattern: Some("^[A-Za-z_][A-Za-z0-9_-]*$"),
    },
    accepts: |text| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        !text.starts_with(|first: char| first.is_ascii_digit() || first == '-')
            && !text.is_empty()
            && text.bytes().all(allowed)
    },
};

record! {
    /// What OpenTofu is given beside its own files. Secrets whose names are those of variables are given anyway.
    pub struct TofuInputs {
        /// variables by name, as `TF_VAR_…` takes them: text, or for lists and objects an expression
        "variables" variables: Map<Value<String>> [keys(VARIABLE)];
        /// variables that are outputs of other stacks, which are applied before this one: `addresses: web.web_addresses`
        "inputs" inputs: Map<Spanned<StackOutput>> [keys(VARIABLE)];
    }
}

/// `<stack>.<output>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackOutput {
    pub stack: String,
    pub output: String,
}

impl fmt::Display for StackOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.stack, self.output)
    }
}

const TEXT: TextShape = TextShape {
    what: "an output of a stack such as `web.addresses`",
    pattern: Some("^[A-Za-z0-9][A-Za-z0-9._-]*\\.[A-Za-z0-9_][A-Za-z0-9_-]*$"),
};

/// The name of a stack may have dots, that of an output has none.
fn parse(text: &str) -> Result<StackOutput, String> {
    let wrong = || format!("`{text}` is not an output of a stack: it looks like `web.addresses`");
    let (stack, output) = text.rsplit_once('.').ok_or_else(wrong)?;
    let own = StackOutput { stack: stack.to_owned(), output: output.to_owned() };
    if is_name(stack) && !output.is_empty() { Ok(own) } else { Err(wrong()) }
}

text_value! {
    StackOutput = TEXT, parse;
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn outputs_of_stacks_are_read_and_written() {
        for text in ["web.addresses", "a.b.c", "web-1.vpc_id"] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        assert_eq!(parse("a.b.c").unwrap().stack, "a.b");
        assert!(parse("web").is_err() && parse("web.").is_err() && parse(".x").is_err());
    }
}
