//! The simulated TrueNAS: calls over a WebSocket through the gateway.

use std::sync::Arc;

use futures::{SinkExt as _, StreamExt as _};
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use strata_sim::{TRUENAS_API_KEY, TRUENAS_HOST};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::client::{Site, tls};

struct Nas {
    socket: WebSocketStream<TlsStream<TcpStream>>,
    next: u64,
}

impl Nas {
    async fn connect(site: &Site) -> Self {
        let mut stream = TcpStream::connect(site.sim.gateway()).await.unwrap();
        stream.write_all(format!("CONNECT {TRUENAS_HOST}:443 HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        assert!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&head));
        // The certificate is that of the simulator, for the loopback.
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let stream = TlsConnector::from(Arc::new(tls())).connect(name, stream).await.unwrap();
        let url = format!("wss://{TRUENAS_HOST}/api/current");
        let (socket, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
        Self { socket, next: 0 }
    }

    async fn login(site: &Site) -> Self {
        let mut nas = Self::connect(site).await;
        assert_eq!(nas.call("auth.login_with_api_key", json!([TRUENAS_API_KEY])).await, Ok(json!(true)));
        nas
    }

    /// The result, or the error; none if the connection was cut.
    async fn try_call(&mut self, method: &str, params: Value) -> Option<Result<Value, Value>> {
        self.next += 1;
        let message = json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params });
        self.socket.send(Message::text(message.to_string())).await.ok()?;
        let Some(Ok(Message::Text(text))) = self.socket.next().await else { return None };
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(self.next)));
        Some(match answer.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(answer["result"].clone()),
        })
    }

    async fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.try_call(method, params).await.unwrap()
    }

    async fn names(&mut self) -> Vec<String> {
        let all = self.call("pool.dataset.query", json!([[], { "select": ["id"] }])).await.unwrap();
        all.as_array().unwrap().iter().map(|d| d["id"].as_str().unwrap().to_owned()).collect()
    }
}

#[tokio::test]
async fn a_key_opens_it() {
    let site = Site::single().await;
    let mut nas = Nas::connect(&site).await;
    assert_eq!(nas.call("core.ping", json!([])).await, Ok(json!("pong")));
    let refused = nas.call("pool.query", json!([])).await.unwrap_err();
    assert_eq!(
        (&refused["code"], &refused["data"]["errname"]),
        (&json!(-32001), &json!("ENOTAUTHENTICATED"))
    );
    assert_eq!(nas.call("auth.login_with_api_key", json!(["1-wrong"])).await, Ok(json!(false)));
    let login = json!([{ "mechanism": "API_KEY_PLAIN", "username": "truenas_admin", "api_key": "1-wrong" }]);
    assert_eq!(nas.call("auth.login_ex", login).await.unwrap()["response_type"], "AUTH_ERR");
    let login =
        json!([{ "mechanism": "API_KEY_PLAIN", "username": "truenas_admin", "api_key": TRUENAS_API_KEY }]);
    assert_eq!(nas.call("auth.login_ex", login).await.unwrap()["response_type"], "SUCCESS");
    assert_eq!(nas.call("pool.query", json!([])).await.unwrap()[0]["name"], "tank");
    assert!(
        nas.call("system.info", json!([])).await.unwrap()["version"].as_str().unwrap().starts_with("TrueNAS")
    );
    assert_eq!(nas.call("no.such", json!([])).await.unwrap_err()["code"], -32601);
}

#[tokio::test]
async fn datasets_are_made_changed_and_shown_as_the_original_does() {
    let site = Site::single().await;
    let mut nas = Nas::login(&site).await;
    let missing = nas.call("pool.dataset.create", json!([{ "name": "tank/k8s/homelab" }])).await.unwrap_err();
    assert_eq!((&missing["code"], &missing["message"]), (&json!(-32602), &json!("Invalid params")));
    let text = "[EINVAL] pool_dataset_create.name: Parent dataset (tank/k8s) does not exist.\n";
    assert_eq!((&missing["data"]["reason"], &missing["data"]["error"]), (&json!(text), &json!(22)));
    assert_eq!(missing["data"]["extra"][0][0], "pool_dataset_create.name");
    let made = json!([{ "name": "tank/k8s/homelab", "create_ancestors": true, "compression": "ZSTD", "quota": 1_u64 << 40, "comments": "for Flux" }]);
    let made = nas.call("pool.dataset.create", made).await.unwrap();
    assert_eq!(
        made["compression"],
        json!({ "parsed": "zstd", "rawvalue": "zstd", "value": "ZSTD", "source": "LOCAL", "source_info": null })
    );
    assert_eq!((&made["quota"]["parsed"], &made["quota"]["value"]), (&json!(1_u64 << 40), &json!("1 TiB")));
    assert_eq!(
        (&made["comments"]["value"], &made["mountpoint"]),
        (&json!("for Flux"), &json!("/mnt/tank/k8s/homelab"))
    );
    assert_eq!(nas.names().await, ["tank", "tank/k8s", "tank/k8s/homelab"]);
    let twice = nas.call("pool.dataset.create", json!([{ "name": "tank/k8s/homelab" }])).await.unwrap_err();
    assert!(twice["data"]["reason"].as_str().unwrap().contains("already exists"), "{twice}");
    let changed = json!(["tank/k8s/homelab", { "compression": "INHERIT", "quota": null, "readonly": "ON" }]);
    let changed = nas.call("pool.dataset.update", changed).await.unwrap();
    assert_eq!(
        (&changed["compression"]["source"], &changed["compression"]["source_info"]),
        (&json!("INHERITED"), &json!("tank"))
    );
    assert_eq!((&changed["quota"]["value"], &changed["readonly"]["parsed"]), (&json!(null), &json!(true)));
    for wrong in [json!({ "compression": "SNAPPY" }), json!({ "surprise": 1 }), json!({ "quota": 5 })] {
        let refused = nas.call("pool.dataset.update", json!(["tank/k8s", wrong])).await.unwrap_err();
        assert_eq!(refused["code"], -32602, "{refused}");
    }
    let none = nas.call("pool.dataset.get_instance", json!(["tank/none"])).await.unwrap_err();
    assert_eq!(none["data"]["reason"], "[ENOENT] None: PoolDataset tank/none does not exist");
    let tree = json!([[["id", "=", "tank"]], { "get": true, "extra": { "flat": false } }]);
    let tree = nas.call("pool.dataset.query", tree).await.unwrap();
    assert_eq!(tree["children"][0]["children"][0]["id"], "tank/k8s/homelab");
}

#[tokio::test]
async fn only_children_and_snapshots_stop_a_deletion() {
    let site = Site::single().await;
    let mut nas = Nas::login(&site).await;
    nas.call("pool.dataset.create", json!([{ "name": "tank/a/b", "create_ancestors": true }])).await.unwrap();
    let refused = nas.call("pool.dataset.delete", json!(["tank/a"])).await.unwrap_err();
    assert_eq!((&refused["data"]["errname"], &refused["code"]), (&json!("ENOTEMPTY"), &json!(-32001)));
    let before = nas.call("pool.dataset.get_instance", json!(["tank/a/b"])).await.unwrap()["used"]["parsed"]
        .as_u64()
        .unwrap();
    for change in [
        json!({ "file": { "dataset": "tank/a/b", "name": "data", "bytes": 1000 } }),
        json!({ "snapshot": { "dataset": "tank/a/b", "name": "auto" } }),
    ] {
        site.control("POST", "/_sim/change", json!({ "truenas": change })).await;
    }
    let after = nas.call("pool.dataset.get_instance", json!(["tank/a/b"])).await.unwrap();
    assert_eq!(after["used"]["parsed"].as_u64().unwrap(), before + 1000);
    let files = nas.call("filesystem.listdir", json!(["/mnt/tank/a/b"])).await.unwrap();
    assert_eq!(files[0]["name"], "data");
    let snapshots =
        nas.call("pool.snapshot.query", json!([[["dataset", "=", "tank/a/b"]], {}])).await.unwrap();
    assert_eq!(snapshots[0]["id"], "tank/a/b@auto");
    assert!(nas.call("pool.dataset.delete", json!(["tank/a/b"])).await.is_err(), "it has a snapshot");
    assert_eq!(
        nas.call("pool.dataset.delete", json!(["tank/a", { "recursive": true }])).await,
        Ok(json!(true))
    );
    assert_eq!(nas.names().await, ["tank"]);
}

#[tokio::test]
async fn faults_strike_calls_and_the_export_has_the_datasets() {
    let site = Site::single().await;
    let mut nas = Nas::login(&site).await;
    site.fault(json!({ "kind": "lost", "writes": true, "path": "/truenas/*" })).await;
    assert_eq!(nas.try_call("pool.dataset.create", json!([{ "name": "tank/a" }])).await, None);
    let mut nas = Nas::login(&site).await;
    assert_eq!(nas.names().await, ["tank", "tank/a"], "it was carried out");
    site.fault(json!({ "kind": "refuse", "path": "/truenas/*/pool.dataset.delete", "text": "pool is busy" }))
        .await;
    let refused = nas.call("pool.dataset.delete", json!(["tank/a"])).await.unwrap_err();
    assert_eq!(refused["data"]["reason"], "[EFAULT] pool is busy");
    for (status, name) in [(403, "EACCES"), (404, "ENOENT"), (409, "EEXIST"), (503, "EBUSY")] {
        site.fault(
            json!({ "kind": "refuse", "path": "/truenas/*/pool.query", "status": status, "text": "no" }),
        )
        .await;
        let refused = nas.call("pool.query", json!([])).await.unwrap_err();
        assert_eq!(refused["data"]["errname"], name);
    }
    site.fault(json!({ "kind": "cut", "method": "DELETE", "path": "/truenas/*" })).await;
    assert_eq!(nas.try_call("pool.dataset.delete", json!(["tank/a"])).await, None);
    let export = site.export().await;
    assert_eq!(export["truenas"]["datasets"][1]["name"], "tank/a");
    assert!(!export.to_string().contains(TRUENAS_API_KEY));
}
