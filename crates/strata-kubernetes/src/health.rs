//! Whether the API is there and well, and which version it has.

use http::Method;
use serde_json::Value;
use strata_net::Request;

use crate::{KubeClient, KubeError, Patience, Progress, Trouble};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerVersion {
    /// `v1.36.3`
    pub git_version: String,
}

impl KubeClient {
    pub async fn version(&self) -> Result<ServerVersion, KubeError> {
        let action = "read the version";
        let answer = self.read(action, Request::new(Method::GET, "/version")).await?;
        let version = answer.get("gitVersion").and_then(Value::as_str);
        let version = version.ok_or_else(|| {
            KubeError::new(Trouble::Unreadable, action, self.endpoint(), "the answer has no `gitVersion`")
        })?;
        Ok(ServerVersion { git_version: version.to_owned() })
    }

    /// Whether the API server says that it is ready; asked once.
    pub async fn ready(&self) -> Result<(), KubeError> {
        self.read_once("ask whether the API is ready", &Request::new(Method::GET, "/readyz"))
            .await
            .map(|_| ())
    }

    /// Waits until the API server says that it is ready.
    pub async fn wait_ready(
        &self,
        patience: Patience,
        progress: &(dyn Fn(&Progress<'_>) + Send + Sync),
    ) -> Result<(), KubeError> {
        let mut waiting = patience.begin(self.clock(), "the Kubernetes API", progress);
        loop {
            let error = match self.ready().await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            if !error.is_transient() {
                return Err(error);
            }
            if !waiting.again(error.reason()).await {
                return Err(error);
            }
        }
    }
}
