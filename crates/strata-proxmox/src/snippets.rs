//! Documents of cloud-init that somebody else brought as snippets, by SSH. For a guest that was taken over they stand for the ISO that
//! Strata would bring, until the documents change: another drive with the same in it would only restart the guest.

use sha2::{Digest, Sha256};
use strata_engine::{Action, ErrorClass, Observed, Operation, ProviderError, Sighting, Wanted};
use strata_resource::{Address, Spec, Value};
use strata_state::StateResource;

use crate::codec::LiveConfig;
use crate::kinds;

/// The fact that names the ISO which snippets stand for. The guest has it, and the ISO that is not there.
pub const SNIPPETS: &str = "snippets";

fn text<'s>(spec: &'s Spec, field: &str) -> Option<&'s str> {
    spec.get(field).and_then(Value::as_text)
}

/// The drive that has a volume in it.
fn drive<'s>(spec: &'s Spec, volume: &str) -> Option<&'s str> {
    let cdroms = spec.get("cdroms")?.as_map()?;
    let mut drives = cdroms
        .iter()
        .filter(|(_, cdrom)| cdrom.as_map().and_then(|cdrom| text(cdrom, "volume")) == Some(volume));
    drives.next().map(|(slot, _)| slot.as_str())
}

/// Shows the ISO where the guest still has its snippets.
pub(crate) fn stand_in(observed: &mut Observed, recorded: Option<&StateResource>, config: &LiveConfig) {
    let known = recorded.and_then(|recorded| Some((recorded, text(&recorded.facts, SNIPPETS)?)));
    let Some((recorded, volume)) = known.filter(|_| config.get("cicustom").is_some()) else { return };
    let Some(slot) = drive(&recorded.spec, volume) else { return };
    let cdroms = observed.spec.entry("cdroms".to_owned()).or_insert_with(|| Value::Map(Spec::new()));
    if let Value::Map(cdroms) = cdroms {
        cdroms.insert(slot.to_owned(), Value::Map([("volume".to_owned(), Value::text(volume))].into()));
        observed.facts.insert(SNIPPETS.to_owned(), Value::text(volume));
    }
}

/// Keeps the fact over a change of something else.
pub(crate) fn keep(facts: &mut Spec, operation: &Operation) {
    let recorded = operation.recorded.as_ref();
    if let Some(volume) = recorded.and_then(|recorded| text(&recorded.facts, SNIPPETS))
        && drive(&operation.spec, volume).is_some()
        && !operation.changes.iter().any(|change| change.path.starts_with(&["cdroms"]))
    {
        facts.insert(SNIPPETS.to_owned(), Value::text(volume));
    }
}

/// An ISO that snippets stand for is there as long as its guest has them.
pub(crate) fn resolve_isos(wanted: &[Wanted<'_>], sightings: &mut [Sighting]) {
    for index in 0..wanted.len() {
        let asked = &wanted[index];
        let fact = asked.recorded.and_then(|recorded| text(&recorded.facts, SNIPPETS));
        let Some(volume) = fact.filter(|volume| text(asked.spec, "volume") == Some(*volume)) else {
            continue;
        };
        let stands = sightings.iter().any(|sighting| {
            matches!(sighting, Sighting::Ours(observed) if text(&observed.facts, SNIPPETS) == Some(volume))
        });
        if asked.address.kind() == kinds::CIDATA && stands && matches!(sightings[index], Sighting::Absent) {
            sightings[index] = Sighting::Ours(in_place(asked, volume));
        }
    }
}

fn in_place(asked: &Wanted<'_>, volume: &str) -> Observed {
    let fields = ["volume", "storage", "node", "vmid"];
    let said = |field: &str| Some((field.to_owned(), asked.spec.get(field)?.clone()));
    Observed {
        spec: fields.into_iter().filter_map(said).collect(),
        facts: [(SNIPPETS.to_owned(), Value::text(volume))].into(),
        digest: hex::encode(Sha256::digest(format!("snippets for {volume}"))),
        pending: Vec::new(),
        running: None,
        evidence: Default::default(),
    }
}

/// A guest cannot be recreated from snippets that stand for an ISO which nobody brings.
pub(crate) fn left_behind(operation: &Operation, all: &[Operation]) -> Option<ProviderError> {
    let volume = text(&operation.recorded.as_ref()?.facts, SNIPPETS)?;
    let is_needed = operation.action == Action::Create && drive(&operation.spec, volume).is_some();
    let mut isos = all.iter().filter(|operation| operation.address.kind() == kinds::CIDATA);
    if !is_needed || isos.any(|iso| text(&iso.spec, "volume") == Some(volume)) {
        return None;
    }
    let address = &operation.address;
    let iso = Address::new(address.environment(), address.stack(), kinds::CIDATA, address.name());
    let message = format!("`{address}` would be recreated, and its documents of cloud-init are snippets");
    let mut error = ProviderError::new(ErrorClass::Refused, message)
        .hint(format!("`strata state rm {iso}` lets Strata bring them as an ISO; then plan again"));
    error.nothing_done = true;
    Some(error)
}

#[cfg(test)]
mod tests {
    use strata_resource::Lineage;

    use super::*;
    use crate::codec::live;

    const ISO: &str = "local:iso/strata-0123456789ab-9110-fedcba987654.iso";

    fn spec(json: serde_json::Value) -> Spec {
        serde_json::from_value(json).unwrap()
    }

    fn recorded(spec: &Spec) -> StateResource {
        let known = serde_json::json!({"target": "pve", "spec": {}, "stage": "compute"});
        let known: StateResource = serde_json::from_value(known).unwrap();
        StateResource { spec: spec.clone(), facts: [(SNIPPETS.to_owned(), Value::text(ISO))].into(), ..known }
    }

    #[test]
    fn snippets_stand_for_the_iso_as_long_as_they_are_there() {
        let guest = spec(serde_json::json!({"cdroms": {"ide2": {"volume": ISO}}}));
        let known = recorded(&guest);
        let look = |config: &[(&str, &str)]| {
            let mut observed = Observed {
                spec: Spec::new(),
                facts: Spec::new(),
                digest: String::new(),
                pending: Vec::new(),
                running: None,
                evidence: Default::default(),
            };
            stand_in(&mut observed, Some(&known), &live(config));
            observed
        };
        let there = look(&[("cicustom", "user=local:snippets/a.yaml")]);
        assert_eq!(there.spec, guest);
        assert_eq!(text(&there.facts, SNIPPETS), Some(ISO));
        let gone = look(&[("ide2", "local:iso/other.iso,media=cdrom")]);
        assert!(gone.spec.is_empty() && gone.facts.is_empty());

        let lineage = Lineage::derive("r", "dev/web");
        let (vm, iso) = (crate::kinds::address("web/vm/a"), crate::kinds::address("web/cidata/a"));
        let volume =
            spec(serde_json::json!({"volume": ISO, "storage": "local", "node": "pve1", "vmid": 9110}));
        let known_iso = recorded(&volume);
        let wanted = [
            Wanted { address: &vm, spec: &guest, recorded: Some(&known), begun: None, lineage: &lineage },
            Wanted {
                address: &iso,
                spec: &volume,
                recorded: Some(&known_iso),
                begun: None,
                lineage: &lineage,
            },
        ];
        let mut sightings = [Sighting::Ours(there), Sighting::Absent];
        resolve_isos(&wanted, &mut sightings);
        assert!(matches!(&sightings[1], Sighting::Ours(observed) if observed.spec == volume));
        let mut sightings = [Sighting::Ours(gone), Sighting::Absent];
        resolve_isos(&wanted, &mut sightings);
        assert!(matches!(sightings[1], Sighting::Absent));
    }
}
