//! Flux from nothing: definitions before what needs them, then source, Kustomization and secrets; and what is live of it.

use serde_json::json;
use strata_kubernetes::flux::{
    AgeKeyError, AgeProof, FluxInstall, FluxSync, GitRef, Phase, age_secret, prove_age_key,
};
use strata_kubernetes::{ApplyOptions, Guarded, Patience};
use strata_net::WritePermit;
use strata_secret::{SecretBytes, SecretString};
use strata_secrets::OsRandom;
use strata_secrets::sops::{self, CreationRules, Format};

use crate::api::{Api, silent};

const MANIFESTS: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: flux-system}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: source-controller, namespace: flux-system, labels: {app.kubernetes.io/part-of: flux, app.kubernetes.io/version: v2.9.5}}
spec: {replicas: 1, template: {spec: {containers: [{name: manager, image: 'ghcr.io/fluxcd/source-controller:v1.9.4'}]}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gitrepositories.source.toolkit.fluxcd.io}
spec: {group: source.toolkit.fluxcd.io}
";

fn sync() -> FluxSync {
    FluxSync::new(
        "https://git.example/me/infra",
        GitRef::Branch("main".to_owned()),
        "infrastructure/core/overlays/homelab",
    )
}

/// The server serves a definition's kind a moment after it was applied, and sets its condition then.
fn establish(api: &Api) {
    let mut looks = 0;
    api.with(|state| {
        state.hook = Some(Box::new(move |asked, state| {
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gitrepositories.source.toolkit.fluxcd.io";
            if asked.method == "GET" && asked.path == path {
                looks += 1;
                if looks == 3 {
                    state.objects.get_mut(path)?["status"] = json!({"conditions": [{"type": "Established", "status": "True"}]});
                    state.add_kind("source.toolkit.fluxcd.io/v1", "gitrepositories", "GitRepository", true);
                    state.add_kind("kustomize.toolkit.fluxcd.io/v1", "kustomizations", "Kustomization", true);
                }
            }
            None
        }));
    });
}

#[tokio::test]
async fn installs_in_order_and_reads_back() {
    let api = Api::start().await;
    let client = api.client();
    assert!(!client.observe_flux().await.unwrap().is_installed());
    establish(&api);
    let install = FluxInstall::parse(MANIFESTS.as_bytes()).unwrap();
    let free = || Ok::<_, String>(WritePermit::unbound());
    client
        .install_flux(
            &install,
            ApplyOptions { force: true, dry_run: false },
            Patience::seconds(60),
            &free,
            &silent,
        )
        .await
        .unwrap();
    let writes: Vec<_> = api.log().into_iter().filter(|line| line.starts_with("PATCH")).collect();
    assert_eq!(
        writes,
        [
            "PATCH /api/v1/namespaces/flux-system",
            "PATCH /apis/apiextensions.k8s.io/v1/customresourcedefinitions/gitrepositories.source.toolkit.fluxcd.io",
            "PATCH /apis/apps/v1/namespaces/flux-system/deployments/source-controller",
        ]
    );
    let error =
        client.wait_for_phase(&install, Phase::Rest, Patience::seconds(10), &silent).await.unwrap_err();
    assert!(error.to_string().contains("0 of 1 replicas"), "{error}");

    for object in sync().objects() {
        client.apply(&WritePermit::unbound(), &object, ApplyOptions::default()).await.unwrap();
    }
    let live = client.observe_flux().await.unwrap();
    assert_eq!(live.version.as_deref(), Some("v2.9.5"));
    assert!(live.runs(&install));
    let (source, kustomization) = (live.source.unwrap(), live.kustomization.unwrap());
    assert!(source.follows(&sync()) && kustomization.applies(&sync()));
    let other = FluxSync { path: "elsewhere".to_owned(), reference: GitRef::Tag("v1".to_owned()), ..sync() };
    assert!(!source.follows(&other) && !kustomization.applies(&other));
    assert_ne!(other.digest(), sync().digest());
}

#[tokio::test]
async fn an_installation_can_be_stopped_and_gone_on_with() {
    let api = Api::start().await;
    establish(&api);
    let client = api.client();
    let install = FluxInstall::parse(MANIFESTS.as_bytes()).unwrap();
    let left = std::sync::atomic::AtomicI32::new(1);
    let guard = || match left.fetch_sub(1, std::sync::atomic::Ordering::Relaxed) {
        1.. => Ok(WritePermit::unbound()),
        _ => Err("stop"),
    };
    let options = ApplyOptions::default();
    let stopped = client.install_flux(&install, options, Patience::seconds(60), &guard, &silent).await;
    assert!(matches!(stopped, Err(Guarded::Stopped("stop"))));
    assert_eq!(api.log().iter().filter(|line| line.starts_with("PATCH")).count(), 1);
    let free = || Ok::<_, String>(WritePermit::unbound());
    client.install_flux(&install, options, Patience::seconds(60), &free, &silent).await.unwrap();
}

fn identity() -> (SecretString, String) {
    let identity = age::x25519::Identity::generate();
    let text = format!("# a comment\n{}\n", age::secrecy::ExposeSecret::expose_secret(&identity.to_string()));
    (SecretString::new(text), identity.to_public().to_string())
}

fn encrypted_for(recipient: &str) -> Vec<u8> {
    let rules = CreationRules::parse(&format!("creation_rules:\n  - age: {recipient}\n")).unwrap();
    let rule = rules.for_path(std::path::Path::new("a.sops.yaml")).unwrap();
    let plain = SecretBytes::new(b"password: hunter2\n".as_slice());
    sops::encrypt(&plain, Format::Yaml, &rule.settings, jiff::Timestamp::UNIX_EPOCH, &mut OsRandom).unwrap()
}

#[test]
fn the_age_key_must_open_a_file_of_the_repository() {
    let ((key, recipient), (other, other_recipient)) = (identity(), identity());
    let plain = ("kustomization.yaml", b"resources: []\n".to_vec());
    let file = ("apps/secret.sops.yaml", encrypted_for(&recipient));
    assert_eq!(
        prove_age_key(&key, [plain.clone(), file.clone()]),
        Ok(AgeProof::Opened("apps/secret.sops.yaml".to_owned()))
    );
    assert_eq!(prove_age_key(&key, [plain.clone()]), Ok(AgeProof::NothingEncrypted));
    let error = prove_age_key(&other, [plain, file]).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "the age key `{other_recipient}` opens none of the 1 encrypted files of the repository; `apps/secret.sops.yaml` is encrypted for `{recipient}`"
        )
    );
    assert!(error.hint().is_some());
    let wrong = prove_age_key(&SecretString::from("hunter2"), [("a", b"b")]).unwrap_err();
    assert!(matches!(&wrong, AgeKeyError::NotAKey(reason) if !reason.contains("hunter2")), "{wrong}");
    let damaged = String::from_utf8(encrypted_for(&recipient))
        .unwrap()
        .replace("mac: ENC[AES256_GCM,data:", "mac: ENC[AES256_GCM,data:AA");
    let error = prove_age_key(&key, [("a.sops.yaml", damaged)]).unwrap_err();
    assert!(matches!(error, AgeKeyError::Damaged { .. }), "{error}");
    let secret = age_secret(&key);
    assert_eq!(secret.reference().to_string(), "Secret `flux-system/sops-age`");
    assert!(secret.data.contains_key("age.agekey"));
}
