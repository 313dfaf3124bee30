//! The cells of built-in types.

use serde_json::{Value, json};

use super::super::cluster::Moment;
use super::super::object::{has_condition, int, is_terminating, list, name as name_of, pairs, text};
use super::Made;

pub(super) fn name(object: &Value, _: &Moment) -> Value {
    json!(name_of(object))
}

pub(super) fn created(object: &Value, _: &Moment) -> Value {
    json!(text(object, "/metadata/creationTimestamp"))
}

const AGE: Made = ("Age", "string", 0, age);

/// The columns of a type after the name, by its plural.
pub(super) fn of(plural: &str) -> &'static [Made] {
    match plural {
        "nodes" => &[
            ("Status", "string", 0, node_status),
            ("Roles", "string", 0, roles),
            AGE,
            ("Version", "string", 0, |node, _| json!(text(node, "/status/nodeInfo/kubeletVersion"))),
            ("Internal-IP", "string", 1, |node, _| address(node, "InternalIP")),
            ("External-IP", "string", 1, |node, _| address(node, "ExternalIP")),
            ("OS-Image", "string", 1, |node, _| json!(text(node, "/status/nodeInfo/osImage"))),
            ("Kernel-Version", "string", 1, |node, _| json!(text(node, "/status/nodeInfo/kernelVersion"))),
            ("Container-Runtime", "string", 1, |node, _| {
                json!(text(node, "/status/nodeInfo/containerRuntimeVersion"))
            }),
        ],
        "pods" => &[
            ("Ready", "string", 0, pod_ready),
            ("Status", "string", 0, pod_status),
            ("Restarts", "string", 0, restarts),
            AGE,
            ("IP", "string", 1, |pod, _| or_none(text(pod, "/status/podIP"))),
            ("Node", "string", 1, |pod, _| or_none(text(pod, "/spec/nodeName"))),
            ("Nominated Node", "string", 1, |_, _| json!("<none>")),
            ("Readiness Gates", "string", 1, |_, _| json!("<none>")),
        ],
        "namespaces" | "persistentvolumeclaims" | "persistentvolumes" => {
            &[("Status", "string", 0, |object, _| json!(text(object, "/status/phase"))), AGE]
        }
        "deployments" => &[
            ("Ready", "string", 0, |d, _| ratio(d, "/status/readyReplicas", "/spec/replicas")),
            ("Up-to-date", "integer", 0, |d, _| json!(int(d, "/status/updatedReplicas"))),
            ("Available", "integer", 0, |d, _| json!(int(d, "/status/availableReplicas"))),
            AGE,
            ("Containers", "string", 1, |d, _| containers(d, "/name")),
            ("Images", "string", 1, |d, _| containers(d, "/image")),
            ("Selector", "string", 1, |d, _| selector(d, "/spec/selector/matchLabels")),
        ],
        "statefulsets" => {
            &[("Ready", "string", 0, |s, _| ratio(s, "/status/readyReplicas", "/spec/replicas")), AGE]
        }
        "replicasets" => &[
            ("Desired", "integer", 0, |r, _| json!(int(r, "/spec/replicas"))),
            ("Current", "integer", 0, |r, _| json!(int(r, "/status/replicas"))),
            ("Ready", "integer", 0, |r, _| json!(int(r, "/status/readyReplicas"))),
            AGE,
        ],
        "daemonsets" => &[
            ("Desired", "integer", 0, |d, _| json!(int(d, "/status/desiredNumberScheduled"))),
            ("Current", "integer", 0, |d, _| json!(int(d, "/status/currentNumberScheduled"))),
            ("Ready", "integer", 0, |d, _| json!(int(d, "/status/numberReady"))),
            ("Up-to-date", "integer", 0, |d, _| json!(int(d, "/status/updatedNumberScheduled"))),
            ("Available", "integer", 0, |d, _| json!(int(d, "/status/numberAvailable"))),
            ("Node Selector", "string", 0, |d, _| selector(d, "/spec/template/spec/nodeSelector")),
            AGE,
        ],
        "services" => &[
            ("Type", "string", 0, |s, _| json!(text(s, "/spec/type"))),
            ("Cluster-IP", "string", 0, |s, _| or_none(text(s, "/spec/clusterIP"))),
            ("External-IP", "string", 0, |_, _| json!("<none>")),
            ("Port(s)", "string", 0, ports),
            AGE,
            ("Selector", "string", 1, |s, _| selector(s, "/spec/selector")),
        ],
        "secrets" => &[
            ("Type", "string", 0, |s, _| json!(text(s, "/type"))),
            ("Data", "string", 0, |s, _| json!(size(s, "/data").to_string())),
            AGE,
        ],
        "configmaps" => &[
            ("Data", "string", 0, |c, _| json!((size(c, "/data") + size(c, "/binaryData")).to_string())),
            AGE,
        ],
        "customresourcedefinitions" => &[("Created At", "date", 0, created)],
        "poddisruptionbudgets" => &[
            ("Min Available", "string", 0, |b, _| number_or_text(b, "/spec/minAvailable")),
            ("Max Unavailable", "string", 0, |b, _| number_or_text(b, "/spec/maxUnavailable")),
            ("Allowed Disruptions", "integer", 0, |b, _| json!(int(b, "/status/disruptionsAllowed"))),
            AGE,
        ],
        _ => &[AGE],
    }
}

fn age(object: &Value, moment: &Moment) -> Value {
    let created = text(object, "/metadata/creationTimestamp").parse::<jiff::Timestamp>();
    let Ok(created) = created else { return json!("<unknown>") };
    json!(duration(moment.ms / 1000 - created.as_second()))
}

/// A time that has passed, in one or two units: the longer ago, the less exactly.
fn duration(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |large: i64, unit: char, small: i64, rest: char| match small {
        0 => format!("{large}{unit}"),
        _ => format!("{large}{unit}{small}{rest}"),
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => two(minutes, 'm', seconds % 60, 's'),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, 'h', minutes % 60, 'm'),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, 'd', hours % 24, 'h'),
        691_200..63_072_000 => format!("{days}d"),
        _ => two(days / 365, 'y', days % 365, 'd'),
    }
}

fn or_none(text: &str) -> Value {
    json!(if text.is_empty() { "<none>" } else { text })
}

fn size(object: &Value, pointer: &str) -> usize {
    object.pointer(pointer).and_then(Value::as_object).map_or(0, serde_json::Map::len)
}

fn number_or_text(object: &Value, pointer: &str) -> Value {
    match object.pointer(pointer) {
        Some(Value::String(text)) => json!(text),
        Some(other) => json!(other.to_string()),
        None => json!("N/A"),
    }
}

fn ratio(object: &Value, part: &str, whole: &str) -> Value {
    json!(format!("{}/{}", int(object, part), int(object, whole)))
}

fn containers(object: &Value, pointer: &str) -> Value {
    let all = list(object, "/spec/template/spec/containers").iter().map(|c| text(c, pointer));
    json!(all.collect::<Vec<_>>().join(","))
}

fn selector(object: &Value, pointer: &str) -> Value {
    let all: Vec<String> = pairs(object.pointer(pointer)).map(|(k, v)| format!("{k}={v}")).collect();
    or_none(&all.join(","))
}

fn ports(service: &Value, _: &Moment) -> Value {
    let port = |port: &Value| {
        let protocol = match text(port, "/protocol") {
            "" => "TCP",
            protocol => protocol,
        };
        format!("{}/{protocol}", int(port, "/port"))
    };
    or_none(&list(service, "/spec/ports").iter().map(port).collect::<Vec<_>>().join(","))
}

fn node_status(node: &Value, _: &Moment) -> Value {
    let mut words = vec![if has_condition(node, "Ready", "True") { "Ready" } else { "NotReady" }];
    if node["spec"]["unschedulable"] == true {
        words.push("SchedulingDisabled");
    }
    json!(words.join(","))
}

fn roles(node: &Value, _: &Moment) -> Value {
    let labels = pairs(node.pointer("/metadata/labels"));
    let roles: Vec<&str> =
        labels.filter_map(|(key, _)| key.strip_prefix("node-role.kubernetes.io/")).collect();
    or_none(&roles.join(","))
}

fn address(node: &Value, kind: &str) -> Value {
    let found = list(node, "/status/addresses").iter().find(|address| address["type"] == kind);
    or_none(found.map_or("", |address| text(address, "/address")))
}

fn pod_ready(pod: &Value, _: &Moment) -> Value {
    let ready =
        list(pod, "/status/containerStatuses").iter().filter(|status| status["ready"] == true).count();
    json!(format!("{ready}/{}", list(pod, "/spec/containers").len()))
}

fn pod_status(pod: &Value, _: &Moment) -> Value {
    if is_terminating(pod) {
        return json!("Terminating");
    }
    let waiting =
        list(pod, "/status/containerStatuses").iter().map(|status| text(status, "/state/waiting/reason"));
    let reason = waiting.into_iter().find(|reason| !reason.is_empty());
    let phase = text(pod, "/status/phase");
    json!(reason.unwrap_or(if phase.is_empty() { "Pending" } else { phase }))
}

fn restarts(pod: &Value, _: &Moment) -> Value {
    let all = list(pod, "/status/containerStatuses").iter().map(|status| int(status, "/restartCount"));
    json!(all.sum::<i64>().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        for (seconds, shown) in [
            (5, "5s"),
            (119, "119s"),
            (120, "2m"),
            (150, "2m30s"),
            (3600, "60m"),
            (11_000, "3h3m"),
            (90_000, "25h"),
            (200_000, "2d7h"),
            (800_000, "9d"),
        ] {
            assert_eq!(duration(seconds), shown);
        }
    }
}
