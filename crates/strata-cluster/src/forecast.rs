//! Whether a change reboots a node: said in the plan, and kept to when it is applied.

use strata_engine::{Forecast, Operation};
use strata_talos::Contract;

/// What a change of the configuration means for a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reboot {
    No,
    /// A path that no table knows.
    Maybe,
    Yes,
}

/// What the changed paths of the configuration mean on a version of Talos.
pub(crate) fn reboot_of(operation: &Operation, version: &str) -> Reboot {
    let Ok(contract) = version.parse::<Contract>() else { return Reboot::Maybe };
    let in_config = operation.changes.iter().filter(|change| change.path.first() == Some("config"));
    let of_fields = in_config.map(|change| {
        let keys = change.path.keys();
        let document = keys.get(1).map(String::as_str).unwrap_or_default();
        effect(contract, document, keys.get(2..).unwrap_or_default())
    });
    let foreign = operation.changes.iter().filter(|change| change.path.first() == Some("foreign"));
    let of_foreign = foreign
        .flat_map(|change| change.before.iter().filter_map(strata_resource::Value::as_list).flatten())
        .filter_map(strata_resource::Value::as_text)
        .map(|path| {
            let (document, path) = path.split_once(": ").unwrap_or((path, ""));
            let keys: Vec<String> = path.split('.').map(str::to_owned).collect();
            effect(contract, document, &keys)
        });
    of_fields.chain(of_foreign).max().unwrap_or(Reboot::No)
}

fn effect(contract: Contract, document: &str, path: &[String]) -> Reboot {
    match strata_talos::reboot_effect(contract, document, path) {
        strata_talos::Effect::Immediate => Reboot::No,
        strata_talos::Effect::Reboot => Reboot::Yes,
        strata_talos::Effect::Unknown => Reboot::Maybe,
    }
}

/// For the plan: by the version that the node will have when it is told.
pub(crate) fn forecast(operation: &Operation) -> Forecast {
    let changes = |field: &str| operation.changes.iter().any(|change| change.path.first() == Some(field));
    if changes("version") {
        return Forecast::Restarts;
    }
    let version = operation.spec.get("version").and_then(strata_resource::Value::as_text).unwrap_or_default();
    match reboot_of(operation, version) {
        Reboot::No => Forecast::StaysUp,
        Reboot::Maybe => Forecast::MayRestart,
        Reboot::Yes => Forecast::Restarts,
    }
}
