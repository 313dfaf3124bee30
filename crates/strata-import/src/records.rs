//! The records of the source that imports write. Their keys are constants of theirs, and there are no others here.

pub(crate) use strata_source::cluster::gitops::{Flux, Gitops, Infrastructure};
pub(crate) use strata_source::cluster::topology::{
    ClusterNode, NodeSettings, NodesFile, Pool, Resources, Topology,
};
pub(crate) use strata_source::cluster::{
    Cluster, ClusterNetwork, ClusterProxmox, ClusterSpec, ClusterVm, Kubernetes, ProxmoxNetwork, Schematic,
    Talos,
};
pub(crate) use strata_source::hypervisor::access::{AclEntry, Token, User};
pub(crate) use strata_source::hypervisor::network::{DnsSettings, HostInterface};
pub(crate) use strata_source::hypervisor::storage::Storage;
pub(crate) use strata_source::hypervisor::{
    Alias, DatacenterFirewall, GuestPool, Hypervisor, HypervisorProxmox, IpSet, MappedDevice, Mapping,
    SecurityGroup,
};
pub(crate) use strata_source::machine::cloud_init::CloudInit;
pub(crate) use strata_source::machine::container::{
    Console, Container, ContainerNic, Features, MountPoint, RootFs,
};
pub(crate) use strata_source::machine::device::{Agent, Efi, Pci, Tpm, Usb, Vga};
pub(crate) use strata_source::machine::disk::Disk;
pub(crate) use strata_source::machine::firewall::{Firewall, FirewallRule};
pub(crate) use strata_source::machine::guest::{Guest, Startup, Timeouts};
pub(crate) use strata_source::machine::hardware::{Cpu, Hardware};
pub(crate) use strata_source::machine::image::Image;
pub(crate) use strata_source::machine::network::Nic;
pub(crate) use strata_source::machine::template::Template;
pub(crate) use strata_source::machine::vm::{CloneMode, Vm};
pub(crate) use strata_source::settings::state::State;
pub(crate) use strata_source::settings::target::{ProxmoxTarget, Target, Tls};
pub(crate) use strata_source::settings::{SecretSource, Settings};
pub(crate) use strata_source::stack::{Metadata, Stack, StackProxmox, StorageDefaults};
