//! `strata version`.

use std::collections::BTreeMap;
use std::process::ExitCode;

use strata_events::Event;
use strata_talos::Contract;

use super::CommandResult;
use crate::context::Context;

/// Says which release this is, from which commit, with which features, and which versions of others it works with
#[derive(clap::Args)]
pub(crate) struct Args {}

/// The releases of Proxmox VE that the simulator is and the tests run against.
const PROXMOX: &str = "8.4 to 9.1";

pub(crate) fn run(context: &Context, _args: &Args) -> CommandResult {
    let release = env!("CARGO_PKG_VERSION");
    // A build by hand records none.
    let commit = option_env!("STRATA_COMMIT").filter(|commit| !commit.is_empty());
    let features = if cfg!(feature = "sim") { vec!["sim"] } else { Vec::new() };
    let (first, last) = (Contract::ALL[0], Contract::LATEST);
    let oldest = first.kubernetes_range();
    let newest = last.kubernetes_range();
    let kubernetes = [oldest.split(' ').next(), newest.rsplit(' ').next()].map(Option::unwrap_or_default);
    let (major, minor) = strata_tofu::REQUIRED_VERSION;
    let supported = BTreeMap::from([
        ("Proxmox VE", PROXMOX.to_owned()),
        ("Talos", format!("{first} to {last}")),
        ("Kubernetes", format!("{}, each by its Talos", kubernetes.join(" to "))),
        ("OpenTofu", format!("{major}.{minor} and newer")),
    ]);
    let printer = context.printer;
    let of = commit.map_or_else(|| "not recorded".to_owned(), str::to_owned);
    printer.line(format!("strata {release}"));
    printer.line(format!("  commit      {of}"));
    printer.line(format!(
        "  features    {}",
        if features.is_empty() { "none".to_owned() } else { features.join(", ") }
    ));
    for (what, versions) in &supported {
        printer.line(format!("  {what:11} {versions}"));
    }
    printer.event(&Event::Version { release, commit, features, supported });
    Ok(ExitCode::SUCCESS)
}
