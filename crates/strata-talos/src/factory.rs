//! The image factory: schematics, their ids, and the names of images.

/// The installer that talosctl 1.14.1 names where nobody does: no extensions, bare metal.
pub(crate) const DEFAULT_INSTALLER: &str = "factory.talos.dev/metal-installer/376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba:v1.14.1";
