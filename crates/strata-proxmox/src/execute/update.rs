//! Bringing a guest of ours from what it is to what the changes say, in a fixed order.

use strata_engine::{ErrorClass, Outcome, ProviderError, Unmanaged};
use strata_resource::{ChangeEffect, FieldChange, FieldPath, KindRules, Value, diff_specs};

use super::steps::{Steps, volumes_to_grow};
use super::work::Work;
use super::{before_change, configure, create, firewall, migrate, pool, power, template};
use crate::absence;
use crate::client::CallError;
use crate::codec::{CodecError, LiveConfig, decode};
use crate::guest::{Guest, locate};
use crate::observe::{Covers, facts_of, observed_guest};
use crate::ownership::{Claim, unmanaged};
use crate::snippets;

/// The guest that is worked on, as it was last read.
pub(super) struct Target {
    pub(super) guest: Guest,
    pub(super) config: LiveConfig,
    pub(super) running: bool,
}

pub(super) async fn update(work: &Work<'_>) -> Result<Outcome, ProviderError> {
    let mut target = find(work).await?;
    check_unchanged(work, &target)?;
    before_change::take_snapshot(work, &mut target).await?;
    let mut changes = work.operation.changes.clone();
    if work.operation.recorded.as_ref().is_some_and(|recorded| recorded.partial) {
        // The run that cloned it died before it came to this.
        changes.extend(create::left_by_the_template(
            &target.guest,
            &work.operation.spec,
            &live_spec(work, &target),
        ));
    }
    carry_out(work, target, changes, work.operation.restart).await
}

/// Reads the guest again and makes sure that it is ours, wherever it is.
pub(super) async fn find(work: &Work<'_>) -> Result<Target, ProviderError> {
    let operation = work.operation;
    let (kind, vmid) = (work.guest_kind(), work.vmid()?);
    let known = |facts: &strata_resource::Spec| facts.get("node").and_then(Value::as_text).map(str::to_owned);
    let node = operation.observed.as_ref().and_then(|observed| known(&observed.facts));
    let node = node.or_else(|| operation.recorded.as_ref().and_then(|recorded| known(&recorded.facts)));
    let node = match node {
        Some(node) => node,
        None => work.text("node")?.to_owned(),
    };
    let mut guest = Guest { kind, node, vmid };
    let doing = format!("read {guest}");
    let failed = |error: CallError| error.explain(&doing);
    // Side by side: what follows at once is sent one round trip after what was seen.
    let look = async |guest: &Guest| {
        futures::future::join(guest.config_if_any(work.client), guest.is_running(work.client)).await
    };
    let (config, mut running) = look(&guest).await;
    let mut config = config.map_err(failed)?;
    if config.is_none()
        && let Some(row) = locate(work.client, vmid).await.map_err(failed)?
        && row.kind.as_deref().is_none_or(|is| is == kind.path())
    {
        guest.node = row.node.as_deref().unwrap_or_default().to_owned();
        let (found, runs) = look(&guest).await;
        (config, running) = (found.map_err(failed)?, runs);
    }
    let Some(config) = config else {
        return Err(match absence::is_free(work.client, vmid).await.map_err(failed)? {
            true => ProviderError::new(ErrorClass::Missing, format!("{guest} is not there any more"))
                .hint("somebody deleted it; plan again"),
            false => absence::hidden_guest_error(vmid),
        });
    };
    let claim = Claim::new(&operation.lineage, &operation.address, operation.recorded.as_ref(), vmid);
    if let Some(why) = claim.dispute(&guest, &config) {
        return Err(not_ours(&unmanaged(&guest, &config, why)));
    }
    Ok(Target { guest, config, running: running.map_err(failed)? })
}

fn not_ours(unmanaged: &Unmanaged) -> ProviderError {
    let mut error = ProviderError::new(ErrorClass::Conflict, unmanaged.to_string())
        .hint("it was not touched; plan again");
    error.nothing_done = true;
    error
}

/// The configuration must still be the one that the plan saw.
pub(super) fn check_unchanged(work: &Work<'_>, target: &Target) -> Result<(), ProviderError> {
    let seen = work.operation.observed.as_ref().and_then(|observed| observed.facts.get("config_digest"));
    match seen.and_then(Value::as_text) {
        Some(seen) if seen != target.config.digest => {
            let mut error = ProviderError::new(
                ErrorClass::Conflict,
                format!("somebody else changed {} since the plan was made", target.guest),
            )
            .hint("nothing was overwritten; plan again");
            error.nothing_done = true;
            Err(error)
        }
        _ => Ok(()),
    }
}

/// The configuration must still be the one that was read `before`, but for what waited for a stop to take effect, and the snapshot that
/// it goes on from.
pub(super) fn check_unchanged_since(
    target: &Target,
    before: &LiveConfig,
    about: &str,
) -> Result<(), ProviderError> {
    let keys = |config: &LiveConfig| -> Vec<(String, String)> {
        let own = config.keys().map(|(key, value)| (key.to_owned(), value.to_owned()));
        // A disk whose removal waited becomes an unused one.
        own.filter(|(key, _)| !key.starts_with("unused") && key != "parent").collect()
    };
    if target.config.digest == before.digest || keys(&target.config) == keys(before) {
        return Ok(());
    }
    let message = format!("somebody else changed {} directly before it was to be {about}", target.guest);
    Err(ProviderError::new(ErrorClass::Conflict, message).hint(format!("it was not {about}; plan again")))
}

/// Does what the changes say: moves it, then its disks, its keys, its sizes, its firewall, its pool, and last its power.
pub(super) async fn carry_out(
    work: &Work<'_>,
    mut target: Target,
    mut changes: Vec<FieldChange>,
    restart: bool,
) -> Result<Outcome, ProviderError> {
    let steps = Steps::of(&changes);
    let spec = &work.operation.spec;
    // Proxmox writes what cloud-init reads when the guest starts, and nothing shows that it has not done so yet. Changed while the
    // guest is down, it cannot be forgotten: whoever finds it down starts it.
    let rewrites = |change: &FieldChange| change.path.first() == Some("cloudinit");
    let offline = restart && target.running && changes.iter().any(rewrites);
    if (steps.power == Some(false) || offline) && target.running {
        power::shut_down(work, &target.guest, power::Insist::No).await?;
        target.running = false;
    }
    if let Some(node) = steps.migrate_to.as_deref().filter(|node| *node != target.guest.node) {
        changes.extend(migrate::migrate(work, &mut target, node).await?);
    }
    for (slot, storage) in &steps.moves {
        configure::move_volume(work, &mut target, slot, storage).await?;
    }
    configure::configure(work, &mut target, &changes).await?;
    let live = live_spec(work, &target);
    for (slot, size) in volumes_to_grow(target.guest.kind, spec, &changes, &live) {
        configure::grow(work, &mut target, &slot, size).await?;
    }
    verify(work, &target, &changes)?;
    if steps.firewall {
        firewall::converge(work, &target.guest, &changes).await?;
    }
    if let Some((before, after)) = &steps.pool {
        pool::change(work, &target.guest, before.as_deref(), after.as_deref()).await?;
    }
    match steps.template {
        Some(true) => template::make(work, &mut target).await?,
        Some(false) => return Err(template::cannot_unmake(&target.guest)),
        None => {}
    }
    if (steps.power == Some(true) || offline) && !target.running {
        power::start(work, &target.guest).await?;
    } else if restart && target.running {
        power::restart(work, &target.guest).await?;
        configure::reread(work, &mut target).await?;
        check_in_effect(work, &target, &changes, Waits::Never)?;
    } else if target.running {
        check_in_effect(work, &target, &changes, Waits::ForRestart)?;
    }
    let mut facts = facts_of(&target.guest, &target.config);
    snippets::keep(&mut facts, work.operation);
    Ok(Outcome { facts })
}

pub(super) fn live_spec(work: &Work<'_>, target: &Target) -> strata_resource::Spec {
    let covers = Covers::specs(&[&work.operation.spec]);
    observed_guest(&target.guest, &target.config, target.running, None, None, &covers).spec
}

/// Fields that are not in the configuration, or are still to come.
const ELSEWHERE: [&str; 5] = ["node", "pool", "power", "firewall", "template"];

/// Everything that was sent must read back as it was meant.
fn verify(work: &Work<'_>, target: &Target, changes: &[FieldChange]) -> Result<(), ProviderError> {
    let (spec, live) = (&work.operation.spec, live_spec(work, target));
    let left = diff_specs(work.operation.address.kind().rules(), spec, Some(spec), &live).changes;
    let concerned = |path: &FieldPath| {
        let first = path.first().unwrap_or_default();
        !ELSEWHERE.contains(&first) && changes.iter().any(|change| overlap(&change.path, path))
    };
    let Some(wrong) = left.into_iter().find(|left| concerned(&left.path)) else { return Ok(()) };
    let shown = |value: Option<&Value>| match value {
        None => "nothing".to_owned(),
        Some(value) if value.has_secret() => "a secret".to_owned(),
        Some(value) => format!("{value:?}"),
    };
    let message = format!(
        "{} did not take `{}`: {} was sent, {} is there",
        target.guest,
        wrong.path,
        shown(wrong.after.as_ref()),
        shown(wrong.before.as_ref())
    );
    Err(ProviderError::new(ErrorClass::BadInput, message)
        .field(wrong.path.to_string())
        .hint("the server changed or dropped the value; write it in the form that it keeps"))
}

/// Which values may wait for a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waits {
    /// None: there was one.
    Never,
    /// Those that always do. The plan says that they stay pending.
    ForRestart,
}

/// What was sent must have reached a guest that runs: a device that it does not release is not gone, whatever its configuration
/// will be one day.
fn check_in_effect(
    work: &Work<'_>,
    target: &Target,
    changes: &[FieldChange],
    waits: Waits,
) -> Result<(), ProviderError> {
    let rules = work.operation.address.kind().rules();
    let covers = Covers::specs(&[&work.operation.spec]);
    let pending = decode(target.guest.kind, &target.config, &covers.options).pending;
    let foreseen = |path: &FieldPath| {
        waits == Waits::ForRestart
            && (rules.rule(path).effect == ChangeEffect::Restart || is_of_slot(path, changes, rules))
    };
    let ours = |path: &FieldPath| changes.iter().any(|change| overlap(&change.path, path));
    let open = pending.iter().map(|path| FieldPath::dotted(path)).find(|path| ours(path) && !foreseen(path));
    let Some(path) = open else { return Ok(()) };
    let message = match waits {
        Waits::Never => format!("`{path}` of {} waits for a restart, although there was one", target.guest),
        Waits::ForRestart => {
            format!("`{path}` of {} is not in effect: the guest that runs did not take it up", target.guest)
        }
    };
    Err(ProviderError::new(ErrorClass::TaskFailed, message)
        .field(path.to_string())
        .hint("it waits for a restart of the guest, which the next apply does; the guest may also hold on to a device that it uses"))
}

/// Whether a leaf waits because its whole slot came with a field that needs a restart.
fn is_of_slot(path: &FieldPath, changes: &[FieldChange], rules: &KindRules) -> bool {
    let needs = |change: &FieldChange| rules.rule(&change.path).effect == ChangeEffect::Restart;
    let slot = path.keys().get(..2);
    let siblings = |change: &FieldChange| slot.is_some() && change.path.keys().get(..2) == slot;
    changes.iter().any(|change| needs(change) && (siblings(change) || overlap(&change.path, path)))
}

/// Whether one path is the other or lies below it.
pub(super) fn overlap(one: &FieldPath, other: &FieldPath) -> bool {
    one.overlaps(other)
}

pub(super) fn bad_field(error: CodecError) -> ProviderError {
    let mut bad = ProviderError::new(ErrorClass::BadInput, error.to_string()).field(error.field);
    bad.nothing_done = true;
    bad
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    fn of_slot(path: &str, changed: &[&str]) -> bool {
        let change = |path: &&str| FieldChange {
            path: FieldPath::dotted(path),
            before: None,
            after: Some(Value::text("x")),
            drift: false,
        };
        let changes: Vec<FieldChange> = changed.iter().map(change).collect();
        kinds::register();
        is_of_slot(&FieldPath::dotted(path), &changes, kinds::VM.rules())
    }

    /// A device is unplugged and plugged in as a whole: all of it waits with the one field that needs a restart.
    #[test]
    fn a_field_waits_with_the_rest_of_its_slot() {
        assert!(of_slot("networks.net0.bridge", &["networks.net0.model"]));
        assert!(!of_slot("networks.net0.bridge", &["networks.net1.model"]), "another device");
        assert!(!of_slot("networks.net0.bridge", &["networks.net0.bridge"]), "nothing of it needs a restart");
        assert!(of_slot("pci.hostpci0.mapping", &["pci.hostpci0"]), "the slot as a whole");
        assert!(!of_slot("cpu.units", &["cpu.cores"]), "fields of a section are no slot");
        assert!(!of_slot("networks.net0.bridge", &["networks.net0.bridge", "cpu.cores"]));
    }

    #[test]
    fn paths_overlap_when_one_is_the_other_or_lies_below_it() {
        let overlap = |one: &str, other: &str| overlap(&FieldPath::dotted(one), &FieldPath::dotted(other));
        assert!(overlap("disks.scsi0", "disks.scsi0.size") && overlap("disks.scsi0.size", "disks.scsi0"));
        assert!(overlap("name", "name") && !overlap("disks.scsi0", "disks.scsi1"));
    }
}
