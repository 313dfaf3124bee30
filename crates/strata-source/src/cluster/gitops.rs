//! The hand-over to Flux, and the secrets that it needs from the start.

use strata_yaml::{Map, Spanned, Value, record};

use crate::value::checksum::Checksum;
use crate::value::duration::Seconds;
use crate::value::name::{URL, VERSION};

record! {
    /// Where the manifests of Flux come from, where not from its releases.
    pub struct FluxManifests [at_most_one(&["url", "file"])] {
        /// a URL
        "url" url: Option<Spanned<String>> [text(URL)];
        /// a file, from the root of the repository
        "file" file: Option<Spanned<String>>;
        /// what the manifests must be: `sha256:…`
        "checksum" checksum: Option<Checksum>;
    }
}

record! {
    /// Flux.
    pub struct Flux {
        /// such as `v2.9.5`
        "version" version: Option<Spanned<String>> [text(VERSION)];
        /// the git repository that it follows
        "repository" repository: Spanned<String>;
        /// the branch
        "branch" branch: Option<String> [env()];
        /// the folder in it
        "path" path: Spanned<String> [env()];
        /// how often it looks
        "interval" interval: Option<Seconds>;
        /// the age key that decrypts the repository's secrets; it goes straight into the cluster
        "ageKey" age_key: Option<Value<String>> [secret];
        /// the private SSH key for the repository
        "sshKey" ssh_key: Option<Value<String>> [secret];
        /// the lines of `known_hosts` that the repository's server is known by, for SSH
        "knownHosts" known_hosts: Option<Value<String>>;
        /// where its manifests come from
        "manifests" manifests: Option<FluxManifests>;
        /// who, over https
        "username" username: Option<Value<String>>;
        /// their password or token
        "password" password: Option<Value<String>> [secret];
    }
}

record! {
    /// Components of the infrastructure tree.
    pub struct Infrastructure {
        /// always there
        "core" core: Vec<Spanned<String>>;
        /// chosen
        "optional" optional: Vec<Spanned<String>>;
    }
}

record! {
    /// A Kubernetes secret that is made before Flux is.
    pub struct KubernetesSecret {
        /// its namespace
        "namespace" namespace: Spanned<String>;
        /// its type
        "type" kind: Option<String>;
        /// its data, by reference
        "data" data: Map<Value<String>> [secret];
    }
}

record! {
    /// What runs on the cluster.
    pub struct Gitops {
        /// whether Strata hands over
        "enabled" enabled: bool = true;
        /// Flux
        "flux" flux: Option<Flux>;
        /// components of the infrastructure tree
        "infrastructure" infrastructure: Option<Infrastructure>;
        /// secrets that are made before Flux is, by name
        "secrets" secrets: Map<KubernetesSecret>;
    }
}
