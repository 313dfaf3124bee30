//! Calls about etcd: members, status, alarms, and the ways to leave. All of them only on control planes; a worker answers
//! [`TalosReason::Unimplemented`](super::TalosReason::Unimplemented).

use super::client::TalosClient;
use super::error::TalosError;
use super::wire::Empty;
use super::wire::{etcd as wire, machine::Begun};

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
        self.alarms("/machine.MachineService/EtcdAlarmList").await
    }

    /// Ends every alarm; answers those that were.
    pub async fn etcd_disarm_alarms(&self) -> Result<Vec<EtcdAlarm>, TalosError> {
        self.alarms("/machine.MachineService/EtcdAlarmDisarm").await
    }

    async fn alarms(&self, path: &'static str) -> Result<Vec<EtcdAlarm>, TalosError> {
        let alarms: wire::Alarms = self.ask(path, &Empty {}, self.timeouts.call).await?;
        let kind = |number| match number {
            1 => EtcdAlarmKind::NoSpace,
            2 => EtcdAlarmKind::Corrupt,
            other => EtcdAlarmKind::Other(other),
        };
        let real = alarms.member_alarms.into_iter().filter(|alarm| alarm.alarm != 0);
        Ok(real.map(|alarm| EtcdAlarm { member_id: alarm.member_id, kind: kind(alarm.alarm) }).collect())
    }

    /// Takes this node's member out of etcd and stops it for good: the node must be reset or removed afterwards.
    pub async fn etcd_leave_cluster(&self) -> Result<(), TalosError> {
        let path = "/machine.MachineService/EtcdLeaveCluster";
        let _: Begun = self.ask(path, &Empty {}, self.timeouts.slow).await?;
        Ok(())
    }

    /// Removes a member whose node is gone. [`TalosReason::NotFound`](super::TalosReason::NotFound) if there is none of this id.
    pub async fn etcd_remove_member(&self, member_id: u64) -> Result<(), TalosError> {
        let path = "/machine.MachineService/EtcdRemoveMemberByID";
        let request = wire::RemoveMemberByIdRequest { member_id };
        let _: Begun = self.ask(path, &request, self.timeouts.slow).await?;
        Ok(())
    }

    /// If this node's member leads, lets another one; answers the new leader, or nothing if this node did not lead.
    pub async fn etcd_forfeit_leadership(&self) -> Result<Option<String>, TalosError> {
        let path = "/machine.MachineService/EtcdForfeitLeadership";
        let answer: wire::ForfeitLeadership = self.ask(path, &Empty {}, self.timeouts.slow).await?;
        Ok(Some(answer.member).filter(|member| !member.is_empty()))
    }
}
