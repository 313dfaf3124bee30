//! Custom resource definitions: their names are accepted, then their types are served. A definition takes its objects with it.

use serde_json::json;

use super::super::object::{
    finalizers, has_condition, is_terminating, member, metadata, name, set_condition, text,
};
use crate::cluster::{Cluster, Moment};
use crate::delete::remove;
use crate::resource::{Resource, defined_by, of};

/// Seconds from creation to being served.
const ESTABLISH: f64 = 0.5;

pub fn reconcile(cluster: &mut Cluster, moment: &Moment) {
    let definitions = of("customresourcedefinitions");
    let all: Vec<_> =
        cluster.store.list(&definitions.prefix()).map(|(key, d)| (key.to_owned(), d.clone())).collect();
    for (key, definition) in all {
        if is_terminating(&definition) {
            terminate(cluster, &key, defined_by(&definition).first(), moment);
            continue;
        }
        if has_condition(&definition, "Established", "True") {
            continue;
        }
        if !cluster.is_due(&format!("establish/{}", name(&definition)), ESTABLISH, moment) {
            continue;
        }
        let now = moment.text();
        cluster.change(&key, |object| {
            set_condition(object, "NamesAccepted", "True", "NoConflicts", "no conflicts found", &now);
            let message = "the initial names have been accepted";
            set_condition(object, "Established", "True", "InitialNamesAccepted", message, &now);
            let names = object["spec"]["names"].clone();
            let stored = super::super::object::list(object, "/spec/versions")
                .iter()
                .filter(|v| v["storage"] == true)
                .map(|v| json!(text(v, "/name")))
                .collect::<Vec<_>>();
            let status = member(object, "status");
            status.insert("acceptedNames".to_owned(), names);
            status.insert("storedVersions".to_owned(), json!(stored));
            if finalizers(object).is_empty() {
                let finalizer = json!(["customresourcecleanup.apiextensions.k8s.io"]);
                metadata(object).insert("finalizers".to_owned(), finalizer);
            }
        });
    }
}

/// Its objects first, then the definition.
fn terminate(cluster: &mut Cluster, key: &str, defined: Option<&Resource>, moment: &Moment) {
    if let Some(resource) = defined {
        let objects: Vec<String> =
            cluster.store.list(&resource.prefix()).map(|(key, _)| key.to_owned()).collect();
        for object in &objects {
            remove(cluster, resource, object, &json!({}), moment);
        }
        if cluster.store.list(&resource.prefix()).next().is_some() {
            return;
        }
    }
    cluster.store.remove(key);
}
