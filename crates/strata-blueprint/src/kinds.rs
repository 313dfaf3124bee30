//! The names of the kinds that a blueprint draws. What each is like, the table of its provider says.

use strata_resource::Kind;

macro_rules! names {
    ($($constant:ident = $name:literal),* $(,)?) => {
        $(#[doc = concat!("The kind `", $name, "`.")]
        pub const $constant: Kind = Kind::named($name);)*
        /// Every kind that can be drawn.
        pub const ALL: &[Kind] = &[$($constant),*];
    };
}

names! {
    ACL = "acl",
    ACME_ACCOUNT = "acmeaccount",
    ACME_PLUGIN = "acmeplugin",
    ALIAS = "alias",
    BACKUP_JOB = "backupjob",
    BOOTSTRAP = "bootstrap",
    CERTIFICATE = "certificate",
    CIDATA = "cidata",
    CONTAINER = "container",
    DATASET = "dataset",
    DNS = "dns",
    FIREWALL = "firewall",
    FLUX = "flux",
    GROUP = "group",
    HA = "ha",
    HA_RULE = "harule",
    HOST_FIREWALL = "hostfirewall",
    HOST_OPTIONS = "hostoptions",
    IMAGE = "image",
    IPSET = "ipset",
    KUBERNETES = "kubernetes",
    MACHINE = "machine",
    MAPPING = "mapping",
    METRIC_SERVER = "metricserver",
    NETWORK = "network",
    NOTIFICATION = "notification",
    NOTIFICATION_MATCHER = "matcher",
    OPTIONS = "options",
    POOL = "pool",
    REALM = "realm",
    REALM_SYNC = "realmsync",
    REPLICATION = "replication",
    REPOSITORIES = "repositories",
    ROLE = "role",
    SCHEMATIC = "schematic",
    SDN = "sdn",
    SDN_DNS = "sdndns",
    SDN_IPAM = "sdnipam",
    SECRET = "secret",
    SECURITY_GROUP = "securitygroup",
    STORAGE = "storage",
    SYNC = "sync",
    TEMPLATE = "template",
    TIMEZONE = "timezone",
    TOKEN = "token",
    USER = "user",
    VM = "vm",
}
