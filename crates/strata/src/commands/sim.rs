//! `strata sim`.

use std::path::PathBuf;
use std::process::ExitCode;

use strata_sim::{
    DEFAULT_CONTROL_PORT, DEFAULT_GATEWAY_PORT, DEFAULT_PORT, Pace, Sim, SimOptions, WorldKind,
};

use super::CommandResult;
use crate::command_error::CommandError;
use crate::context::Context;

/// Runs the simulated datacenter, for tools and rehearsals
///
/// It answers like a Proxmox VE server, on the loopback only. When it is ready it prints one line of JSON with its address, token,
/// certificate fingerprint and control port. The default world has fixed ports, token and certificate; the examples of
/// `strata init` fit to it.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// `default` (three hypervisors), `single` (one, as it is after an installation) or `lived-in` (three with sixty guests that people made by hand)
    #[arg(long, default_value = "default")]
    world: WorldKind,
    /// A further token `user@realm!name=uuid` with all privileges of its user
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// The password of root@pam
    #[arg(long)]
    password: Option<String>,
    /// Port of the API; 0 takes a free one
    #[arg(long, default_value_t = DEFAULT_PORT)]
    port: u16,
    /// Port of the control interface; by default the one after the API's
    #[arg(long)]
    control_port: Option<u16>,
    /// Port of the gateway to the simulated network, an HTTP proxy; by default the second one after the API's
    #[arg(long)]
    gateway_port: Option<u16>,
    /// How long tasks take: `instant`, `fast`, `real` or a factor
    #[arg(long, default_value = "fast")]
    pace: Pace,
    /// Keeps its objects in this folder
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Values that the server makes up derive from this
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Begins with this many stopped VMs, for benchmarks
    #[arg(long, default_value_t = 0)]
    guests: usize,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let control_port = args.control_port.unwrap_or(match args.port {
        0 => 0,
        DEFAULT_PORT => DEFAULT_CONTROL_PORT,
        port => port.saturating_add(1),
    });
    let gateway_port = args.gateway_port.unwrap_or(match args.port {
        0 => 0,
        DEFAULT_PORT => DEFAULT_GATEWAY_PORT,
        port => port.saturating_add(2),
    });
    let options = SimOptions {
        world: args.world,
        port: args.port,
        control_port,
        gateway_port,
        token: args.token.clone(),
        password: args.password.clone(),
        seed: args.seed,
        pace: args.pace,
        data_dir: args.data.clone(),
        guests: args.guests,
        ..SimOptions::default()
    };
    let sim = Sim::start(options).await.map_err(|error| {
        CommandError::failed(format!("cannot start the simulator: {error}"))
            .hint(format!("is one running on port {} already? `--port 0` takes a free one", args.port))
    })?;
    if context.printer.is_json() {
        let sim = serde_json::from_str(&sim.ready_line()).unwrap_or_default();
        context.printer.event(&strata_events::Event::SimReady { sim });
    } else {
        context.printer.raw(&format!("{}\n", sim.ready_line()));
    }
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .map_err(|error| CommandError::failed(error.to_string()))?;
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
    sim.shutdown()
        .await
        .map_err(|error| CommandError::failed(format!("cannot save the objects: {error}")))?;
    Ok(ExitCode::SUCCESS)
}
