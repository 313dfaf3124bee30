//! A small client of the API, and simulators to point it at.

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, Method};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use strata_sim::{Pace, Sim, SimOptions, WorldKind};

pub const TOKEN: &str = "root@pam!test=aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee";

/// What was answered.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub reason: String,
    pub body: Value,
}

impl Answer {
    pub fn data(&self) -> &Value {
        assert_eq!(self.status, 200, "{self:?}");
        &self.body["data"]
    }

    pub fn text(&self) -> &str {
        self.body["data"].as_str().unwrap_or_default()
    }

    /// The complaint about one parameter.
    pub fn error(&self, param: &str) -> &str {
        assert_eq!(self.status, 400, "{self:?}");
        self.body["errors"][param].as_str().unwrap_or_default()
    }
}

/// A simulator with a client that has its token.
pub struct Site {
    pub sim: Sim,
    pub http: Client,
    pub token: String,
}

pub fn tls() -> rustls::ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    let ca = include_bytes!("../../../strata-sim-core/src/cert/ca.pem");
    roots.add(CertificateDer::from_pem_slice(ca).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

pub fn http() -> Client {
    Client::builder().tls_backend_preconfigured(tls()).timeout(Duration::from_secs(60)).build().unwrap()
}

impl Site {
    pub async fn start(options: SimOptions) -> Self {
        let sim = Sim::start(options).await.unwrap();
        let token = sim.token().to_owned();
        Self { sim, http: http(), token }
    }

    /// One node, tasks that have ended when they are answered.
    pub async fn single() -> Self {
        Self::single_at(Pace::INSTANT).await
    }

    pub async fn single_at(pace: Pace) -> Self {
        Self::start(SimOptions {
            world: WorldKind::Single,
            token: Some(TOKEN.to_owned()),
            pace,
            ..SimOptions::default()
        })
        .await
    }

    /// Three nodes, as root.
    pub async fn cluster() -> Self {
        Self::start(SimOptions {
            token: Some(TOKEN.to_owned()),
            pace: Pace::INSTANT,
            ..SimOptions::default()
        })
        .await
    }

    pub async fn call(&self, method: &str, path: &str, params: &[(&str, &str)]) -> Answer {
        self.call_as(&self.token, method, path, params).await
    }

    pub async fn call_as(&self, token: &str, method: &str, path: &str, params: &[(&str, &str)]) -> Answer {
        self.try_call(token, method, path, params).await.unwrap()
    }

    /// An error is a connection that gave no answer.
    pub async fn try_call(
        &self,
        token: &str,
        method: &str,
        path: &str,
        params: &[(&str, &str)],
    ) -> reqwest::Result<Answer> {
        let url = format!("{}/api2/json{path}", self.sim.endpoint());
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let mut request =
            self.http.request(method.clone(), url).header("Authorization", format!("PVEAPIToken={token}"));
        request = if method == Method::GET || method == Method::DELETE {
            request.query(params)
        } else {
            request.form(params)
        };
        let response = request.send().await?;
        let status = response.status().as_u16();
        let reason = response
            .extensions()
            .get::<hyper::ext::ReasonPhrase>()
            .map(|phrase| String::from_utf8_lossy(phrase.as_bytes()).into_owned())
            .unwrap_or_default();
        let text = response.text().await?;
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Ok(Answer { status, reason, body })
    }

    pub async fn get(&self, path: &str) -> Value {
        self.call("GET", path, &[]).await.data().clone()
    }

    pub async fn post(&self, path: &str, params: &[(&str, &str)]) -> Answer {
        self.call("POST", path, params).await
    }

    pub async fn put(&self, path: &str, params: &[(&str, &str)]) -> Answer {
        self.call("PUT", path, params).await
    }

    pub async fn delete(&self, path: &str, params: &[(&str, &str)]) -> Answer {
        self.call("DELETE", path, params).await
    }

    /// Does something that starts a task and gives the task's exit status.
    pub async fn task(&self, method: &str, path: &str, params: &[(&str, &str)]) -> String {
        let answer = self.call(method, path, params).await;
        let upid = answer.data().as_str().unwrap_or_default().to_owned();
        self.wait(&upid).await
    }

    /// Waits for a task to end.
    pub async fn wait(&self, upid: &str) -> String {
        let node = upid.split(':').nth(1).unwrap();
        loop {
            let status = self.get(&format!("/nodes/{node}/tasks/{upid}/status")).await;
            if status["status"] == "stopped" {
                return status["exitstatus"].as_str().unwrap().to_owned();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub async fn control(&self, method: &str, path: &str, body: Value) -> Value {
        let url = format!("{}{path}", self.sim.control());
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let mut request = self.http.request(method, url);
        if !body.is_null() {
            request = request.json(&body);
        }
        request.send().await.unwrap().json().await.unwrap()
    }

    pub async fn fault(&self, order: Value) -> u64 {
        self.control("POST", "/_sim/faults", order).await["id"].as_u64().unwrap()
    }

    pub async fn export(&self) -> Value {
        self.control("GET", "/_sim/export", json!(null)).await
    }
}
