//! Calls about etcd: members, status, alarms, and the ways to leave. All of them only on control planes; a worker answers
//! [`TalosReason::Unimplemented`](crate::TalosReason::Unimplemented).

use strata_net::WritePermit;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use crate::client::TalosClient;
use crate::error::{TalosError, TalosReason};
use crate::wire::{Data, Empty};
use crate::wire::{
    etcd as wire,
    machine::{self, Begun},
};

/// Where etcd has its data, and the partition that this is on.
const DATA: &str = "/var/lib/etcd";
const DATA_PARTITION: &str = "/var";

/// A member of etcd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdMember {
    pub id: u64,
    /// Empty until the member has started for the first time.
    pub hostname: String,
    pub peer_urls: Vec<String>,
    pub client_urls: Vec<String>,
    /// A learner follows and has no vote; it does not count towards quorum.
    pub is_learner: bool,
}

/// How one member sees itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdStatus {
    pub member_id: u64,
    /// The leader's id; zero while there is none.
    pub leader: u64,
    pub is_learner: bool,
    pub version: String,
    pub db_size: i64,
    pub db_size_in_use: i64,
    pub raft_term: u64,
    pub raft_index: u64,
    /// Behind `raft_index` while the member catches up.
    pub raft_applied_index: u64,
    pub errors: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EtcdAlarm {
    pub member_id: u64,
    pub kind: EtcdAlarmKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EtcdAlarmKind {
    /// The database is full: etcd takes no more writes.
    NoSpace,
    /// Members do not agree about their data.
    Corrupt,
    /// One that is not known here.
    Other(i32),
}

/// The node says of the data directory itself that it is not there; any other failure proves nothing.
fn is_missing(reason: &TalosReason) -> bool {
    match reason {
        TalosReason::NotFound(text) | TalosReason::Failed { message: text, .. } => {
            text.contains(&format!("{DATA}: no such file or directory"))
        }
        _ => false,
    }
}

impl TalosClient {
    /// The members, as the cluster sees them. It needs a leader.
    pub async fn etcd_members(&self) -> Result<Vec<EtcdMember>, TalosError> {
        self.members_by(false).await
    }

    /// The members, as this node's own etcd sees them.
    pub async fn etcd_members_local(&self) -> Result<Vec<EtcdMember>, TalosError> {
        self.members_by(true).await
    }

    async fn members_by(&self, query_local: bool) -> Result<Vec<EtcdMember>, TalosError> {
        let path = "/machine.MachineService/EtcdMemberList";
        let request = wire::MemberListRequest { query_local };
        let list: wire::Members = self.ask(path, &request, self.timeouts.call).await?;
        let member = |wire::Member { id, hostname, peer_urls, client_urls, is_learner }| EtcdMember {
            id,
            hostname,
            peer_urls,
            client_urls,
            is_learner,
        };
        Ok(list.members.into_iter().map(member).collect())
    }

    /// What this node's own member says. Fails while etcd does not run.
    pub async fn etcd_status(&self) -> Result<EtcdStatus, TalosError> {
        let path = "/machine.MachineService/EtcdStatus";
        let status: wire::Status = self.ask(path, &Empty {}, self.timeouts.call).await?;
        let status = status.member_status.unwrap_or_default();
        Ok(EtcdStatus {
            member_id: status.member_id,
            leader: status.leader,
            is_learner: status.is_learner,
            version: status.protocol_version,
            db_size: status.db_size,
            db_size_in_use: status.db_size_in_use,
            raft_term: status.raft_term,
            raft_index: status.raft_index,
            raft_applied_index: status.raft_applied_index,
            errors: status.errors.into_iter().map(|error| self.scrub(error)).collect(),
        })
    }

    pub async fn etcd_alarms(&self) -> Result<Vec<EtcdAlarm>, TalosError> {
        let path = "/machine.MachineService/EtcdAlarmList";
        self.ask(path, &Empty {}, self.timeouts.call).await.map(alarms)
    }

    /// Ends every alarm; answers those that were.
    pub async fn etcd_disarm_alarms(&self, permit: &WritePermit<'_>) -> Result<Vec<EtcdAlarm>, TalosError> {
        let path = "/machine.MachineService/EtcdAlarmDisarm";
        self.write(permit, path, &Empty {}, self.timeouts.call).await.map(alarms)
    }

    /// Whether etcd was ever started on this node and has left its data there, with a majority or without.
    ///
    /// [`TalosReason::FailedPrecondition`] while the partition that they would be on is not mounted: then nobody can tell.
    pub async fn holds_etcd_data(&self) -> Result<bool, TalosError> {
        let path = "/machine.MachineService/Mounts";
        let mounts: machine::Mounts = self.ask(path, &Empty {}, self.timeouts.call).await?;
        if !mounts.stats.iter().any(|mount| mount.mounted_on == DATA_PARTITION) {
            let reason = format!("the partition `{DATA_PARTITION}` is not mounted");
            return Err(self.error(path, TalosReason::FailedPrecondition(reason)));
        }
        match self.names_in(DATA).await {
            // The directory itself is the first entry.
            Ok(entries) => Ok(entries.iter().any(|entry| !matches!(entry.as_str(), "" | "."))),
            Err(error) if is_missing(&error.reason) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The names in a directory.
    async fn names_in(&self, root: &str) -> Result<Vec<String>, TalosError> {
        let path = "/machine.MachineService/List";
        let request = machine::ListRequest { root: root.to_owned() };
        let mut stream = self.stream::<machine::FileInfo>(path, &request, self.timeouts.call).await?;
        let mut names = Vec::new();
        while let Some(machine::FileInfo { name, error, relative_name }) = stream.next().await? {
            if !error.is_empty() {
                let message = format!("{name}: {error}");
                return Err(self.error(path, TalosReason::Failed { code: 2, message }));
            }
            names.push(relative_name);
        }
        Ok(names)
    }

    /// The database file of this node's member, also where its etcd does not run. Without a checksum at its end.
    pub async fn etcd_database(&self, into: &mut (dyn AsyncWrite + Unpin + Send)) -> Result<u64, TalosError> {
        let path = "/machine.MachineService/Read";
        let failed = |error: std::io::Error| self.error(path, TalosReason::Local(error.to_string()));
        let request = machine::ReadRequest { path: format!("{DATA}/member/snap/db") };
        let mut stream = self.stream::<Data>(path, &request, self.timeouts.transfer).await?;
        let mut bytes = 0;
        while let Some(data) = stream.next().await? {
            bytes += data.bytes.len() as u64;
            into.write_all(&data.bytes).await.map_err(failed)?;
        }
        into.flush().await.map_err(failed)?;
        Ok(bytes)
    }

    /// Takes this node's member out of etcd and stops it for good: the node must be reset or removed afterwards.
    pub async fn etcd_leave_cluster(&self, permit: &WritePermit<'_>) -> Result<(), TalosError> {
        let path = "/machine.MachineService/EtcdLeaveCluster";
        let _: Begun = self.write(permit, path, &Empty {}, self.timeouts.slow).await?;
        Ok(())
    }

    /// Removes a member whose node is gone. [`TalosReason::NotFound`](crate::TalosReason::NotFound) if there is none of this id.
    pub async fn etcd_remove_member(
        &self,
        permit: &WritePermit<'_>,
        member_id: u64,
    ) -> Result<(), TalosError> {
        let path = "/machine.MachineService/EtcdRemoveMemberByID";
        let request = wire::RemoveMemberByIdRequest { member_id };
        let _: Begun = self.write(permit, path, &request, self.timeouts.slow).await?;
        Ok(())
    }

    /// If this node's member leads, lets another one; answers the new leader, or nothing if this node did not lead.
    pub async fn etcd_forfeit_leadership(
        &self,
        permit: &WritePermit<'_>,
    ) -> Result<Option<String>, TalosError> {
        let path = "/machine.MachineService/EtcdForfeitLeadership";
        let answer: wire::ForfeitLeadership = self.write(permit, path, &Empty {}, self.timeouts.slow).await?;
        Ok(Some(answer.member).filter(|member| !member.is_empty()))
    }
}

fn alarms(alarms: wire::Alarms) -> Vec<EtcdAlarm> {
    let kind = |number| match number {
        1 => EtcdAlarmKind::NoSpace,
        2 => EtcdAlarmKind::Corrupt,
        other => EtcdAlarmKind::Other(other),
    };
    let real = alarms.member_alarms.into_iter().filter(|alarm| alarm.alarm != 0);
    real.map(|alarm| EtcdAlarm { member_id: alarm.member_id, kind: kind(alarm.alarm) }).collect()
}
