//! The modules that no rendered project is made of alone: templates with an image of their own, Talos, Flux, and the clouds.

use crate::variable::Default::{
    Bool as DefaultBool, EmptyList, EmptyMap, Int as DefaultInt, Text as DefaultText,
};
use crate::variable::Type::{Bool, List, Map, Number, Object, Text};
use crate::variable::{Variable, may, must};

/// What a template takes beside the inputs of a VM.
pub(super) const IMAGE: Variable = Variable::optional(
    "image",
    Object(&[
        must("url", Text),
        must("datastore_id", Text),
        must("file_name", Text),
        may("content_type", Text),
        may("checksum", Text),
        may("checksum_algorithm", Text),
    ]),
    "The disk image that `scsi0` begins as a copy of, where the module shall download it",
);

pub(super) const TALOS: &[Variable] = &[
    Variable::required("cluster_name", Text, "The name of the cluster"),
    Variable::required("cluster_endpoint", Text, "The address of the Kubernetes API: `https://host:6443`")
        .valid_if("startswith(var.cluster_endpoint, \"https://\")", "The endpoint begins with https://."),
    Variable::required("talos_version", Text, "The version of Talos, such as `v1.13.9`"),
    Variable::optional("kubernetes_version", Text, "The version of Kubernetes, without the `v`"),
    Variable::required(
        "nodes",
        Map(&Object(&[
            must("role", Text),
            must("address", Text),
            may("install_disk", Text),
            may("install_image", Text),
            may("patches", List(&Text)),
        ])),
        "The machines by name; they wait in maintenance mode or run already",
    )
    .valid_if(
        "alltrue([for node in values(var.nodes) : contains([\"controlplane\", \"worker\"], node.role)])",
        "A node is a controlplane or a worker.",
    ),
    Variable::optional("config_patches", List(&Text), "Changes to the configuration of every machine")
        .or(EmptyList),
    Variable::optional(
        "control_plane_patches",
        List(&Text),
        "Changes to the configuration of control planes",
    )
    .or(EmptyList),
];

pub(super) const FLUX: &[Variable] = &[
    Variable::required("git_url", Text, "The git repository that Flux follows"),
    Variable::optional("git_branch", Text, "The branch").or(DefaultText("main")),
    Variable::required("git_path", Text, "The folder in it"),
    Variable::optional("interval", Text, "How often it looks").or(DefaultText("10m")),
    Variable::optional(
        "git_credentials",
        Map(&Text),
        "What the repository is read with: `username` and `password`, or `identity` and `known_hosts`",
    )
    .or(EmptyMap)
    .sensitive(),
    Variable::optional(
        "age_key",
        Text,
        "The age key that decrypts the repository's secrets; it ends up in the state",
    )
    .sensitive(),
    Variable::optional("chart_repository", Text, "Where the charts are")
        .or(DefaultText("https://fluxcd-community.github.io/helm-charts")),
    Variable::optional("chart_version", Text, "The version of the chart of the controllers")
        .or(DefaultText("~2.17")),
    Variable::optional("sync_chart_version", Text, "The version of the chart of the sync")
        .or(DefaultText("~1.13")),
];

pub(super) const AWS: &[Variable] = &[
    Variable::required("name", Text, "The name of the instance"),
    Variable::required("ami_id", Text, "The image")
        .valid_if("startswith(var.ami_id, \"ami-\")", "The id of an image begins with ami-."),
    Variable::required("instance_type", Text, "The size, such as `t3.small`"),
    Variable::optional("subnet_id", Text, "The subnet; otherwise the default one"),
    Variable::optional("security_group_ids", List(&Text), "Security groups").or(EmptyList),
    Variable::optional("key_name", Text, "The key pair that may log in"),
    Variable::optional("public_ip", Bool, "Whether it has an address on the internet").or(DefaultBool(false)),
    Variable::optional("private_ip", Text, "A fixed address inside its network"),
    Variable::optional("disk_size", Number, "The disk in GiB").or(DefaultInt(20)),
    Variable::optional("disk_type", Text, "The kind of disk").or(DefaultText("gp3")),
    Variable::optional("user_data", Text, "What cloud-init configures at its first boot"),
    Variable::optional("protection", Bool, "Whether AWS refuses to remove it").or(DefaultBool(false)),
    Variable::optional("tags", Map(&Text), "Tags").or(EmptyMap),
];

pub(super) const OCI: &[Variable] = &[
    Variable::required("name", Text, "The name of the instance"),
    Variable::required("compartment_id", Text, "The compartment"),
    Variable::required("availability_domain", Text, "The availability domain"),
    Variable::required("shape", Text, "The size, such as `VM.Standard.A1.Flex`"),
    Variable::optional("ocpus", Number, "Processors of a flexible shape"),
    Variable::optional("memory_gb", Number, "Memory of a flexible shape in GiB"),
    Variable::required("image_id", Text, "The image"),
    Variable::required("subnet_id", Text, "The subnet"),
    Variable::optional("security_group_ids", List(&Text), "Network security groups").or(EmptyList),
    Variable::optional("public_ip", Bool, "Whether it has an address on the internet").or(DefaultBool(false)),
    Variable::optional("private_ip", Text, "A fixed address inside its network"),
    Variable::optional("disk_size", Number, "The disk in GiB").or(DefaultInt(50)),
    Variable::optional("ssh_keys", List(&Text), "Keys that may log in").or(EmptyList),
    Variable::optional("user_data", Text, "What cloud-init configures at its first boot"),
    Variable::optional("tags", Map(&Text), "Tags").or(EmptyMap),
];
