//! `strata adopt`.

use std::process::ExitCode;

use strata_engine::ApplyOptions;
use strata_events::Event;
use strata_providers::{Adopted, DiffLine, GroupBy, LeftOut, Proposal, Wish, line_diff};

use super::CommandResult;
use super::execute::{ask, stop_on_interrupt};
use crate::command_error::CommandError;
use crate::context::Context;
use crate::style::{self, paint};
use crate::workspace::Workspace;

/// Brings what was made by hand under management
///
/// Reads each guest or object, writes its entry into the file of its stack (comments and order are kept; only what differs from the
/// defaults is written), and shows it. After consent the files are written, what was adopted is recorded in the state, and ownership marks are
/// added to notes and comments: nothing else changes, and no guest is restarted. The plan after it is empty. What cannot be adopted is named
/// with the reason, and left alone.
///
/// A guest is named with its VMID: `web/vm/db=9110`. An object of the datacenter (a pool, a user, a storage, the network of a host) is known by
/// its address: `pve/pool/production` goes into `hypervisors/pve.yaml`.
///
/// With `--all` everything of a target is adopted: guests into a stack for each pool, tag or node, the rest into `hypervisors/`. What is
/// managed already is counted, and whatever is left out has a line with the reason.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A guest and the address that it gets, such as `web/vm/db=9110` (with `--as`, its VMID alone), or the address of an object of the datacenter
    #[arg(value_name = "ADDRESS[=VMID]", required_unless_present = "all", conflicts_with = "all")]
    wanted: Vec<String>,
    /// The address of the one guest that is named by its VMID
    #[arg(long = "as", value_name = "ADDRESS")]
    address: Option<String>,
    /// Adopts every guest and every object of the target
    #[arg(long, conflicts_with = "address")]
    all: bool,
    /// What the guests of one stack have in common; guests without it go to the stack `other`
    #[arg(long, value_enum, default_value = "pool", requires = "all")]
    group_by: Group,
    /// The target that it is on; otherwise that of the stack, or the only one
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// Leaves notes and comments as they are: only the state then says what is managed
    #[arg(long)]
    no_mark: bool,
    /// Goes ahead without asking
    #[arg(long, short)]
    yes: bool,
    /// Shows what would be written, and writes nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Group {
    /// The pool that they are in
    Pool,
    /// The first of their tags, in the order of the alphabet
    Tag,
    /// The node that they are on
    Node,
}

impl From<Group> for GroupBy {
    fn from(group: Group) -> Self {
        match group {
            Group::Pool => Self::Pool,
            Group::Tag => Self::Tag,
            Group::Node => Self::Node,
        }
    }
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load(context)?;
    let proposal = match args.all {
        true => workspace.propose_all(args.target.as_deref(), args.group_by.into(), !args.no_mark).await?,
        false => workspace.propose(&args.wishes()?).await?,
    };
    // Of a whole datacenter the files are long: whoever is not asked looks at them where they are.
    show(context, &proposal, !(args.all && args.yes && !args.dry_run));
    if !args.all {
        refuse(context, &proposal)?;
    }
    if args.dry_run {
        tell_left_out(context, &proposal);
        context.printer.line("nothing was written");
        return Ok(ExitCode::SUCCESS);
    }
    if !proposal.adopted.is_empty() && !args.yes {
        tell_left_out(context, &proposal);
        ask(if args.no_mark { "Adopt this?" } else { "Adopt this, and add the ownership marks?" })?;
    }
    for (path, edit) in &proposal.files {
        edit.write(workspace.root(), path)?;
    }
    // What is recorded is what the files say now.
    let workspace = Workspace::load(context)?;
    let limits = workspace.limits(None, 1);
    let options = ApplyOptions { limits, stop: stop_on_interrupt(), ..ApplyOptions::default() };
    let adopted = workspace.adopt(&proposal, !args.no_mark, &options).await?;
    if args.yes || proposal.adopted.is_empty() {
        tell_left_out(context, &proposal);
    }
    tell(context, &proposal, &adopted);
    Ok(ExitCode::SUCCESS)
}

/// Whoever names something wants all of it.
fn refuse(context: &Context, proposal: &Proposal) -> Result<(), CommandError> {
    match proposal.left_out.as_slice() {
        [] => Ok(()),
        [one] => {
            let mut error = one.error.clone();
            let address = one.address.as_ref().map(|address| format!("`{address}`")).unwrap_or_default();
            if !error.message.contains(&address) {
                error.message = format!("{address}: {}", error.message);
            }
            Err(error)
        }
        several => {
            tell_left_out(context, proposal);
            let all = several.len() + proposal.adopted.len();
            Err(CommandError::refused(format!("{} of {all} cannot be adopted", several.len())))
        }
    }
}

impl Args {
    fn wishes(&self) -> Result<Vec<Wish>, CommandError> {
        let target = self.target.as_deref();
        match (&self.address, self.wanted.as_slice()) {
            (None, wanted) => wanted.iter().map(|wanted| Wish::read(wanted, target)).collect(),
            (Some(address), [vmid]) => Ok(vec![Wish::of_guest(address, vmid, target)?]),
            _ => Err(CommandError::failed("`--as` names the address of one guest")),
        }
    }
}

fn show(context: &Context, proposal: &Proposal, whole: bool) {
    let printer = &context.printer;
    for (path, edit) in &proposal.files {
        printer.event(&Event::file(path, None));
        printer.line(paint(style::STRONG, path));
        for line in line_diff(&edit.before, &edit.after).into_iter().filter(|_| whole) {
            printer.line(match line {
                DiffLine::Skipped => format!("  {}", paint(style::FAINT, "…")),
                DiffLine::Same(line) => format!("    {line}"),
                DiffLine::Gone(line) => format!("  {}", paint(style::DESTROY, format!("- {line}"))),
                DiffLine::Come(line) => format!("  {}", paint(style::CREATE, format!("+ {line}"))),
            });
        }
    }
    for (address, one) in &proposal.adopted {
        for note in &one.notes {
            let about = address.to_string();
            printer.event(&Event::Note { message: note, address: Some(&about), file: None, line: None });
            printer.note(format!("{} {address}: {note}", paint(style::WARNING, "note:")));
        }
    }
}

/// Everything that is not adopted, with the reason.
fn tell_left_out(context: &Context, proposal: &Proposal) {
    for LeftOut { vmid, described, address, error } in &proposal.left_out {
        context.printer.event(&Event::NotAdopted {
            vmid: *vmid,
            object: described,
            address: address.as_ref(),
            error,
        });
        let about =
            if error.message.contains(described.as_str()) { String::new() } else { format!("{described}: ") };
        context.printer.line(format!("{} {about}{}", paint(style::WARNING, "left out:"), error.message));
        for hint in &error.hints {
            context.printer.line(format!("  {} {hint}", paint(style::HINT, "hint:")));
        }
    }
    for remark in &proposal.remarks {
        context.printer.event(&Event::Note { message: remark, address: None, file: None, line: None });
        context.printer.line(format!("{} {remark}", paint(style::WARNING, "note:")));
    }
}

fn tell(context: &Context, proposal: &Proposal, adopted: &Adopted) {
    let printer = &context.printer;
    for (address, one) in &proposal.adopted {
        printer.event(&Event::TakenOver { address, from: Some(&one.described) });
        printer.line(format!(
            "{} {address}  {}",
            paint(style::CREATE, "="),
            paint(style::FAINT, &one.described)
        ));
    }
    let (count, marked, left) = (adopted.addresses.len(), adopted.marked, adopted.left);
    let (known, refused) = (proposal.managed, proposal.left_out.len());
    printer.event(&Event::TakenOverAll { taken: count, known, refused, left, dry_run: false });
    let counts = adopted.counted(proposal);
    let others = [(known, "managed already"), (refused, "left out")];
    let others =
        others.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!(", {count} {what}"));
    let others: String = others.collect();
    let plan = match left {
        _ if count == 0 => "nothing is written".to_owned(),
        0 => "the plan of what was adopted is empty".to_owned(),
        left => format!("`strata plan` shows {left} differences"),
    };
    let adopted = paint(style::CREATE, "adopted:");
    printer.line(format!("{adopted} {counts}, {marked} marked{others}; {plan}"));
}
