//! `strata hypervisor`.

mod plan;
mod work;

use clap::Subcommand;
use strata_events::Event;
use strata_providers::{HostSession, Stage};
use strata_session::{ErrorKind, SessionError};

use self::plan::Policy;
use self::work::{Campaign, HostState};
use crate::Desk;

/// Hosts that are worked on: emptied, updated, rebooted, one after the other
///
/// Guests are moved to other hosts, as far as these have what they need; nodes of clusters one at a time, and only while etcd and disruption budgets allow
/// it. The next host follows only when the last one is healthy and has its guests back. A line in the notes of each host says what is done to it: a run that was
/// interrupted goes on from there with the same command, and hosts that somebody else marked are left alone.
#[derive(Debug, clap::Args)]
pub struct HypervisorArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Drain(DrainArgs),
    Update(UpdateArgs),
    Reboot(RebootArgs),
    Return(ReturnArgs),
}

/// Empties hosts, and keeps guests of this repository away from them until `return`
#[derive(Debug, clap::Args)]
struct DrainArgs {
    #[command(flatten)]
    hosts: HostArgs,
}

// Without a sentence of help: it would take the place of that of the verb.
#[derive(Debug, clap::Args)]
struct HostArgs {
    /// The hosts, in this order
    #[arg(value_name = "NODE", required = true)]
    nodes: Vec<String>,
    /// The Proxmox, where more than one target is one
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// Shuts guests down that cannot be moved, and starts them again when their host is back
    #[arg(long)]
    shut_down: bool,
    /// Goes on although guests run there that are not of this repository: they stay, and go down with the host
    #[arg(long)]
    leave_others: bool,
    /// Does not ask
    #[arg(short, long)]
    yes: bool,
}

/// Empties hosts, waits until they are updated, and reboots them
///
/// Proxmox has no call that upgrades a host. A person does it when the host is empty, or a command that is named here. Then it is waited until the host itself
/// lists no pending updates.
#[derive(Debug, clap::Args)]
struct UpdateArgs {
    #[command(flatten)]
    hosts: HostArgs,
    /// Run here through `sh` for each empty host, with `{node}` in the place of its name: `ssh root@{node} pveupgrade`
    #[arg(long, value_name = "COMMAND")]
    run: Option<String>,
    /// Does not reboot them afterwards
    #[arg(long)]
    no_reboot: bool,
    /// How many seconds a host may take to be updated, and to be back
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    wait: u64,
}

/// Empties hosts and reboots them
#[derive(Debug, clap::Args)]
struct RebootArgs {
    #[command(flatten)]
    hosts: HostArgs,
    /// How many seconds a host may take to be back
    #[arg(long, value_name = "SECONDS", default_value_t = 1800)]
    wait: u64,
}

/// Ends what this repository marked on hosts, and brings the guests back whose source puts them there
#[derive(Debug, clap::Args)]
struct ReturnArgs {
    /// The hosts
    #[arg(value_name = "NODE", required = true)]
    nodes: Vec<String>,
    /// The Proxmox, where more than one target is one
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
}

/// What is done to each host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    Drain,
    Update { reboot: bool },
    Reboot,
}

impl Doing {
    fn word(self) -> &'static str {
        match self {
            Self::Drain => "drain",
            Self::Update { .. } => "update",
            Self::Reboot => "reboot",
        }
    }

    fn reboots(self) -> bool {
        matches!(self, Self::Reboot | Self::Update { reboot: true })
    }
}

pub(crate) async fn run(args: &HypervisorArgs, desk: &Desk<'_>) -> Result<(), SessionError> {
    let (hosts, doing, command, wait) = match &args.verb {
        Verb::Drain(args) => (&args.hosts, Doing::Drain, None, 0),
        Verb::Update(args) => {
            (&args.hosts, Doing::Update { reboot: !args.no_reboot }, args.run.as_deref(), args.wait)
        }
        Verb::Reboot(args) => (&args.hosts, Doing::Reboot, None, args.wait),
        Verb::Return(args) => return bring_back(args, desk).await,
    };
    let lock = format!("hypervisor {}", doing.word());
    let mut session = desk.providers.open_hosts(desk.workspace, hosts.target.as_deref(), &lock).await?;
    let policy = Policy { shut_down: hosts.shut_down, leave_others: hosts.leave_others };
    let campaign = Campaign { desk, nodes: &hosts.nodes, doing, policy, command, wait };
    let outcome = maintain(&campaign, &mut session, hosts.yes).await;
    let released = session.release().await;
    outcome.and(released)
}

async fn maintain(campaign: &Campaign<'_>, session: &mut HostSession, yes: bool) -> Result<(), SessionError> {
    let mut states = campaign.states(session).await?;
    if states.iter().all(|state| state.stage == Some(Stage::Done) || state.stage.is_none())
        && states.iter().any(|state| state.stage.is_some())
    {
        // An interrupted run had come to its end.
        return campaign.unmark(session).await;
    }
    if states.iter().any(|state| state.stage.is_some()) {
        campaign.line("an interrupted run is continued: its marks are in the notes of the hosts");
    }
    campaign.show(session, &states).await?;
    let hosts = campaign.nodes.join(", ");
    let loss = match campaign.doing {
        Doing::Drain => format!("the guests of {hosts} go elsewhere, until `strata hypervisor return`"),
        doing => format!("{hosts}: {} one after the other, as the plan above says", doing.word()),
    };
    campaign.desk.agree(yes, &loss, "Go on?")?;
    // From the last to the first: as long as one has no mark, nothing has begun.
    for state in states.iter_mut().rev().filter(|state| state.stage.is_none()) {
        campaign.mark(session, state, Stage::Planned).await?;
    }
    for state in &mut states {
        if state.stage != Some(Stage::Done) {
            campaign.maintain(session, state).await?;
        }
    }
    match campaign.doing {
        Doing::Drain => {
            campaign.line(&format!("{hosts}: empty; `strata hypervisor return` brings the guests back"));
            Ok(())
        }
        doing => {
            campaign.unmark(session).await?;
            campaign.line(&format!("{hosts}: {} done", doing.word()));
            Ok(())
        }
    }
}

async fn bring_back(args: &ReturnArgs, desk: &Desk<'_>) -> Result<(), SessionError> {
    let target = args.target.as_deref();
    let mut session = desk.providers.open_hosts(desk.workspace, target, "hypervisor return").await?;
    let campaign = Campaign {
        desk,
        nodes: &args.nodes,
        doing: Doing::Drain,
        policy: Policy::default(),
        command: None,
        wait: 0,
    };
    let outcome = async {
        campaign.check_names(&session).await?;
        for node in &args.nodes {
            let mark = session.provider().host_notes(node).await?.mark();
            if let Some(mark) = &mark {
                campaign.refuse_foreign(&session, node, mark)?;
                let mut state = HostState::of(node, mark.clone());
                campaign.restage(&session, &mut state, Stage::Returning).await?;
            }
            campaign.bring_home(&mut session, node).await?;
            if mark.is_some() {
                campaign.remove_mark(&session, node).await?;
            }
            campaign.line(&format!("{node} has its guests back"));
        }
        Ok::<(), SessionError>(())
    };
    let outcome = outcome.await;
    let released = session.release().await;
    outcome.and(released)
}

/// Said to people, and to programs.
fn tell(desk: &Desk<'_>, host: &str, what: &str, planned: bool) {
    desk.terminal.event(None, &Event::HostStep { host, what, planned });
    desk.terminal.line(&format!("{}{host}: {what}", if planned { "  " } else { "" }));
}

fn stopped(doing: Doing) -> SessionError {
    SessionError::new(ErrorKind::Interrupted, "stopped by the user")
        .hint(format!("`strata hypervisor {}` with the same hosts goes on", doing.word()))
}
