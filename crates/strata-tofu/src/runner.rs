//! `Taskfile.yml` and `justfile`: the verbs that users of the families know, each a call of Strata.

use std::fmt::Write as _;

use crate::project::{Files, Style};
use crate::render::{Family, Project};

/// Name, what it does, and the call; `{stack}` is the variable of the file, `{args}` what stands behind `--`, `{more}` the same for OpenTofu.
type Verb = (&'static str, &'static str, &'static str);

const INFRA: &[Verb] = &[
    ("init", "Prepare OpenTofu's folder and its state", "strata tofu init {stack}{more}"),
    ("plan", "Plan with OpenTofu, and save the plan", "strata tofu plan {stack}{more}"),
    ("apply", "Apply the saved plan", "strata tofu apply {stack}{more}"),
    ("apply-auto", "Plan and apply without asking", "strata tofu apply {stack} --yes{more}"),
    ("destroy", "Destroy everything that OpenTofu made", "strata tofu destroy {stack}{more}"),
    ("output", "Show the outputs", "strata tofu output {stack}{more}"),
    ("state-list", "List what is in the state", "strata tofu state list {stack}{more}"),
    (
        "force-unlock",
        "Take away a lock that nobody holds any more",
        "strata tofu force-unlock {stack} -- {lock}",
    ),
    (
        "validate",
        "Check the source and the rendered project",
        "strata validate && strata tofu validate {stack}{more}",
    ),
    ("fmt", "Format files of OpenTofu", "strata tofu fmt {stack}{more}"),
    ("fmt-check", "Check the format of files of OpenTofu", "strata tofu fmt-check {stack}{more}"),
    ("secrets-edit", "Edit the encrypted secrets", "strata secrets edit {secrets}"),
    ("verify-nodes", "Check that everything is as it should be", "strata drift {stack}{args}"),
];

const BOOTSTRAP: &[Verb] = &[
    ("preflight", "Say what is missing before an apply", "strata doctor {stack}{args}"),
    ("talos", "Machines, Talos and etcd", "strata apply {stack}{args}"),
    ("apply-sequential", "Apply one operation at a time", "strata apply {stack} --parallelism 1{args}"),
    ("apply-parallel", "Apply as much at once as the settings allow", "strata apply {stack}{args}"),
    ("verify", "Check that everything is as it should be", "strata drift {stack}{args}"),
    ("apps", "Hand over to Flux", "strata apply {stack}{args}"),
];

const TALOS: &[Verb] = &[
    ("generate-config", "Write talconfig.yaml again", "strata sync {stack}{args}"),
    ("apply-node", "Apply what changed to the nodes", "strata apply {stack}{args}"),
    (
        "upgrade-node",
        "Bring the nodes to the version of the source, one at a time",
        "strata apply {stack}{args}",
    ),
    ("upgrade-k8s", "Bring Kubernetes to the version of the source", "strata apply {stack}{args}"),
    ("reset", "Destroy the cluster; asks first", "strata destroy {stack}{args}"),
];

const JUST: &[Verb] = &[
    ("sync", "Write everything that is generated", "strata sync {stack}{args}"),
    ("confgen", "The same", "strata sync {stack}{args}"),
    ("init", "Prepare OpenTofu's folder and its state", "strata tofu init {stack}{more}"),
    ("plan", "Plan with OpenTofu, and save the plan", "strata tofu plan {stack}{more}"),
    ("apply", "Apply the saved plan", "strata tofu apply {stack}{more}"),
    ("create", "Machines, Talos and Flux by Strata itself", "strata apply {stack}{args}"),
    ("talgen", "Write talconfig.yaml again", "strata sync {stack}{args}"),
    ("bootstrap", "Machines, Talos and etcd by Strata itself", "strata apply {stack}{args}"),
    ("nuke", "Destroy the cluster; asks first", "strata destroy {stack}{args}"),
    (
        "validate",
        "Check the source and the rendered project",
        "strata validate && strata tofu validate {stack}{more}",
    ),
    ("fmt", "Format files of OpenTofu", "strata tofu fmt {stack}{more}"),
];

/// Adds both files, about the first cluster, or else the first stack.
pub(crate) fn render(projects: &[Project<'_>], files: &mut Files) {
    let rendered = || projects.iter().filter(|project| Family::of(project.stack).is_some());
    let cluster = rendered().find(|project| project.stack.cluster().is_some());
    let Some(first) = cluster.or_else(|| rendered().next()) else { return };
    let flat = Family::of(first.stack) == Some(Family::Template);
    let secrets = if flat { "infrastructure/secrets.sops.yaml" } else { "secrets.sops.yaml" };
    let prepared = prepared(projects);
    files.add("Taskfile.yml".to_owned(), Style::Hash, taskfile(&first.stack.name, secrets, &prepared));
    files.add("justfile".to_owned(), Style::Hash, justfile(&first.stack.name, secrets));
}

/// Which of the rendered folders is prepared, by the name of its stack.
fn prepared(projects: &[Project<'_>]) -> String {
    let mut seen = Vec::new();
    for project in projects {
        let Some(family) = Family::of(project.stack) else { continue };
        let case = format!("{}) test -d {}/.terraform ;; ", project.stack.name, family.folder(project.stack));
        if !seen.contains(&case) {
            seen.push(case);
        }
    }
    format!("case \"{{{{.STACK}}}}\" in {}*) true ;; esac", seen.concat())
}

/// Verbs of `infra` that need OpenTofu's folder to be prepared.
const ON_PREPARED: [&str; 6] = ["plan", "apply", "apply-auto", "destroy", "output", "state-list"];

fn taskfile(stack: &str, secrets: &str, prepared: &str) -> String {
    let mut text = format!(
        "version: '3'\n\nvars:\n  STACK: '{{{{.STACK | default \"{stack}\"}}}}'\n\nenv:\n  \
         AWS_REQUEST_CHECKSUM_CALCULATION: when_required\n  AWS_RESPONSE_CHECKSUM_VALIDATION: when_required\n\ntasks:\n"
    );
    let _ = write!(
        text,
        "  configure:\n    desc: Check the source, write everything that is generated, and prepare OpenTofu's folder\n    cmds:\n      \
         - strata validate\n      - strata sync\n      - task: infra:prepared\n\n  \
         infra:prepared:\n    internal: true\n    cmd: strata tofu init {{{{.STACK}}}}\n    status:\n      - '{prepared}'\n    interactive: true\n"
    );
    let mut groups = String::new();
    for (group, verbs) in [("infra", INFRA), ("bootstrap", BOOTSTRAP), ("talos", TALOS)] {
        for (name, what, call) in verbs {
            let call = call
                .replace("{more}", "{{if .CLI_ARGS}} -- {{.CLI_ARGS}}{{end}}")
                .replace("{args}", "{{if .CLI_ARGS}} {{.CLI_ARGS}}{{end}}")
                .replace("{lock}", "{{.LOCK_ID}} {{.CLI_ARGS}}")
                .replace("{stack}", "{{.STACK}}")
                .replace("{secrets}", secrets);
            let needs = if group == "infra" && ON_PREPARED.contains(name) {
                "    deps: [infra:prepared]\n"
            } else {
                ""
            };
            let _ = write!(
                groups,
                "\n  {group}:{name}:\n    desc: {what}\n{needs}    cmd: {call}\n    interactive: true\n"
            );
        }
    }
    text.push_str(&groups);
    text
}

fn justfile(stack: &str, secrets: &str) -> String {
    let mut text = format!(
        "export AWS_REQUEST_CHECKSUM_CALCULATION := \"when_required\"\n\
         export AWS_RESPONSE_CHECKSUM_VALIDATION := \"when_required\"\n\n\
         cluster := \"{stack}\"\n\ndefault:\n    @just --list --unsorted\n"
    );
    for (name, what, call) in JUST {
        let call = call
            .replace("{more}", " {{ if args == \"\" { \"\" } else { \"-- \" + args } }}")
            .replace("{args}", " {{args}}")
            .replace("{stack}", "{{cluster}}")
            .replace("{secrets}", secrets);
        let _ = write!(text, "\n# {what}\n{name} *args:\n    {call}\n");
    }
    text
}
