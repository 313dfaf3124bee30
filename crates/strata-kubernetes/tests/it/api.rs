//! A few kinds of the API, kept in memory: enough to see what the client asks for and to answer as the real one does.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use strata_kubernetes::{KubeClient, KubeOptions, Progress};
use strata_net::{Clock, DialMap, RetryPolicy};
use strata_secret::SecretString;

use crate::server::{Asked, Server, Told, start};

pub(crate) struct Api {
    pub(crate) server: Server,
    pub(crate) state: Arc<Mutex<State>>,
}

/// Something that happens before a request is looked at.
type Hook = Box<dyn FnMut(&Asked, &mut State) -> Option<(u16, Value)> + Send>;

#[derive(Default)]
pub(crate) struct State {
    /// By path.
    pub(crate) objects: BTreeMap<String, Value>,
    /// `group/version` → (plural, kind, namespaced).
    pub(crate) kinds: BTreeMap<String, Vec<(String, String, bool)>>,
    /// `METHOD path`
    pub(crate) log: Vec<String>,
    /// Answers for the next requests, whatever they are.
    pub(crate) faults: VecDeque<(u16, Value)>,
    pub(crate) last: Option<Asked>,
    pub(crate) hook: Option<Hook>,
}

impl Api {
    pub(crate) async fn start() -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        for (group, plural, kind, namespaced) in [
            ("v1", "namespaces", "Namespace", false),
            ("v1", "secrets", "Secret", true),
            ("v1", "configmaps", "ConfigMap", true),
            ("v1", "pods", "Pod", true),
            ("v1", "nodes", "Node", false),
            ("apps/v1", "deployments", "Deployment", true),
            ("apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", false),
        ] {
            state.lock().unwrap().add_kind(group, plural, kind, namespaced);
        }
        let shared = state.clone();
        let server = start(true, move |asked| shared.lock().unwrap().answer(asked)).await;
        Self { server, state }
    }

    pub(crate) fn options(&self) -> KubeOptions {
        let server = &self.server;
        let key = SecretString::new(server.key.clone());
        let mut dial = DialMap::new();
        dial.insert("192.0.2.40:6443", format!("127.0.0.1:{}", server.port));
        KubeOptions {
            dial,
            clock: Arc::new(Quick::default()),
            retry: RetryPolicy { attempts: 5, ..RetryPolicy::default() },
            ..KubeOptions::new("https://192.0.2.40:6443", server.ca.clone(), server.certificate.clone(), key)
        }
    }

    pub(crate) fn client(&self) -> KubeClient {
        KubeClient::new(self.options()).unwrap()
    }

    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap())
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.with(|state| state.log.clone())
    }
}

impl State {
    pub(crate) fn add_kind(&mut self, group: &str, plural: &str, kind: &str, namespaced: bool) {
        let entry = (plural.to_owned(), kind.to_owned(), namespaced);
        self.kinds.entry(group.to_owned()).or_default().push(entry);
    }

    fn answer(&mut self, asked: Asked) -> Told {
        self.log.push(format!("{} {}", asked.method, asked.path));
        let mut hook = self.hook.take();
        let hooked = hook.as_mut().and_then(|hook| hook(&asked, self));
        self.hook = hook;
        let (status, body) = match (hooked, self.faults.pop_front()) {
            (Some(told), _) | (None, Some(told)) => told,
            (None, None) => self.route(&asked),
        };
        self.last = Some(asked);
        let body = match body {
            Value::String(text) => text.into_bytes(),
            value => value.to_string().into_bytes(),
        };
        Told { status, header: None, body }
    }

    fn route(&mut self, asked: &Asked) -> (u16, Value) {
        let path = asked.path.as_str();
        match (asked.method.as_str(), path) {
            ("GET", "/readyz") => return (200, json!("ok")),
            ("GET", "/version") => return (200, json!({"gitVersion": "v1.36.3"})),
            _ => {}
        }
        let group = path.strip_prefix("/apis/").or_else(|| path.strip_prefix("/api/")).unwrap_or_default();
        if let Some(kinds) = self.kinds.get(group) {
            let list: Vec<Value> = kinds.iter().map(|(plural, kind, namespaced)| json!({"name": plural, "kind": kind, "namespaced": namespaced})).collect();
            return (200, json!({"kind": "APIResourceList", "resources": list}));
        }
        let plurals: Vec<&str> = self.kinds.values().flatten().map(|(plural, ..)| plural.as_str()).collect();
        let is_collection = plurals.iter().any(|plural| path.ends_with(&format!("/{plural}")));
        match asked.method.as_str() {
            "GET" if is_collection => self.list(asked),
            "GET" => self.objects.get(path).map_or_else(missing, |object| (200, object.clone())),
            "DELETE" => self.objects.remove(path).map_or_else(missing, |object| (200, object)),
            "PATCH" => self.patch(asked),
            "POST" if path.ends_with("/eviction") => {
                let pod = path.trim_end_matches("/eviction");
                self.objects
                    .remove(pod)
                    .map_or_else(missing, |_| (201, json!({"kind": "Status", "status": "Success"})))
            }
            _ => (405, json!({})),
        }
    }

    /// Two on a page.
    fn list(&self, asked: &Asked) -> (u16, Value) {
        let plural = asked.path.rsplit('/').next().unwrap();
        let root = asked.path.split("/namespaces/").next().unwrap().trim_end_matches(&format!("/{plural}"));
        let own = |path: &str| {
            path.starts_with(root)
                && path.rsplit('/').nth(1) == Some(plural)
                && (!asked.path.contains("/namespaces/") || path.starts_with(&asked.path))
        };
        let all: Vec<&Value> =
            self.objects.iter().filter(|(path, _)| own(path)).map(|(_, object)| object).collect();
        let from: usize = asked
            .query
            .split('&')
            .find_map(|pair| pair.strip_prefix("continue="))
            .map_or(0, |n| n.parse().unwrap());
        let next = if from + 2 < all.len() { (from + 2).to_string() } else { String::new() };
        let items: Vec<Value> = all
            .into_iter()
            .skip(from)
            .take(2)
            .cloned()
            .map(|mut item| {
                let map = item.as_object_mut().unwrap();
                map.remove("kind");
                map.remove("apiVersion");
                item
            })
            .collect();
        (200, json!({"kind": "List", "metadata": {"continue": next, "resourceVersion": "7"}, "items": items}))
    }

    fn patch(&mut self, asked: &Asked) -> (u16, Value) {
        let wanted: Value = serde_json::from_slice(&asked.body).unwrap();
        let apply = asked.content_type == "application/apply-patch+yaml";
        let Some(object) = self.objects.get_mut(&asked.path) else {
            if !apply {
                return missing();
            }
            self.objects.insert(asked.path.clone(), wanted.clone());
            return (201, wanted);
        };
        merge(object, &wanted);
        (200, object.clone())
    }
}

pub(crate) fn missing() -> (u16, Value) {
    (
        404,
        json!({"kind": "Status", "status": "Failure", "reason": "NotFound", "message": "not found", "code": 404}),
    )
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                if value.is_null() {
                    into.remove(key);
                } else {
                    merge(into.entry(key.clone()).or_insert(Value::Null), value);
                }
            }
        }
        (into, from) => *into = from.clone(),
    }
}

/// A clock on which sleeping takes no time.
#[derive(Default)]
pub(crate) struct Quick(Mutex<Duration>);

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

pub(crate) fn silent(_: &Progress<'_>) {}
