//! What was proven wrong by running it, each as a test that is named after its finding (docs/testing.md has the table).

mod etcd;
mod imports;
mod late;
mod lease;
mod orphans;
mod planned;
mod real_api;
mod running_cluster;
mod secrecy;
mod table;

pub(crate) use self::orphans::unlock_as_told;
pub(crate) use self::real_api::wait_for_ha;
