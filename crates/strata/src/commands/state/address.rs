//! What an address on the command line speaks of: a resource of Strata's own, or one of OpenTofu's.

use std::str::FromStr;

use strata_resource::Address;

use crate::command_error::CommandError;
use crate::workspace::Workspace;
use strata_session::tofu::{Driven, Inputs};

/// What stands between a stack and an address of OpenTofu.
pub(super) const BETWEEN: &str = "/tofu/";

#[derive(Clone)]
pub(super) enum StateAddress {
    Own(Address),
    Tofu { environment: Option<String>, stack: String, address: String },
}

impl FromStr for StateAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (environment, rest) = match text.split_once(':') {
            // A key of `for_each` may have anything in it.
            Some((environment, rest)) if !environment.contains(['/', '[']) => (Some(environment), rest),
            _ => (None, text),
        };
        if let Some((stack, address)) = rest.split_once(BETWEEN)
            && address.split(['/', '[']).next().is_some_and(|first| first.contains('.'))
        {
            let (environment, stack) = (environment.map(str::to_owned), stack.to_owned());
            return Ok(Self::Tofu { environment, stack, address: address.to_owned() });
        }
        text.parse().map(Self::Own).map_err(|error: strata_resource::AddressError| error.to_string())
    }
}

impl StateAddress {
    /// For verbs that change Strata's own states.
    pub(super) fn own(&self) -> Result<&Address, CommandError> {
        match self {
            Self::Own(address) => Ok(address),
            Self::Tofu { stack, address, .. } => {
                Err(CommandError::refused(format!("`{address}` of `{stack}` is in OpenTofu's own state"))
                    .hint(format!(
                        "change that with OpenTofu: `strata tofu run {stack} -- state mv|rm '{address}'`"
                    )))
            }
        }
    }
}

/// A stack of OpenTofu, opened to look at what its state has.
pub(super) async fn open<'w>(
    workspace: &'w Workspace<'w>,
    stack: &str,
) -> Result<Option<Box<Driven<'w>>>, CommandError> {
    match workspace.driven(stack)? {
        Some(stack) => Ok(Some(workspace.open_driven(stack, Inputs::Known).await?)),
        None => Ok(None),
    }
}

/// Says where the rest is, for verbs that show or change the document that Strata keeps of a stack.
pub(super) fn print_where(workspace: &Workspace<'_>, stack: &str, verb: &str) -> Result<(), CommandError> {
    if workspace.driven(stack)?.is_some() {
        workspace.context.printer.note(format!(
            "note: this is what Strata keeps of `{stack}`: its outputs. Its resources are in OpenTofu's own state: \
             `strata state list {stack}`, `strata tofu run {stack} -- state {verb}`"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tofu(text: &str) -> Option<(Option<String>, String, String)> {
        match text.parse() {
            Ok(StateAddress::Tofu { environment, stack, address }) => Some((environment, stack, address)),
            _ => None,
        }
    }

    #[test]
    fn addresses_of_both_kinds_are_told_apart() {
        strata_providers::kinds::register();
        let of = |environment: Option<&str>, stack: &str, address: &str| {
            Some((environment.map(str::to_owned), stack.to_owned(), address.to_owned()))
        };
        assert_eq!(tofu("cloud/tofu/a.b"), of(None, "cloud", "a.b"));
        assert_eq!(tofu("stage:cloud/tofu/a.b[0]"), of(Some("stage"), "cloud", "a.b[0]"));
        let keyed = r#"module.m["x/vm/y:z"].a.b"#;
        assert_eq!(tofu(&format!("a/b/tofu/{keyed}")), of(None, "a/b", keyed));
        for own in ["web/vm/web-1", "a/tofu/vm/web-1", "stage:tofu/vm/web-1"] {
            assert!(matches!(own.parse(), Ok(StateAddress::Own(_))), "{own}");
        }
        assert!("cloud/tofu/x".parse::<StateAddress>().is_err() && "x".parse::<StateAddress>().is_err());
    }
}
