//! What runs on a machine: containers of Talos and of Kubernetes, what they use, processes, images.

use prost::Message as _;
use sha2::{Digest, Sha256};

use super::{Call, Outcome, Reply, done, logs, machine, services};
use crate::grpc::Status;
use crate::wire::system::{
    ContainerInfo, Containers, ContainersRequest, ImagesRequest, OldImage, ProcessInfo, Processes, Stat,
    Stats,
};
use crate::world::World;

const FIRST: u32 = 1800;
const MEGABYTE: u64 = 1 << 20;
/// Services that run in containers of their own.
const CONTAINED: [&str; 4] = ["apid", "etcd", "kubelet", "trustd"];
const SYSTEM: i32 = 1;

fn containers_of(world: &World, key: &str, namespace: &str) -> Result<Vec<ContainerInfo>, Status> {
    let (_, boot) = machine(world, key)?;
    let mut found = Vec::new();
    if namespace == "k8s.io" {
        for (number, (pod, name, image)) in logs::containers(world, key).into_iter().enumerate() {
            let id = format!("{pod}:{name}");
            let (status, pid) = ("CONTAINER_RUNNING".to_owned(), FIRST + 1000 + number as u32);
            found.push(ContainerInfo { namespace: namespace.to_owned(), id, image, pid, status, pod, name });
        }
        return Ok(found);
    }
    let running = services::services(world, key)?.into_iter().filter(|service| service.state == "Running");
    for (number, service) in running.filter(|service| CONTAINED.contains(&service.id)).enumerate() {
        let told = boot.config.as_ref().and_then(|config| config.component_image(service.id));
        found.push(ContainerInfo {
            namespace: "system".to_owned(),
            id: service.id.to_owned(),
            image: told.unwrap_or_default(),
            pid: FIRST + number as u32,
            status: "RUNNING".to_owned(),
            pod: service.id.to_owned(),
            name: service.id.to_owned(),
        });
    }
    Ok(found)
}

pub(super) fn containers(call: &Call<'_>) -> Outcome {
    let asked: ContainersRequest = call.request()?;
    done(&Containers { containers: containers_of(&call.machines.world(), call.key, &asked.namespace)? })
}

pub(super) fn stats(call: &Call<'_>) -> Outcome {
    let asked: ContainersRequest = call.request()?;
    let found = containers_of(&call.machines.world(), call.key, &asked.namespace)?.into_iter();
    let stats = found.map(|container| Stat {
        namespace: container.namespace,
        memory: (20 + container.id.len() as u64) * MEGABYTE,
        processor: 1_000_000 * u64::from(container.pid),
        id: container.id,
        pod: container.pod,
        name: container.name,
    });
    done(&Stats { stats: stats.collect() })
}

pub(super) fn processes(call: &Call<'_>) -> Outcome {
    let world = call.machines.world();
    let process = |pid: i32, parent: i32, executable: &str| ProcessInfo {
        pid,
        parent,
        state: "S".to_owned(),
        threads: 8,
        time: 1.0,
        virtual_memory: 1500 * MEGABYTE,
        resident_memory: 40 * MEGABYTE,
        command: executable.rsplit('/').next().unwrap_or_default().to_owned(),
        executable: executable.to_owned(),
        arguments: executable.to_owned(),
    };
    let mut all = vec![process(1, 0, "/sbin/init")];
    for (number, service) in services::services(&world, call.key)?.iter().enumerate() {
        if service.state == "Running" && service.id != "machined" {
            all.push(process(1700 + number as i32, 1, &format!("/usr/bin/{}", service.id)));
        }
    }
    for (number, (_, name, _)) in logs::containers(&world, call.key).iter().enumerate() {
        all.push(process((FIRST + 1000) as i32 + number as i32, 1, &format!("/{name}")));
    }
    done(&Processes { processes: all })
}

pub(super) fn images(call: &Call<'_>) -> Outcome {
    let asked: ImagesRequest = call.request()?;
    let world = call.machines.world();
    let namespace = if asked.namespace == SYSTEM { "system" } else { "k8s.io" };
    let mut names: Vec<String> =
        containers_of(&world, call.key, namespace)?.into_iter().map(|container| container.image).collect();
    names.sort();
    names.dedup();
    let image = |name: String| {
        let digest = format!("sha256:{}", hex::encode(Sha256::digest(&name)));
        OldImage { digest, size: 30 * MEGABYTE as i64, created: None, name }.encode_to_vec()
    };
    Ok(Reply::Messages(names.into_iter().filter(|name| !name.is_empty()).map(image).collect()))
}
