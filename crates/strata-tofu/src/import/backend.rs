//! Where the state of others is kept, where Strata's can be kept too.

use serde_json::{Value as Json, json};

use super::Import;
use super::output::Object;
use super::tree::Tree;

impl Import<'_> {
    /// The state of others, where it can be Strata's too: from a `backend` block or a file that says the same.
    pub(super) fn backend(&mut self, kind: &str, tree: &Tree) {
        if self.state.is_some() {
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
                state.insert("backend".into(), json!("s3"));
                state.insert("bucket".into(), json!(bucket));
                if let Some(region) = tree.text("region") {
                    state.insert("region".into(), json!(region));
                }
                let endpoint = tree.text("endpoint").or_else(|| tree.at(&["endpoints", "s3"])?.as_text());
                if let Some(endpoint) = endpoint {
                    state.insert("endpoint".into(), json!(endpoint));
                }
                if let Some(table) = tree.text("dynamodb_table") {
                    state.insert("lockTable".into(), json!(table));
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
                let Some(address) = tree.text("address") else { return };
                let server = address.split("/states/").next().unwrap_or(&address).to_owned();
                state.insert("backend".into(), json!("http"));
                state.insert("url".into(), json!(server));
                self.needless(
                    tree,
                    &["lock_address", "unlock_address", "lock_method", "unlock_method"],
                    "Strata knows how to lock there",
                );
                self.note(
                    Some(&tree.place),
                    "the state's server is taken over; Strata's states get names of their own there",
                );
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
        self.state = Some(Json::Object(state));
    }
}
