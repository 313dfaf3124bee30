//! What becomes of an object that is not wanted any more: not everything is deleted by itself.

use strata_engine::{Step, StepAction};
use strata_resource::Kind;

/// For a plan. `ends_cluster`: with it goes the whole cluster that the object is part of.
pub(super) fn headline(step: &Step, ends_cluster: bool) -> &'static str {
    let kind = step.address.kind();
    match kind {
        _ if kind.is_guest() => "destroyed with its disks",
        Kind::Machine => match (step.spec.contains_key("vm"), ends_cluster) {
            (true, true) => "goes with its VM",
            (true, false) => "leaves the cluster",
            (false, true) => "reset: its configuration and its data are wiped",
            (false, false) => "leaves the cluster and is reset: its configuration and its data are wiped",
        },
        Kind::Bootstrap | Kind::Kubernetes => "goes with its machines",
        Kind::Secret | Kind::Flux | Kind::Sync if ends_cluster => "goes with the cluster",
        Kind::Flux => "let go: its controllers stay",
        Kind::Sync => "let go: what it applied stays",
        Kind::Schematic => "let go: the image factory keeps it",
        Kind::Acl => "taken away",
        Kind::Storage => "no longer defined",
        Kind::Dataset => "deleted, as it is empty",
        _ => "deleted",
    }
}

/// While it happens and when it is done.
pub(super) fn verbs(kind: Kind, action: StepAction) -> (&'static str, &'static str) {
    match (action, kind) {
        (StepAction::Delete, Kind::Machine) => ("taking it out", "taken out"),
        (StepAction::Delete, Kind::Bootstrap | Kind::Kubernetes) => ("letting go", "let go"),
        (StepAction::Delete, Kind::Flux | Kind::Sync | Kind::Schematic) => ("letting go", "let go"),
        _ => ("destroying", "destroyed"),
    }
}
