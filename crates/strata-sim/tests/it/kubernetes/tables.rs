//! Objects in rows, for clients that print them; and bodies in protobuf, from clients that write no manifest.

use serde_json::{Value, json};

use super::client::{Kube, deployment};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

async fn table(kube: &Kube, path: &str) -> Value {
    let response = kube.request("GET", path).header("Accept", TABLE).send().await.unwrap();
    assert_eq!(response.status(), 200);
    response.json().await.unwrap()
}

/// The cells of a row by the names of their columns.
fn cell<'t>(table: &'t Value, row: &str, column: &str) -> &'t Value {
    let columns = table["columnDefinitions"].as_array().unwrap();
    let number = columns
        .iter()
        .position(|own| own["name"] == column)
        .unwrap_or_else(|| panic!("no {column}: {table}"));
    let rows = table["rows"].as_array().unwrap();
    let row = rows.iter().find(|own| own["cells"][0] == row).unwrap_or_else(|| panic!("no {row}: {table}"));
    &row["cells"][number]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_and_pods_are_rows() {
    let kube = Kube::start().await;
    let nodes = table(&kube, "/api/v1/nodes").await;
    assert_eq!(nodes["kind"], "Table");
    assert_eq!(cell(&nodes, "cp-1", "Status"), "Ready");
    assert_eq!(cell(&nodes, "cp-1", "Roles"), "control-plane");
    assert_eq!(cell(&nodes, "worker-1", "Version"), "v1.36.3");
    assert_eq!(nodes["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    kube.merge("/api/v1/nodes/worker-1", json!({ "spec": { "unschedulable": true } })).await;
    let one = table(&kube, "/api/v1/nodes/worker-1?includeObject=Object").await;
    assert_eq!(cell(&one, "worker-1", "Status"), "Ready,SchedulingDisabled");
    assert_eq!(one["rows"][0]["object"]["kind"], "Node");
    kube.post("/apis/apps/v1/namespaces/default/deployments", deployment("web", 2)).await;
    let pods = table(&kube, "/api/v1/namespaces/default/pods").await;
    let rows = pods["rows"].as_array().unwrap();
    assert!(
        rows.len() == 2 && rows.iter().all(|row| row["cells"][1] == "1/1" && row["cells"][2] == "Running"),
        "{pods}"
    );
    let deployments = table(&kube, "/apis/apps/v1/namespaces/default/deployments").await;
    assert_eq!(cell(&deployments, "web", "Ready"), "2/2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn definitions_say_which_columns_their_objects_have() {
    let kube = Kube::start().await;
    let columns = json!([{ "name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status" }]);
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "things.example.org" },
        "spec": {
            "group": "example.org", "scope": "Namespaced",
            "names": { "plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList" },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "additionalPrinterColumns": columns,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
            }],
        },
    });
    let (status, made) =
        kube.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    assert_eq!(status, 201, "{made}");
    let things = "/apis/example.org/v1/namespaces/default/things";
    let thing = json!({
        "apiVersion": "example.org/v1", "kind": "Thing", "metadata": { "name": "a" },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    });
    let (status, made) = kube.post(things, thing).await;
    assert_eq!(status, 201, "{made}");
    assert_eq!(cell(&table(&kube, things).await, "a", "Ready"), "True");
}

/// A field of bytes in protobuf.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, u8::try_from(content.len()).unwrap()], content].concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_comes_in_protobuf() {
    let kube = Kube::start().await;
    let kind = [field(1, b"v1"), field(2, b"Namespace")].concat();
    let object = field(1, &field(1, b"foo"));
    let body = [b"k8s\0".to_vec(), field(1, &kind), field(2, &object)].concat();
    let send = async |body: Vec<u8>| {
        let request = kube.request("POST", "/api/v1/namespaces");
        let request = request.header("Content-Type", "application/vnd.kubernetes.protobuf").body(body);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(send(body).await, 201);
    assert!(kube.names("/api/v1/namespaces").await.contains(&"foo".to_owned()));
    assert_eq!(send(b"k8s\0nonsense".to_vec()).await, 415);
}
