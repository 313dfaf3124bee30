//! `machine.MachineService`: etcd.

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct MemberListRequest {
    #[prost(bool, tag = "1")]
    pub(crate) query_local: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Members {
    #[prost(message, repeated, tag = "3")]
    pub(crate) members: Vec<Member>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Member {
    #[prost(uint64, tag = "2")]
    pub(crate) id: u64,
    #[prost(string, tag = "3")]
    pub(crate) hostname: String,
    #[prost(string, repeated, tag = "4")]
    pub(crate) peer_urls: Vec<String>,
    #[prost(string, repeated, tag = "5")]
    pub(crate) client_urls: Vec<String>,
    #[prost(bool, tag = "6")]
    pub(crate) is_learner: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RemoveMemberByIdRequest {
    #[prost(uint64, tag = "1")]
    pub(crate) member_id: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ForfeitLeadership {
    #[prost(string, tag = "2")]
    pub(crate) member: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Alarms {
    #[prost(message, repeated, tag = "2")]
    pub(crate) member_alarms: Vec<MemberAlarm>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct MemberAlarm {
    #[prost(uint64, tag = "1")]
    pub(crate) member_id: u64,
    #[prost(int32, tag = "2")]
    pub(crate) alarm: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Status {
    #[prost(message, optional, tag = "2")]
    pub(crate) member_status: Option<MemberStatus>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct MemberStatus {
    #[prost(string, tag = "1")]
    pub(crate) protocol_version: String,
    #[prost(int64, tag = "2")]
    pub(crate) db_size: i64,
    #[prost(int64, tag = "3")]
    pub(crate) db_size_in_use: i64,
    #[prost(uint64, tag = "4")]
    pub(crate) leader: u64,
    #[prost(uint64, tag = "5")]
    pub(crate) raft_index: u64,
    #[prost(uint64, tag = "6")]
    pub(crate) raft_term: u64,
    #[prost(uint64, tag = "7")]
    pub(crate) raft_applied_index: u64,
    #[prost(string, repeated, tag = "8")]
    pub(crate) errors: Vec<String>,
    #[prost(bool, tag = "9")]
    pub(crate) is_learner: bool,
    #[prost(uint64, tag = "10")]
    pub(crate) member_id: u64,
}
