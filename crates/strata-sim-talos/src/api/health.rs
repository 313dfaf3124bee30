//! The health of a whole cluster, checked from one of its control planes, step by step.

use std::sync::Arc;
use std::time::Duration;

use prost::Message as _;
use serde_json::Value;
use tokio::sync::mpsc;

use super::{Call, Outcome, Reply, machine_status, only_control_planes, services};
use crate::grpc::{Code, Status};
use crate::place::Presence;
use crate::wire::system::{HealthProgress, HealthRequest};
use crate::world::Machines;
use crate::world::World;
use strata_sim_kubernetes::CONTROL_PLANE_PARTS;
use strata_sim_kubernetes::has_condition;

/// How often is looked again at least.
const LOOK: Duration = Duration::from_millis(500);
const RUNNING: i32 = 4;

/// Passed, not for this cluster, or what is missing.
enum CheckResult {
    Fine,
    Skipped,
    Missing(String),
}

/// What is checked: a world in which a machine looks at the nodes of its cluster.
struct View<'w> {
    world: &'w World<'w>,
    /// The machine that looks.
    key: &'w str,
    /// Address, machine, and whether it is a control plane.
    nodes: Vec<(String, String, bool)>,
}

type Check = (&'static str, fn(&View<'_>) -> CheckResult);

const CHECKS: &[Check] = &[
    ("etcd to be healthy", |view| view.service("etcd")),
    ("etcd members to be consistent across nodes", |view| view.consistent()),
    ("etcd members to be control plane nodes", |view| view.members()),
    ("apid to be ready", |view| view.reachable()),
    ("all nodes memory sizes", |_| CheckResult::Fine),
    ("all nodes disk sizes", |_| CheckResult::Fine),
    ("no diagnostics", |_| CheckResult::Fine),
    ("kubelet to be healthy", |view| view.service("kubelet")),
    ("all nodes to finish boot sequence", |view| view.booted()),
    ("all k8s nodes to report", |view| view.kubernetes_nodes(|_| true, "nodes are not there yet")),
    ("all control plane static pods to be running", |view| view.static_pods()),
    ("all control plane components to be ready", |view| view.static_pods()),
    ("all k8s nodes to report ready", |view| view.kubernetes_nodes(is_ready, "some nodes are not ready")),
    ("kube-proxy to report ready", |view| view.pods("daemonsets", "kube-proxy")),
    ("coredns to report ready", |view| view.pods("deployments", "kube-dns")),
    ("all k8s nodes to report schedulable", |view| {
        view.kubernetes_nodes(|node| node["spec"]["unschedulable"] != true, "some nodes are not schedulable")
    }),
];

fn is_ready(object: &Value) -> bool {
    has_condition(object, "Ready", "True")
}

fn missing(list: Vec<String>, what: &str) -> CheckResult {
    if list.is_empty() { CheckResult::Fine } else { CheckResult::Missing(format!("{what}: {list:?}")) }
}

impl View<'_> {
    fn control_planes(&self) -> impl Iterator<Item = &(String, String, bool)> {
        self.nodes.iter().filter(|(.., control_plane)| *control_plane)
    }

    fn service(&self, id: &str) -> CheckResult {
        for (address, key, _) in self.control_planes() {
            let all = services::services(self.world, key).unwrap_or_default();
            let Some(service) = all.iter().find(|service| service.id == id) else {
                return CheckResult::Missing(format!("{address}: service {id:?} not found"));
            };
            if service.state != "Running" {
                let text = format!(
                    "{address}: service {id:?} not in expected state \"Running\": current state [{}] {}",
                    service.state, service.message
                );
                return CheckResult::Missing(text);
            }
            if service.healthy != Some(true) {
                return CheckResult::Missing(format!("{address}: service is not healthy: {id}"));
            }
        }
        CheckResult::Fine
    }

    fn consistent(&self) -> CheckResult {
        let clusters: Vec<Option<&str>> = self
            .control_planes()
            .map(|(_, key, _)| self.world.etcd_of(key).map(|(c, _)| c.id.as_str()))
            .collect();
        match clusters.windows(2).all(|pair| pair[0] == pair[1]) && clusters.iter().all(Option::is_some) {
            true => CheckResult::Fine,
            false => CheckResult::Missing("etcd members are not consistent across nodes".to_owned()),
        }
    }

    fn members(&self) -> CheckResult {
        let Some((cluster, _)) = self.world.etcd_of(self.key) else {
            return CheckResult::Missing("etcd is not running".to_owned());
        };
        let mut members: Vec<&str> = cluster.members.iter().map(|member| member.address.as_str()).collect();
        let mut nodes: Vec<&str> = self.control_planes().map(|(address, ..)| address.as_str()).collect();
        members.sort_unstable();
        nodes.sort_unstable();
        match members == nodes {
            true => CheckResult::Fine,
            false => CheckResult::Missing(format!(
                "etcd member ips {members:?} are not subset of control plane node ips {nodes:?}"
            )),
        }
    }

    fn reachable(&self) -> CheckResult {
        let gone = self.nodes.iter().filter(|(address, ..)| self.world.talos_presence(address).is_none());
        missing(gone.map(|(address, ..)| address.clone()).collect(), "nodes do not answer")
    }

    fn booted(&self) -> CheckResult {
        let early = self.nodes.iter().filter(|(_, key, _)| machine_status(self.world, key).stage != RUNNING);
        missing(early.map(|(address, ..)| address.clone()).collect(), "nodes are not running")
    }

    fn objects(&self, plural: &str) -> Vec<&Value> {
        let Some((id, true)) = self.world.kubernetes_of(self.key) else { return Vec::new() };
        self.world.kubernetes.list(&id, plural)
    }

    fn kubernetes_nodes(&self, fine: impl Fn(&Value) -> bool, what: &str) -> CheckResult {
        let nodes = self.objects("nodes");
        let named = |hostname: &str| nodes.iter().find(|node| node["metadata"]["name"] == hostname);
        let bad = self.nodes.iter().filter_map(|(address, key, _)| {
            let hostname = self.world.talos_hostname(key);
            (!named(&hostname).is_some_and(|node| fine(node))).then(|| address.clone())
        });
        missing(bad.collect(), what)
    }

    fn static_pods(&self) -> CheckResult {
        let pods = self.objects("pods");
        let expected = self.control_planes().flat_map(|(_, key, _)| {
            let hostname = self.world.talos_hostname(key);
            CONTROL_PLANE_PARTS.map(|part| format!("{part}-{hostname}"))
        });
        let bad = expected
            .filter(|name| !pods.iter().any(|pod| pod["metadata"]["name"] == name.as_str() && is_ready(pod)));
        missing(bad.collect(), "missing static pods")
    }

    fn pods(&self, plural: &str, label: &str) -> CheckResult {
        let labelled = |object: &&Value| object["metadata"]["labels"]["k8s-app"] == label;
        if !self.objects(plural).iter().any(labelled) {
            return CheckResult::Skipped;
        }
        let pods: Vec<&Value> = self.objects("pods").into_iter().filter(labelled).collect();
        if pods.is_empty() {
            return CheckResult::Missing("no pods found for namespace \"kube-system\"".to_owned());
        }
        let bad = pods.into_iter().filter(|pod| !is_ready(pod));
        let name = |pod: &Value| pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        missing(bad.map(name).collect(), "some pods are not ready")
    }
}

/// Runs the checks for one client.
struct Checkup {
    machines: Arc<Machines>,
    presence: Presence,
    asked: HealthRequest,
    to: mpsc::Sender<Result<Vec<u8>, Status>>,
}

impl Checkup {
    async fn say(&self, message: String) -> bool {
        self.to.send(Ok(HealthProgress { message }.encode_to_vec())).await.is_ok()
    }

    fn view<'w>(&'w self, world: &'w World<'w>) -> View<'w> {
        let mut nodes = Vec::new();
        let asked = self.asked.nodes.clone().unwrap_or_default();
        for (list, control_plane) in [(&asked.control_planes, true), (&asked.workers, false)] {
            for address in list {
                let key = world.talos_at(address).map(|(key, _)| key.to_owned()).unwrap_or_default();
                nodes.push((address.clone(), key, control_plane));
            }
        }
        if nodes.is_empty() {
            nodes = world.talos_members(&self.presence.machine);
        }
        View { world, key: &self.presence.machine, nodes }
    }

    async fn run(self) {
        let wait = self.asked.wait.clone().unwrap_or_default();
        let end = tokio::time::Instant::now()
            + Duration::from_secs(u64::try_from(wait.seconds).unwrap_or(0).min(3600));
        let found = {
            let world = self.machines.world();
            let addresses: Vec<String> =
                self.view(&world).nodes.into_iter().map(|(address, ..)| address).collect();
            format!("discovered nodes: {}", go_list(&addresses))
        };
        if !self.say(found).await {
            return;
        }
        for (what, check) in CHECKS {
            let mut told = String::new();
            if !self.say(format!("waiting for {what}: ...")).await {
                return;
            }
            loop {
                let changed = self.machines.shared.until_changed();
                tokio::pin!(changed);
                changed.as_mut().enable();
                self.machines.advance();
                let found = {
                    let world = self.machines.world();
                    // With its boot, the call is over.
                    if !world.is_present(&self.presence) {
                        return;
                    }
                    check(&self.view(&world))
                };
                let (text, done) = match found {
                    CheckResult::Fine => ("OK".to_owned(), true),
                    CheckResult::Skipped => ("SKIP".to_owned(), true),
                    CheckResult::Missing(text) => (text, false),
                };
                if text != told && !self.say(format!("waiting for {what}: {text}")).await {
                    return;
                }
                told = text;
                if done {
                    break;
                }
                if tokio::time::Instant::now() >= end {
                    let late = Status::new(Code::DeadlineExceeded, "context deadline exceeded");
                    let _ = self.to.send(Err(late)).await;
                    return;
                }
                tokio::select! {
                    () = changed => {}
                    () = tokio::time::sleep(LOOK) => {}
                    () = tokio::time::sleep_until(end) => {}
                    () = self.to.closed() => return,
                }
            }
        }
    }
}

/// A list as Go prints it.
fn go_list(list: &[String]) -> String {
    let quoted: Vec<String> = list.iter().map(|item| format!("{item:?}")).collect();
    format!("[{}]", quoted.join(" "))
}

pub(super) fn check(call: &Call<'_>) -> Outcome {
    let asked: HealthRequest = call.request()?;
    only_control_planes(&call.machines.world(), call.key, "cluster health check")?;
    let (to, from) = mpsc::channel(16);
    let checkup = Checkup { machines: Arc::clone(call.machines), presence: call.presence.clone(), asked, to };
    tokio::spawn(checkup.run());
    Ok(Reply::Stream(from))
}
