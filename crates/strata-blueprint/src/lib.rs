//! Turns a stack into its resource graph: cluster to images, VMs, machine configs, bootstrap, Flux.
