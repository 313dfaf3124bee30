//! What has to be true after every move, whatever happened.

use serde_json::{Value, json};

use super::History;
use crate::cluster::lab::keys;

pub(super) const CLUSTER: &str = "lab";
pub(super) const SIBLING: &str = "lab-prod";

impl History {
    /// A call to Kubernetes as somebody who may do everything.
    pub(super) fn kubernetes(&self, cluster: &str, method: &str, path: &str, body: Value) -> Value {
        let call = json!({"method": method, "path": path, "body": body});
        self.lab.sim.control().change(&json!({"kubernetes": {"cluster": cluster, "call": call}}))
    }

    pub(super) fn write_down(&self, cluster: &str, name: &str) {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        let written = self.kubernetes(cluster, "POST", "/api/v1/namespaces/default/configmaps", body);
        assert_eq!(written["status"], 200, "{}\n{written}", self.told);
    }

    /// Something new that must not get lost from now on.
    pub(super) fn keep(&mut self) {
        let name = format!("kept-{}", self.kept.len());
        self.write_down(CLUSTER, &name);
        self.kept.push(name);
    }

    fn assert_kept(&self, cluster: &str, names: &[String]) {
        let maps =
            self.kubernetes(cluster, "GET", "/api/v1/namespaces/default/configmaps", Value::Null).to_string();
        for name in names {
            assert!(maps.contains(&format!("\"{name}\"")), "{}\n`{name}` of {cluster} is lost", self.told);
        }
    }

    /// One etcd for each environment, begun once, with members of its own; no majority and no data lost by us; the cordons of others.
    #[track_caller]
    pub(super) fn assert_invariants(&mut self) {
        let (talos, told) = (self.lab.talos(), &self.told);
        let own = keys().cluster_id.as_str();
        for (id, counters) in talos["counters"].as_object().unwrap() {
            let begun = if id == own { 1 } else { self.siblings_begun };
            assert!(counters["bootstraps"].as_u64() <= Some(begun), "{told}\nbegun twice: {talos:#}");
            assert_eq!(counters["quorum_lost"], false, "{told}\nthe majority was lost: {talos:#}");
            assert!(counters["most_down"].as_u64() <= Some(1), "{told}\ntwo were down at once: {talos:#}");
        }
        let clusters = talos["etcd-clusters"].as_array().unwrap();
        assert!(clusters.len() <= 1 + usize::from(self.sibling_begins), "{told}\ntoo many etcds: {talos:#}");
        for cluster in clusters {
            let ours = cluster["cluster"] == own;
            for member in cluster["members"].as_array().unwrap() {
                let name = member["name"].as_str().unwrap();
                assert_eq!(ours, !name.starts_with(SIBLING), "{told}\nanother environment: {talos:#}");
            }
        }
        self.assert_kept(CLUSTER, &self.kept);
        if self.sibling {
            self.assert_kept(SIBLING, &["sibling".to_owned()]);
        }
        self.assert_cordons();
    }

    /// As long as it is the same Node. One that was made again is another one.
    fn assert_cordons(&mut self) {
        let mut gone = Vec::new();
        for (name, uid) in &self.cordoned {
            let node = self.kubernetes(CLUSTER, "GET", &format!("/api/v1/nodes/{name}"), Value::Null);
            if node["object"]["metadata"]["uid"] != json!(uid) {
                gone.push(name.clone());
                continue;
            }
            let cordoned = node["object"]["spec"]["unschedulable"] == true;
            assert!(cordoned, "{}\nthe cordon of `{name}` is gone", self.told);
        }
        for name in gone {
            self.cordoned.remove(&name);
        }
    }

    /// The machines of the cluster, without those of its other environment.
    pub(super) fn machines(&self) -> Vec<Value> {
        let talos = self.lab.talos();
        let machines = talos["machines"].as_array().unwrap().iter();
        let other =
            |machine: &&Value| machine["hostname"].as_str().is_some_and(|name| name.starts_with(SIBLING));
        machines.filter(|machine| !other(machine)).cloned().collect()
    }

    /// Every node of the source is there, runs, votes if it should, and is ready in Kubernetes; and no other one.
    #[track_caller]
    pub(super) fn assert_is_wanted(&self) {
        let (told, shape, talos) = (&self.told, &self.shape, self.lab.talos());
        let machines = self.machines();
        assert_eq!(machines.len() as u32, shape.control_planes + shape.workers, "{told}\n{talos:#}");
        for machine in &machines {
            assert_eq!(machine["stage"], "running", "{told}\n{machine}");
            assert_eq!(machine["reboot-pending"], false, "{told}\n{machine}");
            assert_eq!(machine["runs"]["version"], json!(shape.talos), "{told}\n{machine}");
        }
        let clusters = talos["etcd-clusters"].as_array().unwrap();
        let own = clusters.iter().find(|cluster| cluster["cluster"] == keys().cluster_id.as_str());
        let members = own.unwrap_or_else(|| panic!("{told}\n{talos:#}"))["members"].as_array().unwrap();
        assert_eq!(members.len() as u32, shape.control_planes, "{told}\n{talos:#}");
        assert!(members.iter().all(|member| member["learner"] == false && member["up"] == true), "{told}");
        let listed = self.kubernetes(CLUSTER, "GET", "/api/v1/nodes", Value::Null);
        let nodes = listed["object"]["items"].as_array().unwrap();
        let mut names: Vec<&str> =
            nodes.iter().map(|node| node["metadata"]["name"].as_str().unwrap()).collect();
        let mut wanted: Vec<&str> = machines.iter().map(|one| one["hostname"].as_str().unwrap()).collect();
        names.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(names, wanted, "{told}\nthe nodes that Kubernetes knows");
        for node in nodes {
            let name = node["metadata"]["name"].as_str().unwrap();
            let cordoned = node["spec"]["unschedulable"] == true;
            assert_eq!(cordoned, self.cordoned.contains_key(name), "{told}\n`{name}`: {}", node["spec"]);
        }
    }

    /// The other environment is what its source says, too.
    pub(super) fn ends(&mut self) {
        if self.sibling {
            self.lab.run(&["-e", "prod", "apply", "--yes"]).ok();
            self.lab.run(&["-e", "prod", "plan", "--detailed-exitcode"]).ok();
            self.assert_invariants();
        }
        self.converge();
    }
}
