//! Where OpenTofu keeps the state of a stack: beside Strata's own, under a name of its own.

use strata_source::settings::state::{Backend, State};

use crate::hcl::{Body, Expr};
use crate::project::Files;

/// The name of OpenTofu's state of a stack. Strata's own is `<environment>/<stack>`.
pub fn state_name(environment: &str, stack: &str) -> String {
    format!("tofu/{environment}/{stack}")
}

/// The user name that goes with a token: a state server knows the user by the token alone.
pub const TOKEN_USER: &str = "token";

/// The addresses that the HTTP backend uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAddresses {
    pub address: String,
    pub lock_address: String,
    pub unlock_address: String,
    pub lock_method: String,
    pub unlock_method: String,
    pub update_method: Option<String>,
}

impl HttpAddresses {
    /// For one state; `None` without a URL.
    pub fn of(state: &State, name: &str) -> Option<Self> {
        let url = state.url.as_ref()?.value.trim_end_matches('/').to_owned();
        let fill = |template: &str| template.replace("{state}", &name.replace('/', "__"));
        let gitlab = url.contains("/api/v4/projects/") && url.contains("/terraform/state/");
        let address = if url.contains("{state}") {
            fill(&url)
        } else if url.ends_with("/states") || url.ends_with("/tfstate") {
            format!("{url}/{name}")
        } else {
            format!("{url}/states/{name}")
        };
        let beside = if gitlab { format!("{address}/lock") } else { address.clone() };
        let lock = state.lock_url.as_ref().map_or(beside, |url| fill(&url.value));
        let unlock = state.unlock_url.as_ref().map_or_else(|| lock.clone(), |url| fill(&url.value));
        let method = |own: &Option<String>, gitlabs: &str, usual: &str| {
            own.clone().unwrap_or_else(|| if gitlab { gitlabs } else { usual }.to_owned())
        };
        Some(Self {
            lock_address: lock,
            unlock_address: unlock,
            lock_method: method(&state.lock_method, "POST", "LOCK"),
            unlock_method: method(&state.unlock_method, "DELETE", "UNLOCK"),
            update_method: state.update_method.clone(),
            address,
        })
    }

    /// The variables that say the same to OpenTofu.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let mut variables = vec![
            ("TF_HTTP_ADDRESS", self.address.clone()),
            ("TF_HTTP_LOCK_ADDRESS", self.lock_address.clone()),
            ("TF_HTTP_UNLOCK_ADDRESS", self.unlock_address.clone()),
            ("TF_HTTP_LOCK_METHOD", self.lock_method.clone()),
            ("TF_HTTP_UNLOCK_METHOD", self.unlock_method.clone()),
        ];
        variables.extend(self.update_method.clone().map(|method| ("TF_HTTP_UPDATE_METHOD", method)));
        variables
    }
}

/// `backend.tf`.
pub(crate) fn render(state: Option<&State>, environment: &str, stack: &str, files: &mut Files) -> Body {
    let name = state_name(environment, stack);
    let backend = state.and_then(|state| state.backend).unwrap_or(Backend::Local);
    let mut body = Body::new();
    body.block("terraform", &[], |body| {
        match (backend, state) {
            (Backend::Http, Some(state)) => http(body, state, &name),
            (Backend::S3, Some(state)) => s3(body, state, &name),
            (Backend::Postgres, _) => {
                body.comment("The connection comes from PG_CONN_STR.");
                body.block("backend", &["pg"], |body| {
                    body.attribute("schema_name", Expr::text(name.replace(['/', '-', '.'], "_")));
                });
            }
            _ => {
                body.block("backend", &["local"], |body| {
                    body.attribute("path", "terraform.tfstate");
                });
            }
        }
        let encryption = state.and_then(|state| state.encryption.as_ref());
        if is_encrypted(state) {
            encrypt(body);
        } else if encryption.is_some_and(|encryption| !encryption.age.is_empty()) {
            files.gap(stack, "OpenTofu cannot encrypt its state for age recipients: it is not encrypted");
        }
    });
    body
}

fn http(body: &mut Body, state: &State, name: &str) {
    let Some(addresses) = HttpAddresses::of(state, name) else { return };
    body.comment("Who writes comes from TF_HTTP_USERNAME and TF_HTTP_PASSWORD.");
    body.block("backend", &["http"], |body| {
        body.attribute("address", Expr::text(addresses.address))
            .attribute("lock_address", Expr::text(addresses.lock_address))
            .attribute("lock_method", Expr::text(addresses.lock_method))
            .attribute("unlock_address", Expr::text(addresses.unlock_address))
            .attribute("unlock_method", Expr::text(addresses.unlock_method));
        if let Some(method) = addresses.update_method {
            body.attribute("update_method", Expr::text(method));
        }
    });
}

fn s3(body: &mut Body, state: &State, name: &str) {
    body.comment("Who writes comes from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.");
    body.block("backend", &["s3"], |body| {
        let prefix = state.prefix.as_deref().unwrap_or_default().trim_matches('/');
        let key =
            if prefix.is_empty() { format!("{name}.tfstate") } else { format!("{prefix}/{name}.tfstate") };
        body.attribute("bucket", Expr::text(state.bucket.clone().unwrap_or_default()))
            .attribute("key", Expr::text(key))
            .attribute("region", Expr::text(state.region.clone().unwrap_or_else(|| "us-east-1".to_owned())))
            .attribute("use_lockfile", true);
        if let Some(table) = &state.lock_table {
            body.attribute("dynamodb_table", Expr::text(&table.name.value));
            if let Some(endpoint) = &table.endpoint {
                body.attribute("dynamodb_endpoint", Expr::text(endpoint));
            }
        }
        let Some(endpoint) = &state.endpoint else { return };
        body.blank().comment(
            "Not Amazon's: R2, MinIO, Garage and others know neither its accounts nor its checksums.",
        );
        body.attribute("endpoints", Expr::Inline(vec![("s3".to_owned(), Expr::text(endpoint))]))
            .attribute("use_path_style", state.path_style.unwrap_or(true));
        for skip in [
            "credentials_validation",
            "metadata_api_check",
            "region_validation",
            "requesting_account_id",
            "s3_checksum",
        ] {
            body.attribute(&format!("skip_{skip}"), true);
        }
    });
}

/// State and plan are encrypted before they leave the machine.
fn encrypt(body: &mut Body) {
    body.block("encryption", &[], |body| {
        body.block("key_provider", &["pbkdf2", "strata"], |body| {
            body.attribute("passphrase", Expr::raw("var.state_encryption_passphrase"));
        });
        body.block("method", &["aes_gcm", "strata"], |body| {
            body.attribute("keys", Expr::raw("key_provider.pbkdf2.strata"));
        });
        for what in ["state", "plan"] {
            body.block(what, &[], |body| {
                body.attribute("method", Expr::raw("method.aes_gcm.strata")).attribute("enforced", true);
            });
        }
    });
}

/// Whether rendered projects of this state are encrypted.
pub(crate) fn is_encrypted(state: Option<&State>) -> bool {
    state
        .and_then(|state| state.encryption.as_ref())
        .is_some_and(|encryption| encryption.passphrase.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str) -> String {
        let (state, _, diagnostics) = State::parse("state", text);
        assert!(!diagnostics.has_errors());
        render(state.as_ref(), "prod", "web", &mut Files::default()).render()
    }

    #[test]
    fn every_backend_has_a_key_of_its_own() {
        assert!(rendered("{backend: local}").contains("path = \"terraform.tfstate\""));
        let http = rendered("{backend: http, url: 'https://state.example/'}");
        assert!(http.contains("address        = \"https://state.example/states/tofu/prod/web\""), "{http}");
        let gitlab = rendered("{backend: http, url: 'https://g/api/v4/projects/1/terraform/state/{state}'}");
        assert!(gitlab.contains(
            "lock_address   = \"https://g/api/v4/projects/1/terraform/state/tofu__prod__web/lock\""
        ));
        assert!(gitlab.contains("lock_method    = \"POST\""));
        let r2 = rendered(
            "{backend: s3, bucket: b, prefix: infra, endpoint: 'https://r2.example', lockTable: locks}",
        );
        for line in [
            "key            = \"infra/tofu/prod/web.tfstate\"",
            "use_lockfile   = true",
            "dynamodb_table = \"locks\"",
            "skip_s3_checksum            = true",
        ] {
            assert!(r2.contains(line), "{r2}");
        }
    }

    #[test]
    fn encryption_takes_its_passphrase_from_a_variable() {
        let text = rendered("{backend: local, encryption: {passphrase: {secret: p}}}");
        assert!(
            text.contains("passphrase = var.state_encryption_passphrase") && text.contains("enforced = true")
        );
    }
}
