//! Backup jobs.

use async_trait::async_trait;
use strata_engine::Operation;
use strata_resource::{FieldType, KindTable, kind};

use super::managed::ManagedKind;
use super::shared::{DATACENTER, MARK_IN_COMMENT, MARKED};
use crate::datacenter::{Family, Parts, Simple, Unset};
use crate::preflight::Needs;

kind! {
    /// Guests that are backed up at set times.
    "backupjob" {
        called: "backup job {backup_job}",
        identity: &["backup_job"],
        proof: MARK_IN_COMMENT,
        shares: &[MARKED],
        at_once: true,
        no_tofu: Some("the module of the datacenter has no backup jobs"),
        ..DATACENTER
    }
    /// its id
    "backup_job": Text => InPlace [remote("id")];
    /// when, as a calendar event of systemd
    "schedule": Text => InPlace [remote("schedule")];
    /// the storage that the backups go to
    "storage": Text => InPlace [remote("storage")];
    /// the VMIDs of the guests
    "guests": List => InPlace [remote("vmid"), set];
    /// all guests of a pool
    "pool": Text => InPlace [remote("pool")];
    /// all guests of the datacenter
    "all": Bool => InPlace [remote("all"), off_by_default];
    /// VMIDs that are left out
    "exclude": List => InPlace [remote("exclude"), set];
    /// only guests on this node
    "node": Text => InPlace [remote("node")];
    /// what happens to a guest meanwhile
    "mode": Text => InPlace [remote("mode"), default_text("snapshot")];
    /// how it is compressed
    "compress": Text => InPlace [remote("compress"), default_text("0")];
    /// how many backups of a guest are kept
    "keep": Map => InPlace [remote("prune-backups")];
    /// of the newest, and of each hour, day, week, month and year
    "keep.*": Int => InPlace;
    /// at most so many KiB a second
    "bandwidth_limit": Int => InPlace [remote("bwlimit")];
    /// where the old content of blocks goes that a VM writes meanwhile
    "fleecing": Map => InPlace [remote("fleecing")];
    /// whether it is done
    "fleecing.enabled": Bool => InPlace;
    /// a storage for images
    "fleecing.storage": Text => InPlace;
    /// how its end is reported: by mail, or by the notification system
    "notification_mode": Text => InPlace [remote("notification-mode"), default_text("auto")];
    /// what the notes of a backup say
    "notes_template": Text => InPlace [remote("notes-template")];
    /// a run that was missed is made up for
    "repeat_missed": Bool => InPlace [remote("repeat-missed"), off_by_default];
    /// it runs
    "enabled": Bool => InPlace [remote("enabled"), on_by_default];
}

const KEEP: Parts = &[
    ("keep-last", "last", FieldType::Int),
    ("keep-hourly", "hourly", FieldType::Int),
    ("keep-daily", "daily", FieldType::Int),
    ("keep-weekly", "weekly", FieldType::Int),
    ("keep-monthly", "monthly", FieldType::Int),
    ("keep-yearly", "yearly", FieldType::Int),
];

const FLEECING: Parts = &[("enabled", "enabled", FieldType::Bool), ("storage", "storage", FieldType::Text)];

static ROWS: Simple = Simple {
    comment: Some("comment"),
    derived: &["type", "next-run"],
    unset: Unset::Delete,
    parts: &[("keep", KEEP), ("fleecing", FLEECING)],
    ..Simple::new("backup job", "/cluster/backup", &TABLE)
};

pub(super) struct BackupJob;

#[async_trait]
impl ManagedKind for BackupJob {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&ROWS)
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        needs.datacenter(operation);
    }
}
