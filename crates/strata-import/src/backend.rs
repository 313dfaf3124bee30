//! Where the state of others is kept, where Strata's can be kept too.

use crate::records::State;
use serde_json::{Value as Json, json};

use super::Import;
use super::output::{Object, Put};
use super::tree::Tree;

impl Import<'_> {
    /// A state that HCP Terraform keeps, which no other tool can use.
    pub(super) fn cloud(&mut self, tree: &Tree) {
        let said = |key: &str| tree.get(key).and_then(Tree::peek);
        let organisation = said("organization").map(|name| format!(" of `{name}`")).unwrap_or_default();
        let workspace = tree.one("workspaces").and_then(|block| {
            block.get("name").and_then(Tree::peek).or_else(|| block.list("tags").first().and_then(Tree::peek))
        });
        let workspace = workspace.map(|name| format!(", workspace `{name}`")).unwrap_or_default();
        tree.take_all();
        self.note(
            Some(&tree.place),
            format!("the state is kept by the cloud{organisation}{workspace}, which is none of Strata's backends: bring it with `tofu state pull | strata import --state -`; Strata's own is kept in the repository until strata.yaml says otherwise"),
        );
    }

    /// The state of others, where it can be Strata's too: from a `backend` block or a file that says the same.
    pub(super) fn backend(&mut self, kind: &str, tree: &Tree) {
        if self.model.state.is_some() {
            tree.take_all();
            return;
        }
        let mut state = Object::new();
        match kind {
            "s3" => {
                let Some(bucket) = tree.text("bucket") else {
                    // Filled in from outside, by `-backend-config`.
                    tree.take_all();
                    self.note(Some(&tree.place), "the backend `s3` has no `bucket` here: the state is kept in the repository until strata.yaml says otherwise");
                    return;
                };
                state.set(State::backend, json!("s3"));
                state.set(State::bucket, json!(bucket));
                if let Some(region) = tree.text("region") {
                    state.set(State::region, json!(region));
                }
                let endpoint = tree.text("endpoint").or_else(|| tree.at(&["endpoints", "s3"])?.as_text());
                if let Some(endpoint) = endpoint {
                    state.set(State::endpoint, json!(endpoint));
                }
                if let Some(table) = tree.text("dynamodb_table") {
                    state.set(State::lock_table, json!(table));
                }
                self.needless(tree, &["key"], "Strata's states have names of their own");
                self.needless(
                    tree,
                    &[
                        "encrypt",
                        "use_lockfile",
                        "skip_credentials_validation",
                        "skip_metadata_api_check",
                        "skip_region_validation",
                        "skip_requesting_account_id",
                        "skip_s3_checksum",
                        "use_path_style",
                        "force_path_style",
                        "type",
                    ],
                    "Strata finds out how a bucket is reached",
                );
            }
            "http" => {
                let Some(address) = tree.text("address") else {
                    tree.take_all();
                    self.note(Some(&tree.place), "the backend `http` has no `address` here: the state is kept in the repository until strata.yaml says otherwise");
                    return;
                };
                // The last part is the name of this state; Strata's have names of their own in its place.
                let own = address.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
                let host =
                    address.split("://").nth(1).unwrap_or(&address).trim_end_matches('/').contains('/');
                let with_names = |address: &str| {
                    let parts =
                        address.split('/').map(|part| if part == own && host { "{state}" } else { part });
                    parts.collect::<Vec<_>>().join("/")
                };
                let url = with_names(&address);
                state.set(State::backend, json!("http"));
                state.set(State::url, json!(url));
                for (key, there) in [(State::lock_url, "lock_address"), (State::unlock_url, "unlock_address")]
                {
                    if let Some(way) = tree.text(there) {
                        state.set(key, json!(with_names(&way)));
                    }
                }
                for (key, there) in [
                    (State::lock_method, "lock_method"),
                    (State::unlock_method, "unlock_method"),
                    (State::update_method, "update_method"),
                ] {
                    state.put(key, tree.text(there));
                }
                self.needless(
                    tree,
                    &["retry_max", "retry_wait_min", "retry_wait_max"],
                    "Strata tries again by itself",
                );
                for (key, there) in [(State::username, "username"), (State::password, "password")] {
                    if let Some(value) = tree.get(there) {
                        state.put(key, self.secret_of(value, &format!("tfstate_{key}")));
                    }
                }
                self.note(
                    Some(&tree.place),
                    format!("the state's server is taken over: OpenTofu's own state stays at `{address}`, and Strata's get names of their own in place of `{own}`"),
                );
                if !state.contains_key(State::username.name()) {
                    self.note(
                        Some(&tree.place),
                        "who may use the state's server is in no file (`TF_HTTP_USERNAME`, `TF_HTTP_PASSWORD`): set `state.username` and `state.password`",
                    );
                }
            }
            "local" => {
                self.needless(tree, &["path", "workspace_dir"], "Strata's states have names of their own");
                tree.take_all();
                return;
            }
            other => {
                self.note(Some(&tree.place), format!("the backend `{other}` is none of Strata's: the state is kept in the repository until strata.yaml says otherwise"));
                tree.take_all();
                return;
            }
        }
        self.model.state = Some(Json::Object(state));
    }
}
