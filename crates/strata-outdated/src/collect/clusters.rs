//! Versions of clusters: Talos, Kubernetes, Flux.

use strata_source::EffectiveStack;
use strata_talos::Version;

use super::Pins;
use crate::pin::{At, Group, What};

pub(super) fn of(pins: &mut Pins<'_>, stack: &EffectiveStack) {
    let Some(cluster) = stack.cluster() else { return };
    let talos = &cluster.cluster.talos;
    let kubernetes = cluster.cluster.kubernetes.as_ref().and_then(|kubernetes| kubernetes.version.as_ref());
    let read = |text: &str| text.parse::<Version>().ok();
    let schematic = talos.schematic.as_ref();
    let extensions = schematic.iter().flat_map(|schematic| &schematic.extensions);
    let what = What::Talos {
        kubernetes: kubernetes.and_then(|version| read(version)).into_iter().collect(),
        extensions: extensions.map(|name| name.value.clone()).collect(),
    };
    pins.add(stack, Group::Talos, "talos", &talos.version, what);
    if let Some(version) = kubernetes {
        let what = What::Kubernetes { talos: read(&talos.version).into_iter().collect() };
        pins.add(stack, Group::Kubernetes, "kubernetes", version, what);
    }
    let Some(flux) = cluster.gitops.as_ref().and_then(|gitops| gitops.flux.as_ref()) else { return };
    let Some(version) = &flux.version else { return };
    let manifests = flux.manifests.as_ref();
    let checksum = manifests.and_then(|manifests| manifests.checksum.clone());
    let elsewhere = manifests.is_some_and(|own| own.url.is_some() || own.file.is_some());
    // `manifests: {checksum: …}` stands beside `version`.
    let at = checksum.as_ref().and_then(|sum| beside_version(pins, version, &sum.to_string()));
    let unplaced = checksum.is_some() && at.is_none();
    let what = What::Flux { checksum: at.zip(checksum), elsewhere: elsewhere || unplaced };
    pins.add(stack, Group::Flux, "flux", version, what);
}

fn beside_version(pins: &Pins<'_>, version: &strata_yaml::Spanned<String>, sum: &str) -> Option<At> {
    let file = pins.repository.sources.file(version.span.file);
    let mut path = strata_yaml::edit::path_at(file.text(), version.span.range().start).ok()?;
    path.pop();
    path.extend(["manifests".into(), "checksum".into()]);
    let value = strata_yaml::edit::value_of(file.text()).ok()?;
    let written = path.iter().try_fold(&value, |value, step| match step {
        strata_yaml::edit::Step::Key(key) => value.get(key),
        strata_yaml::edit::Step::Index(index) => value.get(index),
    })?;
    written.as_str().filter(|written| written.eq_ignore_ascii_case(sum))?;
    Some(At::Yaml(path))
}
