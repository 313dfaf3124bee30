//! The hand-over to Flux: its secrets, its controllers, and what it follows.

use std::collections::BTreeSet;

use strata_resource::{Address, Spec, Stage};
use strata_source::cluster::Cluster;
use strata_source::cluster::gitops::{Flux, KubernetesSecret};
use strata_yaml::{Spanned, Value as Written};

use crate::fields::{Fields, list};
use crate::kinds;
use crate::site::Draft;

const NAMESPACE: &str = "flux-system";
/// The name that Flux' own documentation gives to what it follows first.
const SYNC: &str = "flux-system";
const AGE_SECRET: &str = "sops-age";
const GIT_SECRET: &str = "flux-system";
const RELEASES: &str = "https://github.com/fluxcd/flux2/releases/download";

impl Draft<'_> {
    pub(super) fn gitops(&mut self, cluster: &Cluster, kubernetes: &Address) {
        let Some(gitops) = cluster.gitops.as_ref().filter(|gitops| gitops.enabled) else { return };
        let mut secrets = BTreeSet::new();
        for (name, secret) in gitops.secrets.iter() {
            secrets.extend(self.bootstrap_secret(name, secret, kubernetes));
        }
        let Some(flux) = &gitops.flux else { return };
        if let Some(key) = &flux.age_key {
            let data = [("age.agekey", key)];
            secrets.extend(self.kubernetes_secret(
                AGE_SECRET,
                NAMESPACE,
                None,
                &data,
                flux.repository.span,
                kubernetes,
            ));
        }
        let auth = self.git_secret(flux, kubernetes);
        secrets.extend(auth.clone());
        let span = flux.repository.span;
        let controllers = self.controllers(flux, kubernetes);
        let mut spec = Spec::new();
        spec.put("namespace", NAMESPACE);
        spec.put("sync", SYNC);
        spec.put("repository", flux.repository.as_str());
        spec.put("branch", flux.branch.clone().unwrap_or_else(|| "main".to_owned()));
        spec.put("path", flux.path.as_str());
        spec.put("interval", format!("{}s", flux.interval.map_or(600, |interval| interval.0)));
        spec.put_some("decryption", flux.age_key.is_some().then_some(AGE_SECRET));
        spec.put_some("auth", auth.is_some().then_some(GIT_SECRET));
        secrets.insert(controllers);
        self.of_cluster(kinds::SYNC, SYNC, Stage::Gitops, spec, secrets, span);
    }

    fn controllers(&mut self, flux: &Flux, kubernetes: &Address) -> Address {
        let mut spec = Spec::new();
        spec.put("flux", NAMESPACE);
        spec.put_some("version", flux.version.as_ref().map(|version| version.value.clone()));
        let manifests = flux.manifests.as_ref();
        let file = manifests.and_then(|manifests| manifests.file.as_ref());
        let url = manifests.and_then(|manifests| manifests.url.as_ref()).map(|url| url.value.clone());
        let release = flux.version.as_ref().map(|version| format!("{RELEASES}/{version}/install.yaml"));
        let span = flux.repository.span;
        match (file, url.or(release)) {
            (Some(file), _) => spec.put("source", format!("file:{file}")),
            (None, Some(url)) => spec.put("source", (self.site.mirror)(&url)),
            (None, None) => self.refuse("flux-version", "Flux has no `version`, and no `manifests`", span),
        }
        spec.put("missing", list(Vec::<String>::new()));
        let checksum = manifests.and_then(|manifests| manifests.checksum.as_ref());
        spec.put_some("checksum", checksum.map(|sum| format!("{}:{}", sum.algorithm.as_str(), sum.hex)));
        let needs = BTreeSet::from([kubernetes.clone()]);
        self.of_cluster(kinds::FLUX, NAMESPACE, Stage::Gitops, spec, needs, span)
    }

    /// How Flux proves to the git server who it is.
    fn git_secret(&mut self, flux: &Flux, kubernetes: &Address) -> Option<Address> {
        let mut data: Vec<(&str, &Written<String>)> = Vec::new();
        if let Some(key) = &flux.ssh_key {
            data.push(("identity", key));
            match &flux.known_hosts {
                Some(hosts) => data.push(("known_hosts", hosts)),
                None => {
                    let message = "Flux has an SSH key and no `knownHosts`: it would refuse the git server";
                    let hint = "`ssh-keyscan HOST` prints the lines; compare them with what the server's owner publishes";
                    let problem = strata_diagnostics::Diagnostic::error("known-hosts", message);
                    self.found.push(problem.at(flux.repository.span).hint(hint));
                }
            }
        }
        data.extend(flux.username.as_ref().map(|user| ("username", user)));
        data.extend(flux.password.as_ref().map(|password| ("password", password)));
        if data.is_empty() {
            return None;
        }
        self.kubernetes_secret(GIT_SECRET, NAMESPACE, None, &data, flux.repository.span, kubernetes)
    }

    fn bootstrap_secret(
        &mut self,
        name: &Spanned<String>,
        secret: &KubernetesSecret,
        kubernetes: &Address,
    ) -> Option<Address> {
        let data: Vec<(&str, &Written<String>)> =
            secret.data.iter().map(|(key, value)| (key.as_str(), value)).collect();
        self.kubernetes_secret(name, &secret.namespace, secret.kind.as_deref(), &data, name.span, kubernetes)
    }

    fn kubernetes_secret(
        &mut self,
        name: &str,
        namespace: &str,
        kind: Option<&str>,
        data: &[(&str, &Written<String>)],
        span: strata_diagnostics::Span,
        kubernetes: &Address,
    ) -> Option<Address> {
        let mut values = Spec::new();
        for (key, written) in data {
            // Whatever it is, in a Kubernetes secret it is one.
            values.put(key, self.secret(written)?);
        }
        let mut spec = Spec::new();
        spec.put("namespace", namespace);
        spec.put("secret", name);
        spec.put("type", kind.unwrap_or("Opaque"));
        spec.put("data", values);
        let needs = BTreeSet::from([kubernetes.clone()]);
        Some(self.of_cluster(kinds::SECRET, &format!("{namespace}-{name}"), Stage::Gitops, spec, needs, span))
    }
}
