//! What was found of stacks whose states were lost, within events.

use schemars::JsonSchema;
use serde::Serialize;
use strata_engine::Retrieval;

use crate::Event;

/// An object that is recorded once somebody agrees.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FoundObject {
    pub address: String,
    /// It can carry no ownership mark: it is exactly what the source asks for, and nothing else says whose it is.
    pub unmarkable: bool,
    /// The fields in which it differs from the source.
    pub differs: Vec<String>,
}

/// An object that is not recorded, and why.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LeftOut<'e> {
    pub address: String,
    pub message: &'e str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<&'e str>,
}

/// Values of an object that no remote gives back.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Unreadable {
    pub address: String,
    pub fields: Vec<String>,
}

impl<'e> Event<'e> {
    /// What was found of a stack.
    pub fn recoverable(found: &'e Retrieval) -> Self {
        let records = found.adoption.records.keys().map(|address| {
            let differs = found.adoption.differences.get(address).into_iter().flatten();
            FoundObject {
                address: address.to_string(),
                unmarkable: found.by_content.contains(address),
                differs: differs.map(|change| change.path.to_string()).collect(),
            }
        });
        let unknown = found.unknown.iter().map(|(address, unseen)| LeftOut {
            address: address.to_string(),
            message: &unseen.what,
            hint: Some(&unseen.hint),
        });
        let unproven = found.unproven.iter().chain(&found.adoption.refused);
        let unproven =
            unproven.map(|(address, message)| LeftOut { address: address.to_string(), message, hint: None });
        let unreadable = found.unreadable().map(|(address, fields)| Unreadable {
            address: address.to_string(),
            fields: fields.into_iter().map(str::to_owned).collect(),
        });
        Self::Recoverable {
            found: records.collect(),
            unknown: unknown.collect(),
            unproven: unproven.collect(),
            absent: found.missing.iter().map(ToString::to_string).collect(),
            unreadable: unreadable.collect(),
        }
    }
}
