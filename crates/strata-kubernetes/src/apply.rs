//! Server-side apply: the server keeps a book of who owns which field, and says when somebody else does.

use http::Method;
use strata_net::{Request, WritePermit};

use crate::client::json_body;
use crate::{KubeClient, KubeError, Object, ObjectRef};

/// The name under which the server books our fields.
pub(crate) const FIELD_MANAGER: &str = "strata";
/// JSON is YAML.
const APPLY_PATCH: &str = "application/apply-patch+yaml";

#[derive(Debug, Clone, Copy, Default)]
pub struct ApplyOptions {
    /// Takes over fields that others own; otherwise that is a conflict, which names them.
    pub force: bool,
    /// Checks and answers as if, and changes nothing.
    pub dry_run: bool,
}

impl KubeClient {
    /// Makes an object be as it says here: creates it, or changes our fields of it. One write; can be repeated.
    pub async fn apply(
        &self,
        permit: &WritePermit<'_>,
        object: &Object,
        options: ApplyOptions,
    ) -> Result<Object, KubeError> {
        let what = object.reference();
        let action = format!("apply {what}");
        let path = self.path_of(&what).await?;
        let mut query = format!("fieldManager={FIELD_MANAGER}&force={}", options.force);
        if options.dry_run {
            query.push_str("&dryRun=All");
        }
        let request = Request {
            query,
            body: json_body(APPLY_PATCH, object.value()),
            ..Request::new(Method::PATCH, path)
        };
        let answer = self.write(permit, &action, &request).await?;
        let value = self.parse(&action, &answer)?;
        self.object(&action, value)
    }

    /// As [`Self::apply`] of a namespace with nothing but its name, unless it is there already.
    pub async fn ensure_namespace(&self, permit: &WritePermit<'_>, name: &str) -> Result<bool, KubeError> {
        let what = ObjectRef::cluster("v1", "Namespace", name);
        if self.get(&what).await?.is_some() {
            return Ok(false);
        }
        let namespace =
            serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.apply(permit, &Object::built(namespace), ApplyOptions::default()).await?;
        Ok(true)
    }
}
