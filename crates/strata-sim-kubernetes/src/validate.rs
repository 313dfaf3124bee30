//! Checks that an object must pass before it is kept: names, what must be there, what must not change.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::failure::{Cause, Failure, Outcome, bad_request, invalid};
use super::object::{name, pairs, text};
use super::resource::Resource;
use super::selector::Selector;

/// RFC 1123 in lower case, with dots between labels.
pub fn is_subdomain(name: &str) -> bool {
    name.len() <= 253 && !name.is_empty() && name.split('.').all(is_label)
}

pub fn is_label(label: &str) -> bool {
    let edge = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let bytes = label.as_bytes();
    bytes.len() <= 63
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-')
}

/// What every object must have.
pub fn check(resource: &Resource, old: Option<&Value>, new: &Value) -> Outcome<()> {
    let mut causes = Vec::new();
    let named = name(new);
    let loose = resource.group == "rbac.authorization.k8s.io";
    if named.is_empty() {
        let message = "Required value: name or generateName is required".to_owned();
        causes.push(Cause { field: "metadata.name".to_owned(), reason: "FieldValueRequired", message });
    } else if resource.plural == "namespaces" && !is_label(named) {
        causes.push(Cause::invalid("metadata.name", &json!(named), LABEL));
    } else if !loose && !is_subdomain(named) {
        causes.push(Cause::invalid("metadata.name", &json!(named), SUBDOMAIN));
    }
    for (key, value) in pairs(new.pointer("/metadata/labels")) {
        let fine = value.len() <= 63
            && value.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
        if !fine || key.is_empty() {
            causes.push(Cause::invalid("metadata.labels", &json!(value), LABEL_VALUE));
        }
    }
    if !resource.custom {
        builtin(resource, old, new, &mut causes)?;
    }
    if causes.is_empty() { Ok(()) } else { Err(invalid(resource, named, &causes)) }
}

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

fn builtin(resource: &Resource, old: Option<&Value>, new: &Value, causes: &mut Vec<Cause>) -> Outcome<()> {
    let immutable = |pointer: &str| old.is_some_and(|old| old.pointer(pointer) != new.pointer(pointer));
    match resource.plural.as_str() {
        "deployments" | "daemonsets" | "statefulsets" | "replicasets" => {
            let selector = &new["spec"]["selector"];
            if selector.as_object().is_none_or(serde_json::Map::is_empty) {
                causes.push(Cause::required("spec.selector"));
            } else if !Selector::from_object(selector).matches(&new["spec"]["template"]) {
                let why = "`selector` does not match template `labels`";
                let labels = new.pointer("/spec/template/metadata/labels").unwrap_or(&Value::Null);
                causes.push(Cause::invalid("spec.template.metadata.labels", labels, why));
            }
            if immutable("/spec/selector") {
                causes.push(Cause::invalid("spec.selector", selector, "field is immutable"));
            }
            containers(&new["spec"]["template"]["spec"], "spec.template.spec", causes);
        }
        "pods" => containers(&new["spec"], "spec", causes),
        "secrets" => {
            if immutable("/type") {
                causes.push(Cause::invalid("type", &new["type"], "field is immutable"));
            }
            for (key, value) in new["data"].as_object().into_iter().flatten() {
                if value.as_str().is_none_or(|text| STANDARD.decode(text).is_err()) {
                    let message = format!(
                        "Secret in version \"v1\" cannot be handled as a Secret: illegal base64 data at input byte 0 (key {key:?})"
                    );
                    return Err(bad_request(message));
                }
            }
        }
        "configmaps" => {
            if let Some((key, _)) =
                new["data"].as_object().into_iter().flatten().find(|(_, v)| !v.is_string())
            {
                let message = format!(
                    "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal into Go struct field ConfigMap.data of type string (key {key:?})"
                );
                return Err(bad_request(message));
            }
        }
        "customresourcedefinitions" => {
            let expected = format!("{}.{}", text(new, "/spec/names/plural"), text(new, "/spec/group"));
            if name(new) != expected {
                let why = format!("must be spec.names.plural+\".\"+spec.group ({expected})");
                causes.push(Cause::invalid("metadata.name", &json!(name(new)), &why));
            }
            if super::object::list(new, "/spec/versions").iter().filter(|v| v["storage"] == true).count() != 1
            {
                let why = "must have exactly one version marked as storage version";
                causes.push(Cause::invalid("spec.versions", &new["spec"]["versions"], why));
            }
        }
        "clusterrolebindings" | "rolebindings" => {
            if text(new, "/roleRef/name").is_empty() {
                causes.push(Cause::required("roleRef.name"));
            }
            if immutable("/roleRef") {
                causes.push(Cause::invalid("roleRef", &new["roleRef"], "cannot change roleRef"));
            }
        }
        "services" if super::object::list(new, "/spec/ports").is_empty() => {
            let headless =
                text(new, "/spec/clusterIP") == "None" || text(new, "/spec/type") == "ExternalName";
            if !headless {
                causes.push(Cause::required("spec.ports"));
            }
        }
        _ => {}
    }
    Ok(())
}

fn containers(spec: &Value, at: &str, causes: &mut Vec<Cause>) {
    let containers = super::object::list(spec, "/containers");
    if containers.is_empty() {
        causes.push(Cause::required(format!("{at}.containers")));
    }
    for (index, container) in containers.iter().enumerate() {
        for member in ["name", "image"] {
            if text(container, &format!("/{member}")).is_empty() {
                causes.push(Cause::required(format!("{at}.containers[{index}].{member}")));
            }
        }
    }
}

/// The namespace must be there and stay.
pub fn check_namespace(
    namespace: Option<&Value>,
    named: &str,
    resource: &Resource,
    new: &str,
) -> Outcome<()> {
    let namespaces = super::resource::of("namespaces");
    let Some(namespace) = namespace else { return Err(super::failure::not_found(&namespaces, named)) };
    if super::object::is_terminating(namespace) {
        let message = format!(
            "{} \"{new}\" is forbidden: unable to create new content in namespace {named} because it is being terminated",
            resource.qualified()
        );
        let cause = json!({ "reason": "NamespaceTerminating",
            "message": format!("namespace {named} is being terminated"), "field": "metadata.namespace" });
        return Err(Failure::new(403, "Forbidden", message).with_causes(vec![cause]));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_domain_name_system() {
        assert!(is_subdomain("flux-system") && is_subdomain("a.b-c.d") && is_label("x1"));
        assert!(!is_subdomain("Flux") && !is_subdomain("-a") && !is_subdomain("a..b") && !is_label("a.b"));
    }
}
