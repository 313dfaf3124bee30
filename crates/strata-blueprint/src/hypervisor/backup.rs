//! Backup jobs.

use std::collections::BTreeSet;

use strata_resource::{Spec, Value};
use strata_source::hypervisor::{BackupFleecing, BackupJob, BackupRetention, Hypervisor};
use strata_yaml::Spanned;

use super::Part;
use crate::fields::{Fields, int, list};
use crate::kinds;
use crate::site::Draft;

impl Draft<'_> {
    pub(super) fn backup_jobs(&mut self, hypervisor: &Hypervisor) {
        for (name, job) in hypervisor.backup_jobs.iter() {
            self.backup_job(name, job);
        }
    }

    fn backup_job(&mut self, name: &Spanned<String>, job: &BackupJob) {
        let mut part = Part::new(kinds::BACKUP_JOB, name, name.span).flags(job.adopt, job.protect);
        if job.guests.is_empty() && job.pool.is_none() && !job.all {
            let message = format!("the backup job `{name}` is about no guest: set `guests`, `pool` or `all`");
            self.refuse("no-guest", message, name.span);
        }
        let vmids = |numbers: &[u32]| list(numbers.iter().collect::<BTreeSet<_>>());
        let spec = &mut part.spec;
        spec.put("backup_job", name.as_str());
        spec.put("schedule", job.schedule.as_str());
        spec.put("storage", job.storage.as_str());
        spec.put_full("guests", vmids(&job.guests));
        spec.put_some("pool", job.pool.as_ref().map(|pool| pool.value.clone()));
        spec.put("all", job.all);
        spec.put_full("exclude", vmids(&job.exclude));
        spec.put_some("node", job.node.as_ref().map(|node| node.value.clone()));
        spec.put_some("mode", job.mode.map(|mode| mode.to_string()));
        spec.put_some("compress", job.compress.map(|compress| compress.to_string()));
        spec.put_full("keep", job.keep.as_ref().map_or(Value::Map(Spec::new()), keep));
        spec.put_some("bandwidth_limit", job.bandwidth_limit.map(int));
        spec.put_full("fleecing", job.fleecing.as_ref().map_or(Value::Map(Spec::new()), fleecing));
        spec.put_some("notification_mode", job.notification_mode.map(|mode| mode.to_string()));
        spec.put_some("notes_template", job.notes_template.clone());
        spec.put_some("repeat_missed", job.repeat_missed);
        spec.put("enabled", job.enabled);
        self.comment(spec, kinds::BACKUP_JOB, name, job.comment.as_ref());
        part.needs = self.known(kinds::STORAGE, Some(&job.storage));
        let fleecing = job.fleecing.as_ref();
        if fleecing.is_some_and(|own| own.enabled && own.storage.is_none()) {
            let message = format!("`fleecing` of the backup job `{name}` has no `storage`");
            self.refuse("missing-field", message, name.span);
        }
        part.needs.extend(self.known(
            kinds::STORAGE,
            fleecing.and_then(|own| own.storage.as_ref().map(|storage| storage.as_str())),
        ));
        part.needs.extend(self.known(kinds::POOL, job.pool.as_ref().map(|pool| pool.as_str())));
        self.part(part);
    }
}

fn fleecing(fleecing: &BackupFleecing) -> Value {
    let mut spec = Spec::new();
    spec.put("enabled", fleecing.enabled);
    spec.put_some("storage", fleecing.storage.as_ref().map(|storage| storage.as_str()));
    Value::Map(spec)
}

fn keep(keep: &BackupRetention) -> Value {
    let mut spec = Spec::new();
    let numbers = [
        ("last", keep.last),
        ("hourly", keep.hourly),
        ("daily", keep.daily),
        ("weekly", keep.weekly),
        ("monthly", keep.monthly),
        ("yearly", keep.yearly),
    ];
    for (field, number) in numbers {
        spec.put_some(field, number.map(int));
    }
    Value::Map(spec)
}
