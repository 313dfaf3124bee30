//! A TrueNAS with one pool, kept in memory: TLS, WebSocket, JSON-RPC, and what a test wants to go wrong.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::{SinkExt, StreamExt};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use strata_net::{Clock, DialMap, TlsTrust};
use strata_secret::SecretString;
use strata_truenas::{TrueNasClient, TrueNasOptions};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};

pub(crate) const KEY: &str = "1-TheKeyOfTheStorageServer0000";

pub(crate) struct Nas {
    port: u16,
    ca: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    datasets: BTreeMap<String, Value>,
    /// What a test says of a dataset besides.
    changes: BTreeMap<String, Value>,
    log: Vec<String>,
    failures: VecDeque<Value>,
    cut: Option<String>,
    refuse: bool,
}

impl Nas {
    pub(crate) async fn start() -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["192.0.2.20".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let config =
            ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(vec![made.cert.der().clone()], key)
                .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State::default()));
        let (acceptor, shared) = (TlsAcceptor::from(Arc::new(config)), state.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(acceptor.clone(), stream, shared.clone()));
            }
        });
        Self { port, ca: made.cert.pem(), state }
    }

    pub(crate) fn options(&self) -> TrueNasOptions {
        let mut dial = DialMap::new();
        dial.insert("192.0.2.20:443", format!("127.0.0.1:{}", self.port));
        TrueNasOptions {
            dial,
            tls: TlsTrust::Ca(self.ca.clone().into_bytes()),
            clock: Arc::new(Quick::default()),
            ..TrueNasOptions::new("https://192.0.2.20", SecretString::from(KEY))
        }
    }

    pub(crate) fn client(&self) -> TrueNasClient {
        TrueNasClient::new(self.options()).unwrap()
    }

    pub(crate) fn calls(&self, method: &str) -> usize {
        self.state.lock().unwrap().log.iter().filter(|called| *called == method).count()
    }

    pub(crate) fn change(&self, dataset: &str, change: Value) {
        self.state.lock().unwrap().changes.insert(dataset.to_owned(), change);
    }

    pub(crate) fn fail_next(&self, error: Value) {
        self.state.lock().unwrap().failures.push_back(error);
    }

    /// Drops the connection when this method is called, once.
    pub(crate) fn cut_next(&self, method: &str) {
        self.state.lock().unwrap().cut = Some(method.to_owned());
    }

    pub(crate) fn refuse_path(&self) {
        self.state.lock().unwrap().refuse = true;
    }
}

async fn serve(acceptor: TlsAcceptor, stream: TcpStream, state: Arc<Mutex<State>>) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let refuse = state.lock().unwrap().refuse;
    #[allow(clippy::result_large_err, reason = "the signature is the library's")]
    let check = |request: &Request, response: Response| -> Result<Response, ErrorResponse> {
        assert_eq!(request.uri().path(), "/api/current");
        if refuse {
            let mut no = ErrorResponse::new(None);
            *no.status_mut() = tokio_tungstenite::tungstenite::http::StatusCode::NOT_FOUND;
            return Err(no);
        }
        Ok(response)
    };
    let Ok(mut socket) = tokio_tungstenite::accept_hdr_async(stream, check).await else { return };
    let mut known = false;
    while let Some(Ok(Message::Text(text))) = socket.next().await {
        let call: Value = serde_json::from_str(text.as_str()).unwrap();
        let method = call["method"].as_str().unwrap().to_owned();
        let answer = {
            let mut state = state.lock().unwrap();
            state.log.push(method.clone());
            if state.cut.as_deref() == Some(method.as_str()) {
                state.cut = None;
                return;
            }
            state.answer(&method, &call["params"], &mut known)
        };
        let mut message = json!({"jsonrpc": "2.0", "id": call["id"]});
        match answer {
            Ok(result) => message["result"] = result,
            Err(error) => message["error"] = error,
        }
        let notification = json!({"jsonrpc": "2.0", "method": "collection_update", "params": {}});
        for message in [notification, message] {
            socket.send(Message::text(message.to_string())).await.unwrap();
        }
    }
}

fn error(errname: &str, reason: &str) -> Value {
    json!({"code": -32001, "message": "Method call error", "data": {"errname": errname, "reason": reason}})
}

impl State {
    fn answer(&mut self, method: &str, params: &Value, known: &mut bool) -> Result<Value, Value> {
        match method {
            "auth.login_with_api_key" => {
                *known = params[0] == KEY;
                return Ok(json!(*known));
            }
            "auth.login_ex" => {
                *known = params[0]["api_key"] == KEY && params[0]["username"] == "truenas_admin";
                return Ok(json!({"response_type": if *known { "SUCCESS" } else { "AUTH_ERR" }}));
            }
            _ if !*known => return Err(error("ENOTAUTHENTICATED", "Not authenticated")),
            _ => {}
        }
        if let Some(failure) = self.failures.pop_front() {
            return Err(failure);
        }
        let id = params[0].as_str().unwrap_or_default().to_owned();
        let extra = |id: &str| self.changes.get(id).cloned().unwrap_or_default();
        match method {
            "core.ping" => Ok(json!("pong")),
            "system.version" => Ok(json!("TrueNAS-25.10.2")),
            "pool.query" => Ok(json!([{"name": "tank"}])
                .as_array()
                .unwrap()
                .iter()
                .filter(|pool| pool["name"] == params[0][0][2])
                .cloned()
                .collect()),
            "pool.dataset.query" => Ok(self.query(&params[0][0])),
            "pool.dataset.create" => self.create(&params[0]),
            "pool.dataset.update" => match self.datasets.get_mut(&id) {
                Some(dataset) => {
                    for (key, value) in params[1].as_object().unwrap() {
                        match key.as_str() {
                            "user_properties_update" => set_user_properties(dataset, value),
                            key => dataset[key] = property(value),
                        }
                    }
                    Ok(json!({}))
                }
                None => Err(error("ENOENT", "PoolDataset does not exist")),
            },
            "pool.dataset.delete" => {
                assert_eq!(params[1], json!({"recursive": false, "force": false}));
                self.datasets
                    .remove(&id)
                    .map(|_| json!(true))
                    .ok_or_else(|| error("ENOENT", "does not exist"))
            }
            // The older name of the call, to see that it is found.
            "zfs.snapshot.query" => {
                Ok(extra(params[0][0][2].as_str().unwrap()).get("snapshots").cloned().unwrap_or(json!(0)))
            }
            "pool.dataset.attachments" => Ok(extra(&id).get("attachments").cloned().unwrap_or(json!([]))),
            "filesystem.listdir" => {
                Ok(extra(id.trim_start_matches("/mnt/")).get("files").cloned().unwrap_or(json!([])))
            }
            _ => Err(json!({"code": -32601, "message": "Method does not exist"})),
        }
    }

    fn query(&self, filter: &Value) -> Value {
        let wanted = filter[2].as_str().unwrap();
        let mut found = Vec::new();
        for (id, dataset) in &self.datasets {
            let extra = self.changes.get(id).cloned().unwrap_or_default();
            let matches = if filter[1] == "=" { id == wanted } else { id.starts_with(wanted) };
            if matches {
                let mut dataset = dataset.clone();
                dataset["locked"] = extra.get("locked").cloned().unwrap_or(json!(false));
                if let Some(used) = extra.get("used") {
                    dataset["usedbydataset"] = json!({"parsed": used, "rawvalue": used.to_string()});
                }
                if let Some(mountpoint) = extra.get("mountpoint") {
                    dataset["mountpoint"] = mountpoint.clone();
                }
                if extra.get("volume").is_some() {
                    dataset["type"] = json!("VOLUME");
                }
                found.push(dataset);
            }
            let child = format!("{id}/pvc");
            if extra.get("children").is_some() && filter[1] == "^" && child.starts_with(wanted) {
                found.push(json!({"id": child}));
            }
        }
        Value::Array(found)
    }

    fn create(&mut self, data: &Value) -> Result<Value, Value> {
        let name = data["name"].as_str().unwrap();
        if self.datasets.contains_key(name) {
            let extra = json!([["pool_dataset_create.name", format!("Path /mnt/{name} already exists"), 22]]);
            return Err(
                json!({"code": -32602, "message": "Invalid params", "data": {"errname": "EINVAL", "reason": "x", "extra": extra}}),
            );
        }
        assert_eq!((&data["type"], &data["create_ancestors"]), (&json!("FILESYSTEM"), &json!(true)));
        let ends: Vec<usize> =
            name.match_indices('/').map(|(at, _)| at).skip(1).chain([name.len()]).collect();
        for end in ends {
            let id = &name[..end];
            self.datasets.entry(id.to_owned()).or_insert_with(|| {
                json!({"id": id, "name": id, "type": "FILESYSTEM", "mountpoint": format!("/mnt/{id}"), "user_properties": {},
                    "usedbydataset": {"parsed": 98304, "rawvalue": "98304", "value": "96K", "source": "NONE"}})
            });
        }
        let dataset = self.datasets.get_mut(name).unwrap();
        for (key, value) in data.as_object().unwrap() {
            match key.as_str() {
                "name" | "type" | "create_ancestors" => {}
                "user_properties" => set_user_properties(dataset, value),
                key => dataset[key] = property(value),
            }
        }
        Ok(json!({}))
    }
}

fn set_user_properties(dataset: &mut Value, pairs: &Value) {
    for pair in pairs.as_array().unwrap() {
        dataset["user_properties"][pair["key"].as_str().unwrap()] = property(&pair["value"]);
    }
}

fn property(value: &Value) -> Value {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    json!({"parsed": value, "rawvalue": text.to_lowercase(), "value": text, "source": "LOCAL"})
}

/// A clock on which sleeping takes no time.
#[derive(Default)]
struct Quick(Mutex<Duration>);

#[async_trait]
impl Clock for Quick {
    fn monotonic(&self) -> Duration {
        *self.0.lock().unwrap()
    }
    fn unix(&self) -> i64 {
        0
    }
    async fn sleep(&self, duration: Duration) {
        *self.0.lock().unwrap() += duration;
        tokio::task::yield_now().await;
    }
}
