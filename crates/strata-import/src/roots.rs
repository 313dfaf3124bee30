//! Root modules: folders of `.tf` files that somebody runs. Machines of Proxmox become stacks of Strata, hosts become hypervisors; what
//! is of other providers stays what it is, for `strata tofu`.

mod by_hand;
mod filing;
mod guests;
mod values;

use crate::records::{ProxmoxTarget, Target};
use std::collections::BTreeSet;

use serde_json::json;

pub(super) use self::filing::Filing;
use self::filing::Shape;
pub(super) use self::guests::Made;
use self::guests::{guests, life};

use super::eval::Frame;
use super::guest::kind;
use super::module::{Expansion, Module, Resource};
use super::tree::{Content, SourceLine, Tree};
use super::{Import, NO_TOKEN, base, firewall, groups, host, layered, provider_talos, stacks, telmate};
use strata_tofu::resolve_path;

/// A root with one set of values.
pub(super) struct Root<'w> {
    pub(super) folder: String,
    pub(super) module: Module<'w>,
    /// Which of several files of variables this is.
    pub(super) variant: Option<String>,
}

/// Folders that hold no root of the user's.
const OTHERS: [&str; 7] = ["modules", "module", "examples", "example", "test", "tests", "templates"];

pub(super) fn import(import: &mut Import<'_>) {
    let mut all = Vec::new();
    for folder in folders(import) {
        let kind = Kind::of(&folder);
        let roots = values::roots(import, &folder);
        let several = roots.len() > 1;
        all.extend(roots.into_iter().map(|root| (kind, root, several)));
    }
    // What one root says of Proxmox is good for those that say nothing.
    for (kind, root, _) in &all {
        if *kind == Kind::Layered
            && let Some((url, token)) = said(root)
        {
            import.target(&url, false, token.as_deref());
        }
    }
    // Templates first: machines of other roots are cloned from them. Numbers of examples are the last to be given out.
    all.sort_by_cached_key(|(_, root, _)| {
        let example = root.module.variables.values().any(Tree::is_example);
        (example, !root.module.expand().resources.iter().any(is_template))
    });
    for (kind, root, several) in &all {
        one(import, *kind, root, *several);
    }
}

/// The endpoint and the token, as the variables of layered Terraform say them.
fn said(root: &Root<'_>) -> Option<(String, Option<String>)> {
    let values = root.module.values();
    let url = values.get("proxmox_url").or_else(|| values.get("proxmox_endpoint"))?.peek()?;
    url.starts_with("http").then(|| (url, values.get("proxmox_api_token").and_then(Tree::peek)))
}

/// Where a root lies says what it is for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Layered,
    Stack,
    Other,
}

impl Kind {
    fn of(folder: &str) -> Self {
        let layers = ["hypervisors", "platforms", "legacy"];
        let layered = folder.split('/').any(|part| {
            let plain = part
                .trim_start_matches(|letter: char| letter.is_ascii_digit())
                .trim_start_matches(['-', '_']);
            plain != part && layers.contains(&plain)
        });
        if layered {
            Self::Layered
        } else if folder.split('/').any(|part| part == "stacks") {
            Self::Stack
        } else {
            Self::Other
        }
    }

    fn found(self, import: &mut Import<'_>) {
        import.found(match self {
            Self::Layered => "layered Terraform",
            Self::Stack => "stacks of OpenTofu with Ansible Vault",
            Self::Other => "OpenTofu with the Proxmox provider",
        });
    }
}

/// The folders with code that is no module of another.
fn folders(import: &Import<'_>) -> Vec<String> {
    let all = import.files.folders_with_code();
    let mut used: BTreeSet<String> = BTreeSet::new();
    for folder in &all {
        for block in import.library.folder(folder).iter().filter(|block| block.kind == "module") {
            let source = block.literal("source").filter(|source| source.starts_with('.'));
            used.extend(source.and_then(|source| resolve_path(folder, source)));
        }
    }
    let is_root = |folder: &&String| {
        !used.contains(*folder)
            && !folder.split('/').any(|part| OTHERS.contains(&part))
            && !import.files.code(folder).iter().all(|file| import.files.was_read(file))
    };
    all.iter().filter(is_root).cloned().collect()
}

fn one(import: &mut Import<'_>, kind: Kind, root: &Root<'_>, several: bool) {
    for file in import.files.code(&root.folder) {
        import.files.read(&file);
    }
    for ending in [".tf.json", ".tofu.json"] {
        for file in import.files.inside(&root.folder, ending) {
            let message = "code in JSON is not read: what it makes was not carried over";
            import.note(Some(&SourceLine::new(&file, 1)), message);
        }
    }
    let values = root.module.values();
    let mut expansion = root.module.expand();
    let shape = Shape::of(kind, root, &values);
    // A cluster whose nodes are in a file that is not here is still what its modules say.
    if expansion.incomplete && shape == Some(Shape::Cluster) && !makes_guests(&expansion) {
        let assumed = root.module.expand_assuming();
        if makes_guests(&assumed) {
            expansion = Expansion { incomplete: false, ..assumed };
        }
    }
    // What the code makes counts. The shape's own words do where the code is not there, or does not say how many it makes.
    if makes_something(&expansion) && (shape.is_none() || !expansion.incomplete) {
        let family = if matches!(shape, Some(Shape::Stacks | Shape::Groups)) { Kind::Stack } else { kind };
        family.found(import);
        let filing = Filing::of(root, kind, shape, &values, several);
        native(import, root, &expansion, &filing);
        if kind == Kind::Layered {
            layered::secrets(import, &values);
        }
        finish(import, root, &values);
        return;
    }
    let family = match shape {
        Some(Shape::Stacks | Shape::Groups) => Kind::Stack,
        _ => kind,
    };
    match shape {
        Some(shape) => {
            family.found(import);
            match shape {
                Shape::Stacks => stacks::import(import, root, &values),
                Shape::Groups => groups::import(import, root, &values),
                Shape::Cluster => layered::import(import, root, &values),
            }
            finish(import, root, &values);
        }
        None if kind == Kind::Other => elsewhere(import, root, &expansion),
        None => {
            kind.found(import);
            by_hand::keep(import, root, "it makes nothing of Proxmox that Strata knows");
        }
    }
}

fn makes_guests(expansion: &Expansion) -> bool {
    expansion.resources.iter().any(is_guest)
}

/// Whether code comes to something that Strata manages.
pub(super) fn makes_something(expansion: &Expansion) -> bool {
    let known = |resource: &Resource| {
        is_guest(resource) || host::is_host(resource) || provider_talos::is_machine(resource)
    };
    expansion.resources.iter().any(known)
}

fn is_guest(resource: &Resource) -> bool {
    matches!(kind(&resource.kind), "vm" | "container") || telmate::is_guest(resource)
}

fn is_template(resource: &Resource) -> bool {
    matches!(resource.body.get("template").map(|tree| &tree.content), Some(Content::Bool(true)))
}

/// What a root says beside its resources.
pub(super) fn finish(import: &mut Import<'_>, root: &Root<'_>, values: &Tree) {
    let frame = Frame::new(&root.module, 0);
    let (mut outputs, mut first) = (0, None);
    for block in root.module.blocks.iter() {
        match block.kind.as_str() {
            "terraform" => {
                let versions = block.blocks.iter().any(|inner| inner.kind == "required_providers");
                if versions || block.attribute("required_version").is_some() {
                    let message = "the versions of OpenTofu and its providers are not needed: Strata needs none of them";
                    import.note(Some(&block.place), message);
                }
                for backend in block.blocks.iter().filter(|inner| inner.kind == "backend") {
                    let tree = frame.block(backend);
                    import.backend(backend.label(0), &tree);
                    import.watch("backend.", &tree);
                }
                for cloud in block.blocks.iter().filter(|inner| inner.kind == "cloud") {
                    import.cloud(&frame.block(cloud));
                }
            }
            "provider" if block.label(0) != "proxmox" => {
                let message =
                    format!("the provider `{}` is not needed: what it makes is reported", block.label(0));
                import.note(Some(&block.place), message);
            }
            "output" => {
                outputs += 1;
                first.get_or_insert_with(|| block.place.clone());
            }
            _ => {}
        }
    }
    if let Some(place) = first {
        import.note(
            Some(&place),
            format!(
                "{} not carried over: `outputs` of a stack names what others may ask",
                if outputs == 1 { "1 output was".to_owned() } else { format!("{outputs} outputs were") }
            ),
        );
    }
    import.watch("", values);
    let locals = root.module.locals();
    import.watch("", &locals);
}

/// Where the provider finds Proxmox: the target and its endpoint.
pub(super) fn target(import: &mut Import<'_>, root: &Root<'_>) -> (String, String) {
    let frame = Frame::new(&root.module, 0);
    let blocks = root.module.blocks.iter();
    let Some(block) =
        blocks.filter(|block| block.kind == "provider").find(|block| block.label(0) == "proxmox")
    else {
        let values = root.module.values();
        if let Some((url, token)) = said(root) {
            values.take_keys(&["proxmox_url", "proxmox_endpoint", "proxmox_api_token"]);
            return (import.target(&url, false, token.as_deref()), base(&url));
        }
        if values.get("proxmox_connection").is_some() {
            return stacks::connection(import, root, &values);
        }
        return import.some_target(&SourceLine::new(&root.folder, 1), "the provider `proxmox`");
    };
    let tree = frame.block(block);
    // The second is what Telmate's provider calls it.
    let endpoint = tree.text("endpoint").or_else(|| tree.text("pm_api_url"));
    let insecure = tree.bool("insecure").or_else(|| tree.bool("pm_tls_insecure")).unwrap_or(false);
    let parts = (tree.text("pm_api_token_id"), tree.text("pm_api_token_secret"));
    let token = tree.text_if("api_token", |token| token.contains('!')).or_else(|| match parts {
        (Some(id), Some(secret)) => Some(format!("{id}={secret}")),
        _ => None,
    });
    let token = token.or_else(|| said(root).and_then(|(_, token)| token));
    let kept = tree.get("api_token").and_then(|token| match &token.content {
        Content::Unknown(expression) => import.name_in_kept(expression).inspect(|_| token.take_all()),
        _ => None,
    });
    let login = ["username", "password", "pm_user", "pm_password", "pm_otp"];
    if login.iter().any(|key| tree.get(key).is_some()) {
        let place = block.place.clone();
        import.note(Some(&place), "the provider logs in with a password: Strata wants an API token");
        tree.take_keys(&login);
    }
    let how = [
        "pm_debug",
        "pm_log_enable",
        "pm_log_file",
        "pm_log_levels",
        "pm_minimum_permission_check",
        "pm_minimum_permission_list",
        "pm_parallel",
        "pm_timeout",
    ];
    import.needless(&tree, &how, "it is a setting of the provider");
    import.watch("provider.proxmox.", &tree);
    let (target, endpoint) = match endpoint.filter(|url| has_host(url)) {
        Some(endpoint) => (import.target(&endpoint, insecure, token.as_deref()), base(&endpoint)),
        None => {
            tree.take_keys(&["endpoint", "pm_api_url"]);
            import.some_target(&block.place, "`endpoint` of the provider")
        }
    };
    if let Some(kept) = kept {
        let before =
            import.model.targets[&target][Target::proxmox.name()][ProxmoxTarget::token.name()]["secret"]
                .as_str()
                .map(str::to_owned);
        let stands_in =
            |name: &String| import.imported.secrets.get(name).is_some_and(|value| value == NO_TOKEN);
        if let Some(before) = before.filter(stands_in) {
            import.imported.secrets.remove(&before);
            import.model.targets[&target][Target::proxmox.name()][ProxmoxTarget::token.name()] =
                json!({"secret": kept});
        }
    }
    (target, endpoint)
}

/// Whether a text is a URL of something; `https://:8006` is made of a variable that is empty.
fn has_host(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '['))
}

/// A name for a stack, from its folder.
pub(super) fn own_name(root: &Root<'_>) -> String {
    let plain = |part: &str| {
        part.trim_start_matches(|letter: char| letter.is_ascii_digit())
            .trim_start_matches(['-', '_'])
            .to_owned()
    };
    let general = ["terraform", "tofu", "opentofu", "infra", "infrastructure", "iac", "proxmox", "src", ""];
    let parts: Vec<String> = root.folder.split('/').map(plain).collect();
    let own = parts.iter().rev().find(|part| !general.contains(&part.as_str()));
    let own = own.cloned().unwrap_or_else(|| "machines".to_owned());
    match &root.variant {
        Some(variant) => format!("{own}-{variant}"),
        None => own,
    }
}

pub(super) fn native(import: &mut Import<'_>, root: &Root<'_>, expansion: &Expansion, filing: &Filing) {
    let place = SourceLine::new(&root.folder, 1);
    let (target, endpoint) = target(import, root);
    for (place, message) in &expansion.notes {
        import.note(Some(place), message.clone());
    }
    import.evaluated.extend(expansion.folders.iter().cloned());
    let with_guests = expansion.resources.iter().any(is_guest);
    let mut made = Vec::new();
    if with_guests {
        made = guests(import, expansion, filing, &target, &endpoint, &place);
    }
    let hosts: Vec<&Resource> =
        expansion.resources.iter().filter(|resource| host::is_host(resource)).collect();
    if !hosts.is_empty() {
        let own = own_name(root);
        let own = if with_guests { format!("{own}-hypervisor") } else { own };
        host::import(import, &hosts, &own, &target, &place);
    }
    let clusters = provider_talos::import(import, root, expansion, filing, &made);
    for resource in &expansion.resources {
        let short = self::kind(&resource.kind);
        if is_guest(resource) || host::is_host(resource) || matches!(short, "download_file" | "file") {
            import.watch(&format!("{}.", resource.address()), &resource.body);
            if !is_guest(resource) {
                life(import, resource, None);
            }
        } else if firewall::is_firewall(resource) && resource.body.any_taken() {
            // Some guest has it.
        } else if clusters.contains(&resource.full_address()) {
            import.watch(&format!("{}.", resource.address()), &resource.body);
        } else if resource.kind.starts_with("talos_") {
            let message = format!(
                "the resource `{}` was not carried over: `strata import --state` makes a cluster of what it built",
                resource.block()
            );
            import.note(Some(&resource.place), message);
        } else {
            let message = format!(
                "the resource `{}` has no place in Strata and was not carried over",
                resource.block()
            );
            import.note(Some(&resource.at), message);
        }
    }
    for data in &expansion.data {
        if clusters.contains(&format!("data.{}", data.full_address())) {
            import.watch(&format!("data.{}.", data.address()), &data.body);
        } else if !data.body.any_taken() {
            let message = format!(
                "`data.{}` asks a running system, which an import does not: it was not used",
                data.block()
            );
            import.note(Some(&data.at), message);
        }
    }
    for (call, arguments) in &expansion.calls {
        import.watch(call, arguments);
    }
}

/// A root that comes to nothing of Proxmox, outside of the folders that Strata takes over.
fn elsewhere(import: &mut Import<'_>, root: &Root<'_>, expansion: &Expansion) {
    let place = SourceLine::new(if root.folder.is_empty() { "." } else { &root.folder }, 1);
    let could = root.module.could_make(&|block| {
        let short = kind(block.label(0));
        matches!(short, "vm" | "container") || telmate::is_guest_kind(short) || host::KINDS.contains(&short)
    });
    if !could && !expansion.lacks_module {
        import.note(
            Some(&place),
            "the code there makes nothing that Strata manages: copy it to stacks/ if `strata tofu` should drive it",
        );
        return;
    }
    for (place, message) in &expansion.notes {
        import.note(Some(place), message.clone());
    }
    let why = if !could {
        "what the modules make that the code there calls is not known, as they are not here: import from a checkout that has them, or copy the code to stacks/ for `strata tofu`"
    } else if expansion.notes.is_empty() {
        "with the values that are here the code there makes no machine: put the file of variables that names some beside it (`terraform.tfvars`) and import again"
    } else {
        "what the code there makes is in files of variables that are not here: put them beside it (`terraform.tfvars`) and import again"
    };
    import.note(Some(&place), why);
}
