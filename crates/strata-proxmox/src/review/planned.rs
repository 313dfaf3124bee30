//! What the step of a new guest carries from the review to its execution: the call that makes it.

use sha2::{Digest, Sha256};
use strata_engine::{Finding, FindingKind, Operation, Payload};
use strata_resource::Value;
use strata_state::Action;

use crate::codec::GuestKind;
use crate::execute::{Call, calls};
use crate::guest::Guest;

pub(crate) struct PlannedGuest {
    pub(crate) call: Call,
}

impl PlannedGuest {
    pub(crate) fn of(operation: &Operation) -> Option<&Self> {
        operation.payload.as_ref()?.get()
    }

    /// The digest is that of the request as it leaves, without the values of secrets: the spec of the step has keyed digests of those.
    fn payload(self) -> Payload {
        let Call { method, path, params, .. } = &self.call;
        let request = format!("{method} {path}\n{}", params.encode_without_secrets());
        let digest = format!("request {}", hex::encode(Sha256::digest(request)));
        Payload::new(self, digest)
    }
}

/// Where a template is that no step has made yet, only its own step can say: what clones it looks when its step runs.
pub(super) fn payloads(operations: &[Operation]) -> impl Iterator<Item = Finding> {
    operations.iter().filter(|operation| operation.action == Action::Create).filter_map(|operation| {
        let call = first_call(operation)?;
        Some(Finding::new(operation, FindingKind::Sends(PlannedGuest { call }.payload())))
    })
}

/// A spec that cannot be written is refused where it is executed, with its field.
fn first_call(operation: &Operation) -> Option<Call> {
    let spec = &operation.spec;
    let kind = GuestKind::of(operation.address.kind())?;
    let node = spec.get("node").and_then(Value::as_text)?.to_owned();
    let vmid = spec.get("vmid").and_then(Value::as_int).and_then(|vmid| u32::try_from(vmid).ok())?;
    let guest = Guest { kind, node, vmid };
    match calls::clone_source(spec) {
        Some(source) => calls::clone(&guest, spec, source, calls::template_node(spec)?).ok(),
        None => calls::create(&guest, spec).ok(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use strata_resource::{Lineage, Secret, Spec};
    use strata_secret::SecretString;

    use super::*;

    fn create(mut spec: serde_json::Value, password: Option<&str>) -> Operation {
        crate::kinds::register();
        spec["vmid"] = json!(9101);
        spec["node"] = json!("pve1");
        let mut spec: Spec = serde_json::from_value(spec).unwrap();
        if let (Some(password), Some(Value::Map(cloudinit))) = (password, spec.get_mut("cloudinit")) {
            let secret = Secret::new(SecretString::from(password));
            cloudinit.insert("password".to_owned(), Value::Secret(secret));
        }
        Operation {
            action: Action::Create,
            address: "web/vm/app".parse().unwrap(),
            target: "pve".to_owned(),
            lineage: Lineage::derive("r1", "dev/web"),
            spec,
            recorded: None,
            observed: None,
            changes: Vec::new(),
            restart: false,
            replacement: false,
            awaited: false,
            payload: None,
        }
    }

    fn sends(operation: &Operation) -> Option<(String, String)> {
        let found = payloads(std::slice::from_ref(operation)).next()?;
        let FindingKind::Sends(payload) = found.kind else { panic!("{found:?}") };
        let planned: &PlannedGuest = payload.get().unwrap();
        let call = &planned.call;
        Some((format!("{} {} {}", call.method, call.path, call.params.encode()), payload.digest().to_owned()))
    }

    #[test]
    fn a_clone_carries_its_call() {
        let clone = json!({"name": "app", "clone": {"template": 9000, "node": "pve2", "storage": "tank"}});
        let (call, digest) = sends(&create(clone, None)).unwrap();
        assert_eq!(
            call,
            "POST /nodes/pve2/qemu/9000/clone newid=9101&full=1&name=app&storage=tank&target=pve1"
        );
        let bytes = "POST /nodes/pve2/qemu/9000/clone\nnewid=9101&full=1&name=app&storage=tank&target=pve1";
        assert_eq!(digest, format!("request {}", hex::encode(Sha256::digest(bytes))));
    }

    #[test]
    fn where_nobody_knows_the_place_of_a_template_nothing_is_carried() {
        assert_eq!(sends(&create(json!({"clone": {"template": 9000}}), None)), None);
    }

    /// A digest without a key would tell a guesser whether he is right.
    #[test]
    fn a_secret_takes_no_part_in_the_digest() {
        let spec = || json!({"name": "app", "cloudinit": {"user": "debian"}});
        let of = |password| sends(&create(spec(), Some(password))).unwrap();
        let (one, other) = (of("correct horse"), of("battery staple"));
        assert!(one.0.contains("cipassword=correct%20horse") && one.0 != other.0, "{one:?}");
        assert_eq!(one.1, other.1);
    }
}
