//! A NoCloud ISO for one VM. The hash of its content is part of its name, so a change is another volume. Every file is a secret here: the
//! state holds a digest of it, never the text.

use strata_resource::kind;

use super::volume::VOLUME;

kind! {
    /// A NoCloud ISO that Strata makes and uploads, for one VM.
    "cidata" {
        ..VOLUME
    }
    /// the volume
    "volume": Text => Replace [because("the cloud-init data changed")];
    /// the storage that it is on
    "storage": Text => Replace [because("the ISO belongs on another storage")];
    /// the hypervisor that has it
    "node": Text => Replace [because("the storage is not shared between hypervisors")];
    /// the storage is the same on every hypervisor
    "shared": Bool => CreateOnly;
    /// the VM that it is for
    "vmid": Int => InPlace;
    /// its files, by name
    "files": Map => CreateOnly [write_only];
    /// user-data, meta-data, vendor-data, network-config
    "files.*": Text => CreateOnly [write_only];
    /// its size
    "size": Int => CreateOnly [bytes];
}
