//! The parts that virtual machines, templates and containers are described with.

pub mod cloud_init;
pub mod container;
pub mod device;
pub mod disk;
pub mod firewall;
pub mod guest;
pub mod hardware;
pub mod image;
pub mod network;
pub mod profile;
pub mod template;
pub mod vm;
