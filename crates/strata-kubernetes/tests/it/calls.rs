//! Reaching the server: endpoints, certificates, retries, discovery, lists, watches.

use serde_json::json;
use strata_kubernetes::{Deletion, KubeClient, KubeOptions, ObjectRef, Selector, Trouble, WatchEvent};
use strata_net::WritePermit;
use strata_secret::SecretString;

use crate::api::Api;

fn config_map(name: &str) -> ObjectRef {
    ObjectRef::namespaced("v1", "ConfigMap", "a", name)
}

#[tokio::test]
async fn asks_for_version_and_readiness() {
    let api = Api::start().await;
    let client = api.client();
    assert_eq!(client.version().await.unwrap().git_version, "v1.36.3");
    client.ready().await.unwrap();
    api.with(|state| {
        state.faults.push_back((500, json!("[-]etcd failed: reason withheld\nhealthz check failed")))
    });
    let error = client.ready().await.unwrap_err();
    assert_eq!(error.trouble(), Trouble::Unavailable);
    assert_eq!(
        error.to_string(),
        "cannot ask whether the API is ready at `192.0.2.40:6443`: HTTP 500 Internal Server Error: [-]etcd failed: reason withheld"
    );
}

#[tokio::test]
async fn a_certificate_of_another_cluster_is_told_apart() {
    let (api, other) = (Api::start().await, Api::start().await);
    // The server is not of our cluster.
    let stranger = KubeOptions { tls: other.options().tls, ..api.options() };
    let error = KubeClient::new(stranger).unwrap().version().await.unwrap_err();
    assert_eq!(error.trouble(), Trouble::Untrusted, "{error}");
    assert!(error.hint().unwrap().contains("CA"), "{error:?}");
    // We are not of the server's cluster.
    let stranger = KubeOptions { identity: other.options().identity, ..api.options() };
    assert!(KubeClient::new(stranger).unwrap().version().await.is_err());
    assert!(api.log().is_empty());
    let wrong =
        KubeOptions::new("https://192.0.2.40:6443", "no pem", "no pem", SecretString::from("hunter2-key"));
    let error = KubeClient::new(wrong).err().unwrap();
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

#[tokio::test]
async fn the_next_endpoint_is_tried_if_one_does_not_answer() {
    let api = Api::start().await;
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let mut options = api.options();
    options.dial.insert("192.0.2.41:6443", closed.to_string());
    options.endpoints = vec!["https://192.0.2.41:6443".to_owned(), "https://192.0.2.40:6443".to_owned()];
    let client = KubeClient::new(options.clone()).unwrap();
    client.version().await.unwrap();
    assert_eq!(client.endpoint(), "192.0.2.40:6443");
    options.endpoints.truncate(1);
    let error = KubeClient::new(options).unwrap().version().await.unwrap_err();
    assert_eq!(error.trouble(), Trouble::Unreachable);
    assert!(
        error.to_string().starts_with("cannot read the version at `192.0.2.41:6443`: cannot connect"),
        "{error}"
    );
}

#[tokio::test]
async fn what_can_be_sent_twice_is() {
    let api = Api::start().await;
    let client = api.client();
    api.with(|state| state.faults.extend([(503, json!("")), (429, json!({"message": "too many requests"}))]));
    assert_eq!(client.version().await.unwrap().git_version, "v1.36.3");
    assert_eq!(api.log(), ["GET /version"; 3]);
    // What is wrong stays wrong.
    api.with(|state| state.faults.push_back((403, json!({"message": "no", "reason": "Forbidden"}))));
    let error = client.version().await.unwrap_err();
    assert_eq!((error.trouble(), error.http_status()), (Trouble::Refused, Some(403)));
    assert_eq!(api.log().len(), 4);
}

#[tokio::test]
async fn an_object_is_there_or_not_and_goes() {
    let api = Api::start().await;
    let client = api.client();
    assert!(client.get(&config_map("x")).await.unwrap().is_none());
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "a", "uid": "u1"}});
    api.with(|state| state.objects.insert("/api/v1/namespaces/a/configmaps/x".to_owned(), object));
    assert_eq!(client.get(&config_map("x")).await.unwrap().unwrap().uid(), Some("u1"));
    assert_eq!(
        client.delete(&WritePermit::unbound(), &config_map("x"), Some("u1")).await.unwrap(),
        Deletion::Begun
    );
    let sent = api.with(|state| String::from_utf8(state.last.take().unwrap().body).unwrap());
    assert!(sent.contains(r#""preconditions":{"uid":"u1"}"#), "{sent}");
    assert_eq!(
        client.delete(&WritePermit::unbound(), &config_map("x"), Some("u1")).await.unwrap(),
        Deletion::AlreadyGone
    );
}

#[tokio::test]
async fn kinds_are_found_when_they_come() {
    let api = Api::start().await;
    let client = api.client();
    let source = ObjectRef::namespaced("source.toolkit.fluxcd.io/v1", "GitRepository", "a", "b");
    assert!(client.get(&source).await.unwrap().is_none());
    assert!(!client.has_kind(&source.api_version, &source.kind).await.unwrap());
    let error = client.patch(&WritePermit::unbound(), &source, &json!({})).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot find the kind `GitRepository` of `source.toolkit.fluxcd.io/v1` at `192.0.2.40:6443`: the server has no such kind"
    );
    api.with(|state| state.add_kind("source.toolkit.fluxcd.io/v1", "gitrepositories", "GitRepository", true));
    assert!(client.has_kind(&source.api_version, &source.kind).await.unwrap());
    assert!(client.get(&source).await.unwrap().is_none());
    assert_eq!(
        api.log().last().unwrap(),
        "GET /apis/source.toolkit.fluxcd.io/v1/namespaces/a/gitrepositories/b"
    );
}

#[tokio::test]
async fn lists_are_read_to_their_end() {
    let api = Api::start().await;
    api.with(|state| {
        for index in 0..5 {
            let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("n{index}"), "uid": "u"}});
            state.objects.insert(format!("/api/v1/nodes/n{index}"), node);
        }
    });
    let names: Vec<String> = api.client().nodes().await.unwrap().into_iter().map(|node| node.name).collect();
    assert_eq!(names, ["n0", "n1", "n2", "n3", "n4"]);
}

#[tokio::test]
async fn nodes_are_read_and_closed() {
    let api = Api::start().await;
    let client = api.client();
    let node = json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "cp-1", "uid": "u", "labels": {"node-role.kubernetes.io/control-plane": ""}},
        "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
        "status": {"conditions": [{"type": "Ready", "status": "False", "message": "network plugin not ready"}],
            "addresses": [{"type": "InternalIP", "address": "192.0.2.41"}, {"type": "Hostname", "address": "cp-1"}],
            "nodeInfo": {"kubeletVersion": "v1.36.3", "bootID": "b"}}});
    api.with(|state| state.objects.insert("/api/v1/nodes/cp-1".to_owned(), node));
    let node = client.node("cp-1").await.unwrap().unwrap();
    assert!(node.is_control_plane() && !node.ready && !node.cordoned);
    assert_eq!(
        (node.addresses.as_slice(), node.message.as_deref()),
        (&["192.0.2.41".to_owned()][..], Some("network plugin not ready"))
    );
    client.cordon(&WritePermit::unbound(), "cp-1").await.unwrap();
    assert!(client.node("cp-1").await.unwrap().unwrap().cordoned);
    client.uncordon(&WritePermit::unbound(), "cp-1").await.unwrap();
    assert!(!client.node("cp-1").await.unwrap().unwrap().cordoned);
    assert_eq!(
        client.delete_node(&WritePermit::unbound(), "cp-1", Some("u")).await.unwrap(),
        Deletion::Begun
    );
    assert!(client.node("cp-1").await.unwrap().is_none());
}

#[tokio::test]
async fn a_watch_tells_what_happens() {
    let api = Api::start().await;
    let client = api.client();
    let object = |version: &str| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "resourceVersion": version}});
    let lines = [
        json!({"type": "ADDED", "object": object("1")}),
        json!({"type": "BOOKMARK", "object": object("2")}),
        json!({"type": "DELETED", "object": object("3")}),
        json!({"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old resource version"}}),
    ];
    let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
    api.with(|state| {
        state.hook =
            Some(Box::new(move |asked, _| asked.query.contains("watch=true").then(|| (200, json!(body)))));
    });
    let mut watch = client.watch("v1", "Node", &Selector::all(), Some("0"), 30).await.unwrap();
    assert!(matches!(watch.next().await.unwrap(), Some(WatchEvent::Added(object)) if object.name() == "a"));
    assert!(matches!(watch.next().await.unwrap(), Some(WatchEvent::Bookmark(version)) if version == "2"));
    assert!(matches!(watch.next().await.unwrap(), Some(WatchEvent::Deleted(_))));
    let error = watch.next().await.unwrap_err();
    assert!(error.to_string().ends_with("too old resource version"), "{error}");
    assert!(watch.next().await.unwrap().is_none());
}
