//! The components that can be chosen, with what they need on Talos and how they differ between environments.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    Core,
    Optional,
}

impl Group {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Optional => "optional",
        }
    }
}

/// How large a cluster's environment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    Small,
    Middle,
    Spread,
}

impl Size {
    pub(super) fn of(environment: Option<&str>) -> Self {
        match environment {
            Some("prod" | "production") => Self::Spread,
            Some("staging" | "stage") => Self::Middle,
            _ => Self::Small,
        }
    }
}

pub(super) struct Component {
    pub(super) name: &'static str,
    pub(super) group: Group,
    /// The name of its Helm repository, and where that is.
    pub(super) source: (&'static str, &'static str),
    /// One major version: the next one is somebody's decision.
    pub(super) version: &'static str,
    /// Talos lets pods do little unless their namespace says otherwise.
    pub(super) privileged: bool,
    /// Below `values:`, indented by four.
    pub(super) values: &'static str,
    /// Path below the values and what stands there, as YAML on one line.
    pub(super) patches: fn(Size) -> &'static [(&'static str, &'static str)],
}

pub(super) const COMPONENTS: &[Component] = &[
    Component {
        name: "cert-manager",
        group: Group::Core,
        source: ("jetstack", "https://charts.jetstack.io"),
        version: "1.x",
        privileged: false,
        values: "    crds:\n      enabled: true\n    webhook: {}\n    cainjector: {}\n",
        patches: |size| match size {
            Size::Small => &[("resources", "{requests: {cpu: 10m, memory: 64Mi}}")],
            Size::Middle => &[("replicaCount", "1"), ("webhook/replicaCount", "2")],
            Size::Spread => &[
                ("replicaCount", "2"),
                ("webhook/replicaCount", "3"),
                ("cainjector/replicaCount", "2"),
                ("podDisruptionBudget", "{enabled: true, minAvailable: 1}"),
            ],
        },
    },
    Component {
        name: "ingress-nginx",
        group: Group::Core,
        source: ("ingress-nginx", "https://kubernetes.github.io/ingress-nginx"),
        version: "4.x",
        privileged: false,
        values: "    controller:\n      ingressClassResource:\n        default: true\n      watchIngressWithoutClass: true\n",
        patches: |size| match size {
            Size::Small => &[
                ("controller/replicaCount", "1"),
                ("controller/resources", "{requests: {cpu: 50m, memory: 128Mi}}"),
            ],
            Size::Middle => &[("controller/replicaCount", "2")],
            Size::Spread => &[
                ("controller/replicaCount", "3"),
                ("controller/minAvailable", "2"),
                (
                    "controller/topologySpreadConstraints",
                    "[{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app.kubernetes.io/name: ingress-nginx, app.kubernetes.io/component: controller}}}]",
                ),
            ],
        },
    },
    Component {
        name: "kube-prometheus-stack",
        group: Group::Optional,
        source: ("prometheus-community", "https://prometheus-community.github.io/helm-charts"),
        version: "88.x",
        // The node exporter reads the host.
        privileged: true,
        // Talos lets these listen on the loopback only: scraping them would alert for ever.
        values: "    kubeEtcd:\n      enabled: false\n    kubeControllerManager:\n      enabled: false\n    kubeScheduler:\n      enabled: false\n    kubeProxy:\n      enabled: false\n    alertmanager:\n      alertmanagerSpec: {}\n    prometheus:\n      prometheusSpec: {}\n",
        patches: |size| match size {
            Size::Small => &[
                ("prometheus/prometheusSpec/retention", "3d"),
                ("prometheus/prometheusSpec/resources", "{requests: {cpu: 100m, memory: 512Mi}}"),
            ],
            Size::Middle => &[("prometheus/prometheusSpec/retention", "7d")],
            Size::Spread => &[
                ("prometheus/prometheusSpec/retention", "30d"),
                ("prometheus/prometheusSpec/replicas", "2"),
                ("alertmanager/alertmanagerSpec/replicas", "3"),
            ],
        },
    },
];

/// The names that `gitops.infrastructure.core` takes.
pub(crate) fn core_components() -> impl Iterator<Item = &'static str> {
    names(Group::Core)
}

/// The names that `gitops.infrastructure.optional` takes.
pub fn optional_components() -> impl Iterator<Item = &'static str> {
    names(Group::Optional)
}

fn names(group: Group) -> impl Iterator<Item = &'static str> {
    COMPONENTS.iter().filter(move |component| component.group == group).map(|component| component.name)
}
