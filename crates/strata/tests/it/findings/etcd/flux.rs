//! Flux: what is installed is what the manifests say, and a hand-over that fails is no success.

use serde_json::{Value, json};

use super::{kubernetes, says};
use crate::cluster::lab::{FILE, Lab, Shape};

const CONTROLLERS: &str = "/apis/apps/v1/namespaces/flux-system/deployments";

fn controllers(lab: &Lab) -> String {
    kubernetes(lab, "GET", CONTROLLERS, Value::Null).to_string()
}

#[test]
fn f17_manifests_and_controllers_are_what_they_should_be() {
    let lab = Lab::booted(&Shape::new(1, 1).with_gitops());
    lab.assert_settled("installed");
    // Another content of the same file.
    lab.repo.write(
        "flux.yaml",
        &lab.repo
            .read("flux.yaml")
            .replace("example/kustomize-controller:v1", "example/kustomize-controller:v2"),
    );
    says(&lab.run(&["plan", "--detailed-exitcode"]).code(2), &["lab/flux/flux-system", "manifests"]);
    lab.apply();
    assert!(controllers(&lab).contains("example/kustomize-controller:v2"), "{}", controllers(&lab));
    lab.assert_settled("with other manifests");
    // One of two is gone.
    kubernetes(&lab, "DELETE", &format!("{CONTROLLERS}/kustomize-controller"), Value::Null);
    says(&lab.run(&["drift"]), &["kustomize-controller"]);
    says(&lab.run(&["plan", "--detailed-exitcode"]).code(2), &["kustomize-controller"]);
    lab.apply();
    assert!(controllers(&lab).contains("kustomize-controller"), "it is back");
    lab.assert_settled("with all controllers");
}

#[test]
fn f17_a_repository_that_cannot_be_fetched_is_no_success() {
    let lab = Lab::new(&Shape::new(1, 1).with_gitops());
    lab.repo.edit(FILE, "  kubernetes: {", "  timeouts: {flux: 20s}\n  kubernetes: {");
    lab.apply();
    lab.repo.edit(FILE, "me/infra", "me/other");
    let error = "authentication required";
    lab.sim
        .control()
        .change(&json!({"kubernetes": {"source": {"url": "https://git.example/me/other", "error": error}}}));
    let failed = lab.run(&["apply", "--yes"]).code(1);
    says(&failed, &["lab/sync/flux-system", error, "credentials"]);
    lab.sim.control().change(&json!({"kubernetes": {"source": {"url": "https://git.example/me/other"}}}));
    lab.apply();
    lab.assert_settled("with the right credentials");
}
