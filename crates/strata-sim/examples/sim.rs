//! Runs the simulator until interrupted: `cargo run -p strata-sim --example sim -- --world single --port 8006 …`.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use strata_sim::{DEFAULT_CONTROL_PORT, DEFAULT_GATEWAY_PORT, DEFAULT_PORT, Sim, SimOptions};

fn options() -> Result<SimOptions, String> {
    let mut options = SimOptions {
        port: DEFAULT_PORT,
        control_port: DEFAULT_CONTROL_PORT,
        gateway_port: DEFAULT_GATEWAY_PORT,
        ..SimOptions::default()
    };
    let mut args = std::env::args().skip(1);
    while let Some(flag) = args.next() {
        let value = args.next().ok_or_else(|| format!("`{flag}` needs a value"))?;
        let number = || value.parse::<u16>().map_err(|e| format!("`{flag} {value}`: {e}"));
        match flag.as_str() {
            "--world" => options.world = value.parse()?,
            "--token" => options.token = Some(value),
            "--password" => options.password = Some(value),
            "--port" => options.port = number()?,
            "--control-port" => options.control_port = number()?,
            "--gateway-port" => options.gateway_port = number()?,
            "--pace" => options.pace = value.parse()?,
            "--data" => options.data_dir = Some(value.into()),
            "--seed" => options.seed = value.parse().map_err(|e| format!("`{flag} {value}`: {e}"))?,
            "--guests" => options.guests = value.parse().map_err(|e| format!("`{flag} {value}`: {e}"))?,
            _ => return Err(format!("unknown flag `{flag}`")),
        }
    }
    Ok(options)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sim = Sim::start(options()?).await?;
    println!("{}", sim.ready_line());
    tokio::signal::ctrl_c().await?;
    sim.shutdown().await?;
    Ok(())
}
