//! `machine.MachineService`: etcd.

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct MemberListRequest {
    #[prost(bool, tag = "1")]
    pub(in crate::api) query_local: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct Members {
    #[prost(message, repeated, tag = "3")]
    pub(in crate::api) members: Vec<Member>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct Member {
    #[prost(uint64, tag = "2")]
    pub(in crate::api) id: u64,
    #[prost(string, tag = "3")]
    pub(in crate::api) hostname: String,
    #[prost(string, repeated, tag = "4")]
    pub(in crate::api) peer_urls: Vec<String>,
    #[prost(string, repeated, tag = "5")]
    pub(in crate::api) client_urls: Vec<String>,
    #[prost(bool, tag = "6")]
    pub(in crate::api) is_learner: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct RemoveMemberByIdRequest {
    #[prost(uint64, tag = "1")]
    pub(in crate::api) member_id: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct ForfeitLeadership {
    #[prost(string, tag = "2")]
    pub(in crate::api) member: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct Alarms {
    #[prost(message, repeated, tag = "2")]
    pub(in crate::api) member_alarms: Vec<MemberAlarm>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct MemberAlarm {
    #[prost(uint64, tag = "1")]
    pub(in crate::api) member_id: u64,
    #[prost(int32, tag = "2")]
    pub(in crate::api) alarm: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct Status {
    #[prost(message, optional, tag = "2")]
    pub(in crate::api) member_status: Option<MemberStatus>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct MemberStatus {
    #[prost(string, tag = "1")]
    pub(in crate::api) protocol_version: String,
    #[prost(int64, tag = "2")]
    pub(in crate::api) db_size: i64,
    #[prost(int64, tag = "3")]
    pub(in crate::api) db_size_in_use: i64,
    #[prost(uint64, tag = "4")]
    pub(in crate::api) leader: u64,
    #[prost(uint64, tag = "5")]
    pub(in crate::api) raft_index: u64,
    #[prost(uint64, tag = "6")]
    pub(in crate::api) raft_term: u64,
    #[prost(uint64, tag = "7")]
    pub(in crate::api) raft_applied_index: u64,
    #[prost(string, repeated, tag = "8")]
    pub(in crate::api) errors: Vec<String>,
    #[prost(bool, tag = "9")]
    pub(in crate::api) is_learner: bool,
    #[prost(uint64, tag = "10")]
    pub(in crate::api) member_id: u64,
}
