//! Talos PKI, machine config and image factory.

mod contract;
mod document;
mod shape;
mod tree;
mod yaml;
