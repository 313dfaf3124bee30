//! Every namespace gets its service account and the cluster's certificate; one that terminates loses all it has, then itself.

use serde_json::json;

use super::super::object::{is_terminating, name};
use crate::cluster::{Cluster, Moment};
use crate::delete::remove;
use crate::resource::{Resource, of};

pub fn reconcile(cluster: &mut Cluster, moment: &Moment) {
    let namespaces = of("namespaces");
    let all: Vec<(String, String, bool)> = cluster
        .store
        .list(&namespaces.prefix())
        .map(|(key, object)| (key.to_owned(), name(object).to_owned(), is_terminating(object)))
        .collect();
    for (key, name, terminating) in all {
        if terminating {
            terminate(cluster, &key, &name, moment);
            continue;
        }
        let account = json!({ "metadata": { "name": "default", "namespace": name } });
        cluster.ensure(&of("serviceaccounts"), account, moment);
        let authority = json!({
            "metadata": { "name": "kube-root-ca.crt", "namespace": name },
            "data": { "ca.crt": cluster.facts.ca_pem },
        });
        cluster.ensure(&of("configmaps"), authority, moment);
    }
}

fn terminate(cluster: &mut Cluster, key: &str, name: &str, moment: &Moment) {
    if !cluster.is_due(&format!("namespace/{name}"), 1.0, moment) {
        return;
    }
    let resources: Vec<Resource> = cluster.resources().filter(|r| r.namespaced && !r.is_review()).collect();
    let mut empty = true;
    for resource in resources {
        let prefix = format!("{}{name}/", resource.prefix());
        let objects: Vec<String> = cluster.store.list(&prefix).map(|(key, _)| key.to_owned()).collect();
        for object in objects {
            empty &= remove(cluster, &resource, &object, &json!({}), moment).is_none();
        }
    }
    if empty {
        cluster.store.remove(key);
    }
}
