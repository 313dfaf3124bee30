//! Repositories as a whole: what is read, and what is reported.

mod by_hand;
mod clusters;
mod collisions;
mod environments;
mod examples;
mod flat;
mod hypervisors;
mod mistakes;
mod references;
mod reuse;
mod schemas;
mod selection;
mod stacks;

use strata_diagnostics::{Color, Diagnostics, render};
use strata_source::Repository;
use strata_source::world::Memory;

/// Settings that every test can build on.
pub(crate) const SETTINGS: &str = "\
repository: demo1234
targets:
  pve: {proxmox: {endpoint: 'https://192.0.2.10:8006', token: {env: TOKEN}}}
";

/// A checksum that looks like one.
pub(crate) fn checksum() -> String {
    format!("sha512:{}", "0f".repeat(64))
}

/// A repository with the usual settings and one stack called `web`.
pub(crate) fn web(stack: &str) -> Memory {
    let stack = format!("metadata: {{name: web}}\nproxmox: {{target: pve, node: pve1}}\n{stack}");
    Memory::new().file("strata.yaml", SETTINGS).file("stacks/web/stack.yaml", stack)
}

pub(crate) fn load(world: &Memory) -> (Repository, String) {
    let (repository, diagnostics) = Repository::load(world);
    let shown = show(&repository, &diagnostics);
    (repository, shown)
}

/// Loads what must be without a mistake.
pub(crate) fn clean(world: &Memory) -> Repository {
    let (repository, mistakes) = load(world);
    assert_eq!(mistakes, "");
    repository
}

/// Everything that is wrong, as a person sees it.
pub(crate) fn mistakes(world: &Memory) -> String {
    load(world).1
}

pub(crate) fn show(repository: &Repository, diagnostics: &Diagnostics) -> String {
    let shown: Vec<String> =
        diagnostics.iter().map(|one| render(one, &repository.sources, Color::Never)).collect();
    shown.join("\n")
}
