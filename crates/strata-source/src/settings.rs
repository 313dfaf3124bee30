//! `strata.yaml`: state, targets, secrets, mirrors, policy, defaults.

pub mod review;
pub mod state;
pub mod target;

use strata_yaml::{Map, Partial, Spanned, TextRule, TextShape, record};

use crate::machine::container::Container;
use crate::machine::profile::Profile;
use crate::machine::template::Template;
use crate::machine::vm::Vm;
use crate::settings::review::Review;
use crate::settings::state::State;
use crate::settings::target::Target;
use crate::stack::StackProxmox;
use crate::value::name::{NAME, URL};

record! {
    /// A file of secrets.
    pub struct SecretSource [exactly_one(&["sops", "vault"])] {
        /// a file encrypted with SOPS and age
        "sops" sops: Option<Spanned<String>>;
        /// a file encrypted with Ansible Vault
        "vault" vault: Option<Spanned<String>>;
    }
}

impl SecretSource {
    /// The path of the file, from the root of the repository.
    pub fn path(&self) -> &Spanned<String> {
        self.sops.as_ref().or(self.vault.as_ref()).expect("the decoder refuses a source without a file")
    }
}

record! {
    /// How much is done at the same time.
    pub struct Parallelism [shorthand("total")] {
        /// operations of one apply
        "total" total: Option<u32> [range(1, 256)];
        /// operations on one target
        "target" target: Option<u32> [range(1, 256)];
        /// operations that write to one storage
        "storage" storage: Option<u32> [range(1, 256)];
        /// clones of one template
        "template" template: Option<u32> [range(1, 256)];
    }
}

record! {
    /// What a repository forbids itself.
    pub struct Policy {
        /// images come from URLs that begin with one of these
        "imageSources" image_sources: Vec<String> [text(URL)];
        /// every image has a checksum
        "requireChecksum" require_checksum: bool = false;
    }
}

record! {
    /// What applies to every stack that does not say otherwise.
    pub struct Defaults {
        /// where stacks live
        "proxmox" proxmox: Option<Partial<StackProxmox>>;
        /// of virtual machines
        "vm" vm: Option<Partial<Vm>>;
        /// of containers
        "container" container: Option<Partial<Container>>;
        /// of templates
        "template" template: Option<Partial<Template>>;
    }
}

const REPOSITORY_ID: TextRule = TextRule {
    shape: TextShape {
        what: "an id of 4 to 32 lower-case letters and digits",
        pattern: Some("^[a-z0-9]{4,32}$"),
    },
    accepts: |text| {
        (4..=32).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    },
};

record! {
    /// The settings of a repository.
    pub struct Settings [document] {
        /// the id of this repository, made by `strata init`: hardware addresses and marks derive from it
        "repository" repository: Option<Spanned<String>> [text(REPOSITORY_ID)];
        /// where the state is kept
        "state" state: Option<State>;
        /// files of secrets; the first that has a name wins
        "secrets" secrets: Vec<SecretSource>;
        /// the places that stacks are applied to
        "targets" targets: Map<Target> [keys(NAME)];
        /// what applies to every stack that does not say otherwise
        "defaults" defaults: Option<Defaults>;
        /// named sets of fields, for `use`
        "profiles" profiles: Map<Profile> [keys(NAME)];
        /// URLs that are reached through others: air gaps and caches
        "mirrors" mirrors: Map<String> [keys(URL), text(URL)];
        /// an HTTP proxy, such as a jump host, through which machines are reached that this one does not reach itself
        "proxy" proxy: Option<Spanned<String>> [text(URL)];
        /// what the repository forbids itself
        "policy" policy: Option<Policy>;
        /// how much is done at the same time
        "parallelism" parallelism: Option<Parallelism>;
        /// how changes are reviewed before they are applied
        "review" review: Option<Review>;
    }
}

impl Settings {
    /// The URL that a download goes to: the longest mirrored prefix is replaced.
    pub fn mirrored(&self, url: &str) -> String {
        let longest = self
            .mirrors
            .iter()
            .filter(|(prefix, _)| {
                let rest = url.strip_prefix(prefix.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || prefix.ends_with('/'))
            })
            .max_by_key(|(prefix, _)| prefix.len());
        match longest {
            Some((prefix, mirror)) => {
                let rest = &url[prefix.len()..];
                let slash = if prefix.ends_with('/') && !mirror.ends_with('/') { "/" } else { "" };
                format!(
                    "{}{slash}{rest}",
                    if rest.starts_with('/') { mirror.trim_end_matches('/') } else { mirror }
                )
            }
            None => url.to_owned(),
        }
    }
}
