//! What changes the membership of an etcd cluster, with the rules that protect its majority.

use super::snapshot::Recovered;
use super::{CATCH_UP, EtcdCluster, Member, majority};
use crate::disk::EtcdData;
use crate::world::World;

/// Why etcd refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("etcdserver: no leader")]
    NoLeader,
    #[error("etcdserver: member not found")]
    NotFound,
    #[error("etcdserver: re-configuration failed due to not enough started members")]
    NotEnoughStarted,
}

impl World<'_> {
    /// Makes a cluster with this machine as its only member. Recovering keeps the identity that the snapshot has, and brings
    /// back what was in it.
    pub fn etcd_bootstrap(&mut self, key: &str, recovered: Option<Recovered>) -> Result<(), String> {
        let config = self.talos.machines.get(key).and_then(|machine| machine.config()).ok_or("no config")?;
        let talos = config.cluster_id().unwrap_or_default().to_owned();
        let authority = config.etcd_authority().unwrap_or_default();
        let id = match recovered {
            Some(Recovered { cluster, contents }) => {
                self.kubernetes.restore(&cluster, contents);
                cluster
            }
            None => {
                let counters = self.talos.counters.entry(talos.clone()).or_default();
                counters.bootstraps += 1;
                let number = counters.bootstraps.to_string();
                hex::encode(&self.derive(&["etcd", &talos, &number])[..8])
            }
        };
        let member = self.new_member(key, &id, 0);
        let data = EtcdData { cluster: id.clone(), member: member.id };
        let known = self.talos.etcd.get(&id);
        let (term, revision) = known.map_or((1, 1), |known| (known.term, known.revision));
        let leader = Some(member.id);
        let alarms = Vec::new();
        let members = vec![Member { learner: false, ..member }];
        let cluster = EtcdCluster {
            id: id.clone(),
            talos,
            authority,
            members,
            leader,
            term: term + 1,
            revision,
            alarms,
        };
        self.talos.etcd.insert(id, cluster);
        self.edit_talos_disk(key, |disk| disk.etcd = Some(data));
        Ok(())
    }

    fn new_member(&self, key: &str, cluster: &str, now: i64) -> Member {
        let name = self.talos_hostname(key);
        let identity = self.talos_disk(key).map(|disk| disk.identity.clone()).unwrap_or_default();
        let boot = self.talos.machines.get(key).and_then(|machine| machine.boot.as_ref());
        let address = boot.and_then(|boot| boot.addresses().first().cloned()).unwrap_or_default();
        // A machine that left and comes again is another member.
        let taken: Vec<u64> = self
            .talos
            .etcd
            .get(cluster)
            .map(|c| c.members.iter().map(|m| m.id).collect())
            .unwrap_or_default();
        let revision = self.talos.etcd.get(cluster).map_or(0, |c| c.revision);
        let mut salt = revision;
        let id = loop {
            let bytes = self.derive(&["etcd-member", cluster, &name, &identity, &salt.to_string()]);
            let id = u64::from_be_bytes(std::array::from_fn(|n| bytes[n]));
            if !taken.contains(&id) {
                break id;
            }
            salt += 1;
        };
        let caught_up = now + self.scaled_ms(CATCH_UP);
        Member { id, name, machine: key.to_owned(), address, learner: true, caught_up }
    }

    /// Joins as a learner, if the cluster has a majority and no other learner. True if it did.
    pub fn etcd_join(&mut self, key: &str, now: i64) -> bool {
        let Some(cluster) = self.etcd_near(key) else { return false };
        if !self.has_quorum(cluster) {
            return false;
        }
        let id = cluster.id.clone();
        // A member of the same name is what this machine was before: it has to go first.
        let name = self.talos_hostname(key);
        let before = cluster.members.iter().find(|member| member.name == name).map(|member| member.id);
        if let Some(before) = before
            && self.etcd_remove(&id, before).is_err()
        {
            return false;
        }
        let Some(cluster) = self.talos.etcd.get(&id) else { return false };
        let boot = self.talos.machines.get(key).and_then(|machine| machine.boot.as_ref());
        let address = boot.and_then(|boot| boot.addresses().first().cloned()).unwrap_or_default();
        // One learner at a time, and no address twice.
        if cluster.members.iter().any(|member| member.learner || member.address == address) {
            return false;
        }
        let member = self.new_member(key, &id, now);
        let data = EtcdData { cluster: id.clone(), member: member.id };
        if let Some(cluster) = self.talos.etcd.get_mut(&id) {
            cluster.members.push(member);
            cluster.revision += 1;
        }
        self.edit_talos_disk(key, |disk| disk.etcd = Some(data));
        true
    }

    /// Makes a learner that has caught up a voter, if the majority with it is there. True if one was.
    pub fn etcd_promote(&mut self, id: &str, now: i64) -> bool {
        let Some(cluster) = self.talos.etcd.get(id) else { return false };
        let Some(learner) = cluster.members.iter().find(|m| m.learner && m.caught_up <= now) else {
            return false;
        };
        if !self.etcd_up(cluster, learner) || !self.has_quorum(cluster) {
            return false;
        }
        let up = cluster.voters().filter(|member| self.etcd_up(cluster, member)).count() + 1;
        if up < majority(cluster.voters().count() + 1) {
            return false;
        }
        let learner = learner.id;
        let Some(cluster) = self.talos.etcd.get_mut(id) else { return false };
        for member in cluster.members.iter_mut().filter(|member| member.id == learner) {
            member.learner = false;
        }
        cluster.revision += 1;
        true
    }

    /// Removes a member.
    pub fn etcd_remove(&mut self, id: &str, member: u64) -> Result<(), Refused> {
        let cluster = self.talos.etcd.get(id).ok_or(Refused::NoLeader)?;
        if !self.has_quorum(cluster) {
            return Err(Refused::NoLeader);
        }
        let leaving = cluster.member(member).ok_or(Refused::NotFound)?;
        let others: Vec<&Member> = cluster.voters().filter(|other| other.id != member).collect();
        let up = others.iter().filter(|other| self.etcd_up(cluster, other)).count();
        let counts = !leaving.learner && self.etcd_up(cluster, leaving);
        if others.is_empty() || counts && up < majority(others.len()) {
            return Err(Refused::NotEnoughStarted);
        }
        let Some(cluster) = self.talos.etcd.get_mut(id) else { return Err(Refused::NoLeader) };
        cluster.members.retain(|other| other.id != member);
        cluster.revision += 1;
        self.etcd_elect(id);
        Ok(())
    }

    /// Members that run and have another address than the cluster knows tell it, as long as there is a majority to hear it.
    pub fn etcd_advertise(&mut self, id: &str) {
        let Some(cluster) = self.talos.etcd.get(id).filter(|cluster| self.has_quorum(cluster)) else {
            return;
        };
        let up = cluster.members.iter().filter(|member| self.etcd_up(cluster, member));
        let first = |member: &Member| {
            let boot = self.talos.machines.get(&member.machine)?.boot.as_ref()?;
            boot.addresses().first().filter(|address| **address != member.address).cloned()
        };
        let moved: Vec<(u64, String)> = up.filter_map(|member| Some((member.id, first(member)?))).collect();
        let Some(cluster) = self.talos.etcd.get_mut(id).filter(|_| !moved.is_empty()) else { return };
        for member in &mut cluster.members {
            if let Some((_, address)) = moved.iter().find(|(moved, _)| *moved == member.id) {
                member.address.clone_from(address);
            }
        }
        cluster.revision += 1;
    }

    /// Chooses a leader if there is none that is up. Gives whether there is one.
    pub fn etcd_elect(&mut self, id: &str) -> bool {
        let Some(cluster) = self.talos.etcd.get(id) else { return false };
        let stays = cluster.leader.and_then(|leader| cluster.member(leader));
        let quorum = self.has_quorum(cluster);
        let stays = stays.is_some_and(|member| !member.learner && self.etcd_up(cluster, member)) && quorum;
        if stays {
            return true;
        }
        let next =
            cluster.voters().find(|member| quorum && self.etcd_up(cluster, member)).map(|member| member.id);
        let Some(cluster) = self.talos.etcd.get_mut(id) else { return false };
        if next.is_some() {
            cluster.term += 1;
        }
        cluster.leader = next;
        next.is_some()
    }
}
