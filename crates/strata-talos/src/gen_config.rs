//! `strata talos config` without a repository: the flags of `talosctl gen config` in, its files out.

use jiff::Timestamp;
use strata_secret::{RandomSource, SecretString};

use crate::config::MachineConfig;
use crate::contract::Contract;
use crate::generate::{ConfigInput, GenerateError, RegistryMirror, Role, generate};
use crate::patch::{Patch, PatchError};
use crate::pki::PkiError;
use crate::secrets::{BundleError, SecretsBundle};

/// What `talosctl` 1.14.1 takes where nobody names a version.
pub const DEFAULT_KUBERNETES_VERSION: &str = "1.37.0";

/// A patch and where it came from, for messages.
#[derive(Clone)]
pub struct PatchSource {
    pub origin: String,
    pub text: SecretString,
}

/// The options, each named after its flag. What is not given is as `talosctl` has it.
#[derive(Clone)]
pub struct GenConfigArgs {
    /// The content of the file with the secrets bundle, decrypted.
    pub secrets: SecretString,
    pub contract: Contract,
    pub name: String,
    pub endpoint: String,
    pub kubernetes_version: Option<String>,
    pub additional_sans: Vec<String>,
    pub install_disk: Option<String>,
    pub install_image: Option<String>,
    /// `HOST=URL` each.
    pub registry_mirrors: Vec<String>,
    pub dns_domain: Option<String>,
    pub with_kubespan: bool,
    pub with_cluster_discovery: bool,
    pub config_patches: Vec<PatchSource>,
    pub config_patches_control_plane: Vec<PatchSource>,
    pub config_patches_worker: Vec<PatchSource>,
}

/// A file to be written with mode 0600.
pub struct GeneratedFile {
    pub name: &'static str,
    pub content: SecretString,
}

/// All files, and what their user should know.
pub struct GeneratedFiles {
    pub files: Vec<GeneratedFile>,
    pub warnings: Vec<String>,
}

/// Why no files could be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GenConfigError {
    #[error("the secrets bundle cannot be used: {0}")]
    Bundle(#[from] BundleError),
    #[error("`{0}` is no mirror of a registry; write `HOST=URL`")]
    Mirror(String),
    #[error(transparent)]
    Generate(#[from] GenerateError),
    #[error("patch `{origin}`: {error}")]
    Patch { origin: String, error: PatchError },
    #[error("the client certificate cannot be made: {0}")]
    Pki(#[from] PkiError),
}

impl GenConfigArgs {
    /// All other options as `talosctl` has them.
    pub fn new(
        secrets: SecretString,
        contract: Contract,
        name: impl Into<String>,
        endpoint: impl Into<String>,
    ) -> Self {
        Self {
            secrets,
            contract,
            name: name.into(),
            endpoint: endpoint.into(),
            kubernetes_version: None,
            additional_sans: Vec::new(),
            install_disk: None,
            install_image: None,
            registry_mirrors: Vec::new(),
            dns_domain: None,
            with_kubespan: false,
            with_cluster_discovery: true,
            config_patches: Vec::new(),
            config_patches_control_plane: Vec::new(),
            config_patches_worker: Vec::new(),
        }
    }

    fn input(&self) -> Result<ConfigInput, GenConfigError> {
        let version = self.kubernetes_version.as_deref().unwrap_or(DEFAULT_KUBERNETES_VERSION);
        let mut input = ConfigInput::new(self.contract, &self.name, &self.endpoint, version);
        input.additional_sans.clone_from(&self.additional_sans);
        input.registry_mirrors = mirrors(&self.registry_mirrors)?;
        input.kubespan = self.with_kubespan;
        input.cluster_discovery = self.with_cluster_discovery;
        if let Some(disk) = &self.install_disk {
            input.install_disk = Some(disk.clone());
        }
        if let Some(image) = &self.install_image {
            input.install_image = Some(image.clone());
        }
        if let Some(domain) = &self.dns_domain {
            input.dns_domain.clone_from(domain);
        }
        Ok(input)
    }
}

/// Makes `controlplane.yaml`, `worker.yaml` and `talosconfig`.
pub fn gen_config(
    args: &GenConfigArgs,
    now: Timestamp,
    random: &mut dyn RandomSource,
) -> Result<GeneratedFiles, GenConfigError> {
    let secrets = SecretsBundle::from_yaml(&args.secrets)?;
    let input = args.input()?;
    let patches = read(&args.config_patches)?;
    let mut warnings = Vec::new();
    if !args.contract.runs_kubernetes(&input.kubernetes_version) {
        warnings.push(format!(
            "Talos {} is not made for Kubernetes {}; it runs {}",
            args.contract,
            input.kubernetes_version,
            args.contract.kubernetes_range()
        ));
    }
    let mut files = Vec::new();
    for (role, name, own) in [
        (Role::ControlPlane, "controlplane.yaml", &args.config_patches_control_plane),
        (Role::Worker, "worker.yaml", &args.config_patches_worker),
    ] {
        let mut config = generate(&input, &secrets, role)?;
        for (origin, patch) in patches.iter().chain(&read(own)?) {
            let error = |error| GenConfigError::Patch { origin: origin.clone(), error };
            config = patch.apply(config).map_err(error)?;
        }
        warn_of_unknown_documents(args.contract, &config, &mut warnings);
        files.push(GeneratedFile { name, content: config.to_yaml() });
    }
    let talosconfig = secrets.talosconfig(&args.name, &[], now, random)?;
    files.push(GeneratedFile { name: "talosconfig", content: talosconfig.to_yaml() });
    Ok(GeneratedFiles { files, warnings })
}

fn read(sources: &[PatchSource]) -> Result<Vec<(String, Patch)>, GenConfigError> {
    let parse = |source: &PatchSource| match Patch::parse(&source.text) {
        Ok(patch) => Ok((source.origin.clone(), patch)),
        Err(error) => Err(GenConfigError::Patch { origin: source.origin.clone(), error }),
    };
    sources.iter().map(parse).collect()
}

/// Mirrors of the same host are one mirror with several endpoints.
fn mirrors(flags: &[String]) -> Result<Vec<RegistryMirror>, GenConfigError> {
    let mut mirrors: Vec<RegistryMirror> = Vec::new();
    for flag in flags {
        let (host, url) = flag.split_once('=').ok_or_else(|| GenConfigError::Mirror(flag.clone()))?;
        match mirrors.iter_mut().find(|mirror| mirror.host == host) {
            Some(mirror) => mirror.endpoints.push(url.to_owned()),
            None => mirrors.push(RegistryMirror { host: host.to_owned(), endpoints: vec![url.to_owned()] }),
        }
    }
    Ok(mirrors)
}

/// A node refuses a whole configuration with a document that its version does not know.
fn warn_of_unknown_documents(contract: Contract, config: &MachineConfig, warnings: &mut Vec<String>) {
    for document in config.documents().iter().filter(|document| document.since() > contract) {
        let warning = format!(
            "Talos {contract} does not know the document `{}`; it is new in {}",
            document.kind(),
            document.since()
        );
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
}
