//! `Taskfile.yml` and `justfile`: the verbs that users of the families know, each a call of Strata.

use std::fmt::Write as _;

use crate::project::{Files, Style};
use crate::render::{Family, Project};

/// Name, what it does, and the call; `{stack}` is the variable of the file.
type Verb = (&'static str, &'static str, &'static str);

const INFRA: &[Verb] = &[
    ("init", "Prepare OpenTofu's folder and its state", "strata tofu init {stack}"),
    ("plan", "Plan with OpenTofu, and save the plan", "strata tofu plan {stack}"),
    ("apply", "Apply the saved plan", "strata tofu apply {stack}"),
    ("apply-auto", "Plan and apply without asking", "strata tofu apply {stack} --yes"),
    ("destroy", "Destroy everything that OpenTofu made", "strata tofu destroy {stack}"),
    ("output", "Show the outputs", "strata tofu output {stack}"),
    ("state-list", "List what is in the state", "strata tofu state list {stack}"),
    (
        "force-unlock",
        "Take away a lock that nobody holds any more",
        "strata tofu force-unlock {stack} -- {{args}}",
    ),
    (
        "validate",
        "Check the source and the rendered project",
        "strata validate && strata tofu validate {stack}",
    ),
    ("fmt", "Format files of OpenTofu", "strata tofu fmt {stack}"),
    ("fmt-check", "Check the format of files of OpenTofu", "strata tofu fmt-check {stack}"),
    ("secrets-edit", "Edit the encrypted secrets", "strata secrets edit {secrets}"),
    ("verify-nodes", "Check that everything is as it should be", "strata drift {stack}"),
];

const BOOTSTRAP: &[Verb] = &[
    ("preflight", "Say what is missing before an apply", "strata doctor {stack}"),
    ("talos", "Machines, Talos and etcd", "strata apply {stack}"),
    ("apply-sequential", "Apply one operation at a time", "strata apply {stack} --parallelism 1"),
    ("apply-parallel", "Apply as much at once as the settings allow", "strata apply {stack}"),
    ("verify", "Check that everything is as it should be", "strata drift {stack}"),
    ("apps", "Hand over to Flux", "strata apply {stack}"),
];

const TALOS: &[Verb] = &[
    ("generate-config", "Write talconfig.yaml anew", "strata sync {stack}"),
    ("apply-node", "Apply what changed to the nodes", "strata apply {stack}"),
    ("upgrade-node", "Bring the nodes to the version of the source, one at a time", "strata apply {stack}"),
    ("upgrade-k8s", "Bring Kubernetes to the version of the source", "strata apply {stack}"),
    ("reset", "Destroy the cluster; asks first", "strata destroy {stack}"),
];

const JUST: &[Verb] = &[
    ("sync", "Write everything that is generated", "strata sync {stack}"),
    ("confgen", "The same", "strata sync {stack}"),
    ("init", "Prepare OpenTofu's folder and its state", "strata tofu init {stack}"),
    ("plan", "Plan with OpenTofu, and save the plan", "strata tofu plan {stack}"),
    ("apply", "Apply the saved plan", "strata tofu apply {stack}"),
    ("create", "Machines, Talos and Flux by Strata itself", "strata apply {stack}"),
    ("talgen", "Write talconfig.yaml anew", "strata sync {stack}"),
    ("bootstrap", "Machines, Talos and etcd by Strata itself", "strata apply {stack}"),
    ("nuke", "Destroy the cluster; asks first", "strata destroy {stack}"),
    (
        "validate",
        "Check the source and the rendered project",
        "strata validate && strata tofu validate {stack}",
    ),
    ("fmt", "Format files of OpenTofu", "strata tofu fmt {stack}"),
];

/// Adds both files, about the first cluster, or else the first stack.
pub(crate) fn render(projects: &[Project<'_>], files: &mut Files) {
    let rendered = || projects.iter().filter(|project| Family::of(project.stack).is_some());
    let cluster = rendered().find(|project| project.stack.cluster().is_some());
    let Some(first) = cluster.or_else(|| rendered().next()) else { return };
    let flat = Family::of(first.stack) == Some(Family::Template);
    let secrets = if flat { "infrastructure/secrets.sops.yaml" } else { "secrets.sops.yaml" };
    files.add("Taskfile.yml".to_owned(), Style::Hash, taskfile(&first.stack.name, secrets));
    files.add("justfile".to_owned(), Style::Hash, justfile(&first.stack.name, secrets));
}

fn taskfile(stack: &str, secrets: &str) -> String {
    let mut text = format!(
        "version: '3'\n\nvars:\n  STACK: '{{{{.STACK | default \"{stack}\"}}}}'\n\nenv:\n  \
         AWS_REQUEST_CHECKSUM_CALCULATION: when_required\n  AWS_RESPONSE_CHECKSUM_VALIDATION: when_required\n\ntasks:\n"
    );
    let mut groups = String::new();
    for (group, verbs) in [("infra", INFRA), ("bootstrap", BOOTSTRAP), ("talos", TALOS)] {
        for (name, what, call) in verbs {
            let call = call
                .replace("{{args}}", "{{.CLI_ARGS}}")
                .replace("{stack}", "{{.STACK}}")
                .replace("{secrets}", secrets);
            let _ = write!(
                groups,
                "\n  {group}:{name}:\n    desc: {what}\n    cmd: {call}\n    interactive: true\n"
            );
        }
    }
    text.push_str(groups.trim_start_matches('\n'));
    text
}

fn justfile(stack: &str, secrets: &str) -> String {
    let mut text = format!(
        "export AWS_REQUEST_CHECKSUM_CALCULATION := \"when_required\"\n\
         export AWS_RESPONSE_CHECKSUM_VALIDATION := \"when_required\"\n\n\
         cluster := \"{stack}\"\n\ndefault:\n    @just --list --unsorted\n"
    );
    for (name, what, call) in JUST {
        let call = call.replace("{stack}", "{{cluster}}").replace("{secrets}", secrets);
        let _ = write!(text, "\n# {what}\n{name}:\n    {call}\n");
    }
    text
}
