//! etcd through the Talos API.

use super::{Call, Outcome, Reply, done, machine, only_control_planes};
use crate::etcd::{EtcdCluster, Member, Refused, snapshot as file};
use crate::grpc::{Code, Status};
use crate::machine::Stage;
use crate::wire::{self, Nothing};
use crate::world::World;
use prost::Message as _;

/// A snapshot travels in pieces of this size.
const PIECE: usize = 32 << 10;

fn not_up() -> Status {
    let text = "connection error: desc = \"transport: Error while dialing: dial tcp 127.0.0.1:2379: connect: connection refused\"";
    Status::new(Code::Unavailable, text)
}

fn refused(why: &Refused, doing: &str) -> Status {
    match why {
        Refused::NotFound => Status::new(Code::NotFound, why.to_string()),
        _ if doing.is_empty() => Status::unknown(why.to_string()),
        _ => Status::unknown(format!("{doing}: {why}")),
    }
}

/// The member on this machine, if it runs.
fn local<'w>(world: &'w World, key: &str) -> Result<(&'w EtcdCluster, &'w Member), Status> {
    world.etcd_of(key).filter(|(cluster, member)| world.etcd_up(cluster, member)).ok_or_else(not_up)
}

/// A cluster that answers, through whichever control plane: it must have a leader.
fn any<'w>(world: &'w World, key: &str) -> Result<&'w EtcdCluster, Status> {
    let cluster = world.etcd_near(key).ok_or_else(not_up)?;
    if world.has_quorum(cluster) { Ok(cluster) } else { Err(refused(&Refused::NoLeader, "")) }
}

pub(super) fn bootstrap(call: &Call<'_>) -> Outcome {
    let asked: wire::BootstrapRequest = call.request()?;
    let mut world = call.machines.world();
    let (_, boot) = machine(&world, call.key)?;
    if boot.stage != Stage::Running {
        return Err(Status::new(Code::FailedPrecondition, "bootstrap is not available yet"));
    }
    only_control_planes(&world, call.key, "bootstrap")?;
    let recovered = match (asked.recover, &boot.snapshot) {
        (false, _) => None,
        (true, None) => {
            return Err(Status::new(Code::FailedPrecondition, "no etcd snapshot was uploaded for recovery"));
        }
        (true, Some(bytes)) => {
            let read = file::read(bytes, !asked.skip_hash_check);
            Some(read.map_err(|why| Status::unknown(format!("failed to restore etcd snapshot: {why}")))?)
        }
    };
    if world.talos_disk(call.key).is_some_and(|disk| disk.etcd.is_some()) {
        return Err(Status::new(Code::AlreadyExists, "etcd data directory is not empty"));
    }
    world.etcd_bootstrap(call.key, recovered).map_err(Status::unknown)?;
    if let Some(boot) = world.talos.machines.get_mut(call.key).and_then(|machine| machine.boot.as_mut()) {
        boot.snapshot = None;
        boot.stopped.retain(|service| service != "etcd");
    }
    done(&Nothing {})
}

pub(super) fn members(call: &Call<'_>) -> Outcome {
    let asked: wire::MembersRequest = call.request()?;
    let world = call.machines.world();
    only_control_planes(&world, call.key, "member list")?;
    let cluster = match asked.local {
        true => local(&world, call.key)?.0,
        false => any(&world, call.key)?,
    };
    if !world.has_quorum(cluster) {
        return Err(refused(&Refused::NoLeader, ""));
    }
    done(&wire::EtcdMembers {
        legacy_members: cluster.members.iter().map(|member| member.name.clone()).collect(),
        members: cluster
            .members
            .iter()
            .map(|member| wire::EtcdMember {
                id: member.id,
                hostname: member.name.clone(),
                peer_urls: vec![format!("https://{}:2380", member.address)],
                client_urls: vec![format!("https://{}:2379", member.address)],
                is_learner: member.learner,
            })
            .collect(),
    })
}

pub(super) fn status(call: &Call<'_>) -> Outcome {
    let world = call.machines.world();
    only_control_planes(&world, call.key, "etcd status")?;
    let (cluster, member) = local(&world, call.key)?;
    let leader = cluster.leader.unwrap_or(0);
    let errors = if leader == 0 { vec!["etcdserver: no leader".to_owned()] } else { Vec::new() };
    done(&wire::EtcdStatus {
        status: Some(wire::MemberStatus {
            protocol_version: "3.6.4".to_owned(),
            db_size: 20 << 20,
            db_size_in_use: 8 << 20,
            leader,
            raft_index: cluster.revision + 10,
            raft_term: cluster.term,
            raft_applied_index: cluster.revision + 10,
            errors,
            is_learner: member.learner,
            member_id: member.id,
            storage_version: "3.6.0".to_owned(),
        }),
    })
}

fn alarms_of(cluster: &EtcdCluster) -> wire::Alarms {
    let alarms =
        cluster.alarms.iter().map(|(member, alarm)| wire::MemberAlarm { member: *member, alarm: *alarm });
    wire::Alarms { alarms: alarms.collect() }
}

pub(super) fn alarms(call: &Call<'_>) -> Outcome {
    let world = call.machines.world();
    only_control_planes(&world, call.key, "etcd alarm list")?;
    done(&alarms_of(local(&world, call.key)?.0))
}

pub(super) fn disarm(call: &Call<'_>) -> Outcome {
    let mut world = call.machines.world();
    only_control_planes(&world, call.key, "etcd alarm disarm")?;
    let (cluster, _) = local(&world, call.key)?;
    if !world.has_quorum(cluster) {
        return Err(refused(&Refused::NoLeader, "failed to disarm etcd alarm"));
    }
    let (id, were) = (cluster.id.clone(), alarms_of(cluster));
    if let Some(cluster) = world.talos.etcd.get_mut(&id) {
        cluster.alarms.clear();
    }
    done(&were)
}

pub(super) fn defragment(call: &Call<'_>) -> Outcome {
    let world = call.machines.world();
    only_control_planes(&world, call.key, "etcd defragment")?;
    local(&world, call.key)?;
    done(&Nothing {})
}

/// Removes the member of a machine and its data. Its etcd stays stopped until the next boot.
pub(super) fn leave_cluster(world: &mut World, key: &str) -> Result<(), Status> {
    let doing = "failed to leave cluster";
    any(world, key)?;
    let (cluster, member) =
        world.etcd_of(key).ok_or_else(|| Status::unknown(format!("{doing}: no member")))?;
    let (id, member) = (cluster.id.clone(), member.id);
    match world.etcd_remove(&id, member) {
        Ok(()) | Err(Refused::NotFound) => {}
        Err(why) => return Err(refused(&why, doing)),
    }
    world.edit_talos_disk(key, |disk| disk.etcd = None);
    if let Some(boot) = world.talos.machines.get_mut(key).and_then(|machine| machine.boot.as_mut()) {
        boot.stopped.push("etcd".to_owned());
    }
    Ok(())
}

pub(super) fn leave(call: &Call<'_>) -> Outcome {
    let mut world = call.machines.world();
    only_control_planes(&world, call.key, "etcd leave")?;
    leave_cluster(&mut world, call.key)?;
    done(&Nothing {})
}

pub(super) fn remove(call: &Call<'_>) -> Outcome {
    let asked: wire::RemoveMemberRequest = call.request()?;
    let mut world = call.machines.world();
    only_control_planes(&world, call.key, "etcd remove member")?;
    let id = any(&world, call.key)?.id.clone();
    world.etcd_remove(&id, asked.member).map_err(|why| refused(&why, "failed to remove member"))?;
    done(&Nothing {})
}

pub(super) fn forfeit(call: &Call<'_>) -> Outcome {
    let mut world = call.machines.world();
    only_control_planes(&world, call.key, "etcd forfeit leadership")?;
    any(&world, call.key)?;
    let (cluster, member) = local(&world, call.key)?;
    if cluster.members.len() == 1 {
        return Err(Status::unknown(
            "failed to forfeit leadership: cannot forfeit leadership, only one member",
        ));
    }
    let mut next = None;
    if cluster.leader == Some(member.id) {
        let heir = cluster.voters().find(|other| other.id != member.id && world.etcd_up(cluster, other));
        next = heir.map(|heir| (heir.id, heir.name.clone()));
    }
    let id = cluster.id.clone();
    if let Some((heir, _)) = &next
        && let Some(cluster) = world.talos.etcd.get_mut(&id)
    {
        cluster.leader = Some(*heir);
        cluster.term += 1;
    }
    done(&wire::Forfeited { member: next.map(|(_, name)| name).unwrap_or_default() })
}

pub(super) fn snapshot(call: &Call<'_>) -> Outcome {
    let world = call.machines.world();
    only_control_planes(&world, call.key, "etcd snapshot")?;
    let (cluster, member) = local(&world, call.key)?;
    if member.learner {
        return Err(Status::unknown(
            "failed reading etcd snapshot: etcdserver: rpc not supported for learner",
        ));
    }
    let bytes = cluster.snapshot(&world.kubernetes.contents(&cluster.id));
    let pieces = bytes.chunks(PIECE).map(|piece| wire::Data { bytes: piece.to_vec() }.encode_to_vec());
    Ok(Reply::Messages(pieces.collect()))
}

pub(super) fn recover(call: &Call<'_>) -> Outcome {
    let mut bytes = Vec::new();
    for message in call.messages {
        let piece = wire::Data::decode(message.clone()).map_err(|error| {
            Status::new(Code::Internal, format!("grpc: error unmarshalling request: {error}"))
        })?;
        bytes.extend_from_slice(&piece.bytes);
    }
    let mut world = call.machines.world();
    if machine(&world, call.key)?.1.stage != Stage::Running {
        return Err(Status::new(Code::FailedPrecondition, "etcd service is not ready for recovery yet"));
    }
    only_control_planes(&world, call.key, "etcd recover")?;
    if let Some(boot) = world.talos.machines.get_mut(call.key).and_then(|machine| machine.boot.as_mut()) {
        boot.snapshot = Some(bytes);
    }
    done(&Nothing {})
}
