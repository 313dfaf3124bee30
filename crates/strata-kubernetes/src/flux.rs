//! Flux: its installation from release manifests, the objects that make it follow a repository, and what is live of both.

mod age;
mod auth;
mod install;
mod observe;
mod sync;

pub use age::{AGE_KEY_ENTRY, AgeKeyError, AgeProof, SOPS_AGE, age_secret, prove_age_key};
pub use auth::{AuthProblem, GitAuth};
pub use install::{FluxInstall, InstallError, Phase};
pub use observe::{LiveController, LiveFlux, LiveKustomization, LiveSource};
pub use sync::{FluxSync, GitRef, GitUrlError, git_url};

/// Where Flux lives, and the name of its first source, Kustomization and auth secret.
pub const FLUX_SYSTEM: &str = "flux-system";
pub const GIT_REPOSITORY: (&str, &str) = ("source.toolkit.fluxcd.io/v1", "GitRepository");
pub const KUSTOMIZATION: (&str, &str) = ("kustomize.toolkit.fluxcd.io/v1", "Kustomization");
