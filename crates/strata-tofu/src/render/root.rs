//! What the root modules of all families have in common: images, cloud-init documents, connection, files.

use strata_blueprint::kinds;
use strata_resource::{Spec, Value};

use super::{Project, of_kind};
use crate::backend;
use crate::data;
use crate::hcl::{Body, Expr};
use crate::project::{Files, Style};
use crate::provider::{self, Provider};
use crate::variable::Default::{Bool as DefaultBool, EmptyMap, Text as DefaultText};
use crate::variable::Type::{Bool, Map, Object, Text};
use crate::variable::{Variable, may, must};

pub(super) const ENDPOINT: Variable =
    Variable::required("proxmox_endpoint", Text, "The address of the Proxmox API, without `/api2/json`")
        .valid_if("can(regex(\"^https?://\", var.proxmox_endpoint))", "The address begins with https://.");
pub(super) const TOKEN: Variable =
    Variable::required("proxmox_api_token", Text, "The API token: `user@realm!name=uuid`").sensitive();
pub(super) const INSECURE: Variable =
    Variable::optional("proxmox_insecure", Bool, "Whether anyone may answer for Proxmox")
        .or(DefaultBool(false));
pub(super) const PASSPHRASE: Variable =
    Variable::required("state_encryption_passphrase", Text, "What state and plan are encrypted with")
        .sensitive();

pub(super) const TAKEN_OVER: Variable = Variable::optional(
    "taken_over",
    Bool,
    "Whether what is declared is there already and imports.tf takes it over; what cannot be imported is then left alone",
)
.or(DefaultBool(false));

pub(super) const SHARED: &[Variable] = &[
    Variable::optional(
        "proxmox_ssh_username",
        Text,
        "Who copies documents of cloud-init to the Proxmox nodes, with a key of the agent",
    )
    .or(DefaultText("root")),
    Variable::optional(
        "manage_images",
        Bool,
        "Whether images and documents of cloud-init are brought; false where they are there already",
    )
    .or(DefaultBool(true)),
    Variable::optional(
        "manage_documents",
        Bool,
        "Whether documents of cloud-init are brought, by SSH; false where somebody else puts them there",
    )
    .or(DefaultBool(true)),
    TAKEN_OVER,
    Variable::optional(
        "images",
        Map(&Object(&[
            must("node_name", Text),
            must("datastore_id", Text),
            must("content_type", Text),
            must("url", Text),
            must("file_name", Text),
            may("checksum", Text),
            may("checksum_algorithm", Text),
        ])),
        "Images that Proxmox downloads",
    )
    .or(EmptyMap),
    Variable::optional(
        "cloud_init_files",
        Map(&Object(&[must("node_name", Text), must("datastore_id", Text), must("file_name", Text)])),
        "Documents of cloud-init, by machine and name; what is in them is in `cloud_init`",
    )
    .or(EmptyMap),
    Variable::optional("cloud_init", Map(&Text), "The content of cloud-init's documents")
        .or(EmptyMap)
        .sensitive(),
    Variable::optional("user_passwords", Map(&Text), "Passwords of machines, by name")
        .or(EmptyMap)
        .sensitive(),
];

/// The files that do not depend on what is in the stack.
pub(super) fn files(project: &Project<'_>, folder: &str, providers: &[Provider], files: &mut Files) {
    let stack = project.stack;
    let body = backend::render(project.state, &stack.environment, &stack.name, files);
    files.add(format!("{folder}/backend.tf"), Style::Hash, body.render());
    files.add(format!("{folder}/versions.tf"), Style::Hash, provider::versions(providers).render());
}

/// `providers.tf`, with the token in one piece or in two.
pub(super) fn connection(endpoint: &str, token: &str) -> Body {
    let mut body = Body::new();
    body.block("provider", &["proxmox"], |body| {
        body.attribute("endpoint", Expr::raw(endpoint))
            .attribute("api_token", Expr::raw(token))
            .attribute("insecure", Expr::raw("var.proxmox_insecure"));
        body.blank().comment("Only documents of cloud-init go this way.");
        body.block("ssh", &[], |body| {
            body.attribute("agent", true).attribute("username", Expr::raw("var.proxmox_ssh_username"));
        });
    });
    body
}

/// Images and documents: what machines need first.
pub(super) fn prerequisites(body: &mut Body) {
    body.block("resource", &["proxmox_download_file", "image"], |body| {
        body.attribute("for_each", Expr::raw("var.manage_images ? var.images : {}")).blank();
        for field in [
            "node_name",
            "datastore_id",
            "content_type",
            "url",
            "file_name",
            "checksum",
            "checksum_algorithm",
        ] {
            body.attribute(field, Expr::raw(format!("each.value.{field}")));
        }
        body.attribute("overwrite", false);
        body.blank().comment("The name says what is in it: another image has another name.");
        body.block("lifecycle", &[], |body| {
            body.attribute("ignore_changes", Expr::raw("[url, checksum, checksum_algorithm, overwrite]"));
        });
    });
    body.block("resource", &["proxmox_virtual_environment_file", "cloud_init"], |body| {
        body.attribute(
            "for_each",
            Expr::raw("var.manage_images && var.manage_documents ? var.cloud_init_files : {}"),
        )
        .blank();
        body.attribute("node_name", Expr::raw("each.value.node_name"))
            .attribute("datastore_id", Expr::raw("each.value.datastore_id"))
            .attribute("content_type", "snippets");
        body.block("source_raw", &[], |body| {
            body.attribute("data", Expr::raw("var.cloud_init[each.key]"))
                .attribute("file_name", Expr::raw("each.value.file_name"));
        });
    });
}

pub(super) const NEEDED: &str = "[proxmox_download_file.image, proxmox_virtual_environment_file.cloud_init]";

/// The data of images and documents.
pub(super) fn data(project: &Project<'_>, body: &mut Body, files: &mut Files) {
    for volume in several_times(project) {
        files.gap(
            &project.stack.name,
            format!("`{volume}` is downloaded once for each node: if its storage is shared, say so in `hypervisors/`"),
        );
    }
    let images: Vec<(String, Expr)> = of_kind(project.blueprint, kinds::IMAGE)
        .map(|resource| (resource.address.name().to_owned(), data::image(resource, files)))
        .collect();
    body.blank().attribute("images", Expr::Object(images));
    let mut documents = Vec::new();
    for resource in of_kind(project.blueprint, kinds::CIDATA) {
        for file in resource.spec.get("files").and_then(Value::as_map).into_iter().flat_map(Spec::keys) {
            let name = resource.address.name();
            let field = |field: &str| resource.spec.get(field).and_then(data::plain).unwrap_or(Expr::Null);
            let entry = vec![
                ("node_name".to_owned(), field("node")),
                ("datastore_id".to_owned(), field("storage")),
                ("file_name".to_owned(), Expr::text(snippet(name, file))),
            ];
            documents.push((format!("{name}/{file}"), Expr::Object(entry)));
        }
    }
    if !documents.is_empty() {
        body.blank().attribute("cloud_init_files", Expr::Object(documents));
    }
}

/// Volumes that the same storage gets on several nodes, which must not be if it is one for all of them.
fn several_times<'p>(project: &'p Project<'_>) -> Vec<&'p str> {
    let volumes = of_kind(project.blueprint, kinds::IMAGE);
    let mut volumes: Vec<&str> = volumes.filter_map(|image| image.spec.get("volume")?.as_text()).collect();
    volumes.sort_unstable();
    let mut twice: Vec<&str> =
        volumes.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
    twice.dedup();
    twice.retain(|volume| !volume.starts_with("local:"));
    twice
}

fn snippet(machine: &str, file: &str) -> String {
    format!("{machine}-{file}.yaml")
}

/// Points a machine with documents of its own to them.
pub(super) fn with_documents(project: &Project<'_>, name: &str, machine: Expr) -> Expr {
    let cidata = of_kind(project.blueprint, kinds::CIDATA).find(|resource| resource.address.name() == name);
    let (Some(cidata), Expr::Object(mut entries)) = (cidata, machine.clone()) else { return machine };
    let storage = cidata.spec.get("storage").and_then(Value::as_text).unwrap_or("local");
    let files = cidata.spec.get("files").and_then(Value::as_map);
    let mut initialization = vec![("datastore_id".to_owned(), Expr::text(storage))];
    for file in files.into_iter().flat_map(Spec::keys) {
        let field = match file.as_str() {
            "user-data" => "user_data_file_id",
            "vendor-data" => "vendor_data_file_id",
            "network-config" => "network_data_file_id",
            "meta-data" => "meta_data_file_id",
            _ => continue,
        };
        initialization
            .push((field.to_owned(), Expr::text(format!("{storage}:snippets/{}", snippet(name, file)))));
    }
    entries.retain(|(key, _)| key != "initialization");
    entries.push(("initialization".to_owned(), Expr::Object(initialization)));
    Expr::Object(entries)
}
