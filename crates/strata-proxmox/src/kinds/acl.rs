//! Permissions.

use strata_resource::{Shown, kind};

use super::shared::{ADOPT, DATACENTER, NO_MARK};

kind! {
    /// Who may do what where: one role of one subject on one path.
    "acl" {
        called: "{grants} for {subject} on {path}",
        identity: &["path", "subject", "grants"],
        proof: NO_MARK,
        shares: &[ADOPT],
        at_once: true,
        shown: Shown { told: &["subject_type"], removal: |_, _| "taken away", ..DATACENTER.shown },
        ..DATACENTER
    }
    /// where
    "path": Text => InPlace;
    /// who
    "subject": Text => InPlace;
    /// `user`, `group` or `token`
    "subject_type": Text => InPlace;
    /// the role
    "grants": Text => InPlace;
    /// also below the path
    "propagate": Bool => InPlace [on_by_default];
}
