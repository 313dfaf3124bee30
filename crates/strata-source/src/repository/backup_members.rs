//! Guests that name the backup job that they are part of: the job is written with them, as if its file had their VMIDs.

use std::collections::{BTreeMap, BTreeSet};

use strata_diagnostics::{Diagnostic, Diagnostics};
use strata_yaml::Spanned;

use super::{EffectiveStack, Model, Repository};
use crate::check::suggestion;
use crate::hypervisor::{BackupJob, Hypervisor};
use crate::machine::guest::Guest;
use crate::stack::Stack;
use crate::stack::expand::Instance;

/// A file of the datacenter, by stack and environment.
type Place = (String, String);

/// A guest that names a job.
struct Member<'a> {
    job: &'a Spanned<String>,
    vm_id: u32,
    name: String,
    pool: Option<&'a str>,
    /// The node, where the source says one.
    node: Option<String>,
}

/// Puts the VMIDs of guests into the jobs that they name.
pub(super) fn join(repository: &mut Repository, diagnostics: &mut Diagnostics) {
    let mut told: Vec<Diagnostic> = Vec::new();
    let mut joined: BTreeMap<(Place, String), BTreeSet<u32>> = BTreeMap::new();
    for stack in repository.effective() {
        let Model::Machines(machines) = &stack.model else { continue };
        let members = members(machines);
        if members.is_empty() {
            continue;
        }
        let datacenters = datacenters(repository, stack);
        for member in members {
            match place(&datacenters, stack, &member) {
                Ok(places) => {
                    for place in places {
                        joined.entry((place, member.job.value.clone())).or_default().insert(member.vm_id);
                    }
                }
                // A file is in each of its environments.
                Err(problem) if !told.contains(&problem) => told.push(*problem),
                Err(_) => {}
            }
        }
    }
    told.into_iter().for_each(|problem| diagnostics.push(problem));
    for ((place, job), vm_ids) in joined {
        let Some(Model::Hypervisor(datacenter)) =
            repository.effective.get_mut(&place).map(|it| &mut it.model)
        else {
            continue;
        };
        let Some(job) = datacenter.backup_jobs.get_mut(&job) else { continue };
        let new = vm_ids.into_iter().filter(|vm_id| !job.guests.contains(vm_id));
        job.guests.extend(new.collect::<Vec<_>>());
    }
}

fn members(stack: &Stack) -> Vec<Member<'_>> {
    let whole = stack.proxmox.as_ref().and_then(|proxmox| proxmox.pool.as_ref());
    let vms = stack.vm_instances().into_iter().filter_map(|vm| member(&vm.spec.guest, &vm, whole));
    let containers = stack.container_instances().into_iter();
    vms.chain(containers.filter_map(|container| member(&container.spec.guest, &container, whole))).collect()
}

fn member<'a, T>(
    guest: &'a Guest,
    instance: &Instance<'a, T>,
    whole: Option<&'a Spanned<String>>,
) -> Option<Member<'a>> {
    Some(Member {
        job: &guest.backup.as_ref()?.job,
        vm_id: instance.vm_id,
        name: instance.name.clone(),
        pool: guest.pool.as_ref().or(whole).map(|pool| pool.as_str()),
        node: instance.node.as_ref().map(|node| node.value.clone()),
    })
}

/// The files of the datacenter that a stack is in.
fn datacenters<'r>(
    repository: &'r Repository,
    stack: &EffectiveStack,
) -> Vec<(&'r EffectiveStack, &'r Hypervisor)> {
    let endpoint = repository.proxmox_endpoint(stack);
    let same = |other: &&EffectiveStack| endpoint.is_some() && repository.proxmox_endpoint(other) == endpoint;
    repository.effective().filter(same).filter_map(|other| Some((other, other.hypervisor()?))).collect()
}

/// Where the job is that a guest names: in its own environment if it is there, and else where the file is at home.
fn place(
    datacenters: &[(&EffectiveStack, &Hypervisor)],
    stack: &EffectiveStack,
    member: &Member<'_>,
) -> Result<Vec<Place>, Box<Diagnostic>> {
    let Member { job, name, .. } = member;
    let having: Vec<(&EffectiveStack, &BackupJob)> = datacenters
        .iter()
        .filter_map(|(other, datacenter)| Some((*other, datacenter.backup_jobs.get(job)?)))
        .collect();
    let of = |here: &dyn Fn(&EffectiveStack) -> bool| -> Vec<(&EffectiveStack, &BackupJob)> {
        having.iter().filter(|(other, _)| here(other)).copied().collect()
    };
    let mut chosen = of(&|other| other.environment == stack.environment);
    if chosen.is_empty() {
        chosen = of(&|other| other.is_default_environment);
    }
    if chosen.is_empty() {
        let known: Vec<&str> =
            datacenters.iter().flat_map(|(_, datacenter)| datacenter.backup_jobs.keys()).collect();
        let hint = suggestion(job, &known)
            .unwrap_or_else(|| "describe it under `backupJobs` of a file in `hypervisors/`".to_owned());
        let message = format!("there is no backup job `{job}` on the Proxmox of `{name}`");
        return Err(Box::new(Diagnostic::error("unknown-backup-job", message).at(job.span).hint(hint)));
    }
    let mut places = Vec::new();
    for (other, of) in chosen {
        if let Some((why, hint)) = left_out(of, member) {
            let message = format!("the backup job `{job}` does not back `{name}` up: {why}");
            return Err(Box::new(Diagnostic::error("backup-job", message).at(job.span).hint(hint)));
        }
        if of.pool.is_none() && !of.all {
            places.push((other.name.clone(), other.environment.clone()));
        }
    }
    Ok(places)
}

/// Why a job would leave a guest out that names it.
fn left_out(job: &BackupJob, member: &Member<'_>) -> Option<(String, &'static str)> {
    if let Some(pool) = job.pool.as_ref().filter(|pool| member.pool != Some(pool.as_str())) {
        return Some((
            format!("it is about the pool `{pool}`"),
            "put the guest into that pool, or name a job that lists guests",
        ));
    }
    if job.all && job.exclude.contains(&member.vm_id) {
        return Some((
            format!("it leaves VMID {} out", member.vm_id),
            "remove the VMID from `exclude` of the job, or `backup` from the guest",
        ));
    }
    let node = job.node.as_ref()?;
    let elsewhere = member.node.as_ref().is_some_and(|own| own != node.as_str());
    elsewhere.then(|| {
        (format!("it is about guests on `{node}`"), "remove `node` from the job, or name another job")
    })
}
