//! `strata adopt`.

use std::process::ExitCode;

use strata_engine::ApplyOptions;
use strata_events::Event;
use strata_providers::{Adopted, DiffLine, FileEdit, Proposal, Wish, line_diff};
use strata_resource::Address;

use super::CommandResult;
use super::execute::{ask, stop_on_interrupt};
use crate::command_error::CommandError;
use crate::context::Context;
use crate::style::{self, paint};
use crate::workspace::Workspace;

/// Brings guests that were made by hand under management
///
/// Reads each guest, writes its entry into the file of its stack (comments and order are kept; only what differs from the defaults is
/// written), and shows it. After consent the files are written, the guests are recorded in the state, and their ownership marks are added
/// to their notes: nothing else of a guest changes, and none is restarted. The plan after it is empty. What cannot be adopted is named with
/// the reason, and left alone.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A guest and the address that it gets, such as `web/vm/db=9110`; with `--as`, its VMID alone
    #[arg(value_name = "ADDRESS=VMID", required = true)]
    guests: Vec<String>,
    /// The address of the one guest that is named by its VMID
    #[arg(long = "as", value_name = "ADDRESS")]
    address: Option<String>,
    /// The target that the guests are on; otherwise that of their stack
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// Leaves the notes of the guests as they are: only the state then says that they are managed
    #[arg(long)]
    no_mark: bool,
    /// Goes ahead without asking
    #[arg(long, short)]
    yes: bool,
    /// Shows what would be written, and writes nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load(context)?;
    let wishes = args.wishes()?;
    let proposal = workspace.propose(&wishes).await?;
    show(context, &proposal);
    if let Some((address, error)) = proposal.refused.iter().next() {
        if proposal.refused.len() > 1 {
            let count = proposal.refused.len();
            return Err(CommandError::refused(format!(
                "{count} of {} guests cannot be adopted",
                wishes.len()
            )));
        }
        let mut error = error.clone();
        if !error.message.contains(&format!("`{address}`")) {
            error.message = format!("`{address}`: {}", error.message);
        }
        return Err(error);
    }
    if args.dry_run {
        context.printer.line("nothing was written");
        return Ok(ExitCode::SUCCESS);
    }
    if !args.yes {
        ask(if args.no_mark { "Adopt this?" } else { "Adopt this, and mark the guests?" })?;
    }
    for (path, edit) in &proposal.files {
        write(&workspace, path, edit)?;
    }
    // What is recorded is what the files say now.
    let workspace = Workspace::load(context)?;
    let limits = workspace.limits(None, 1);
    let options = ApplyOptions { limits, stop: stop_on_interrupt(), ..ApplyOptions::default() };
    let adopted = workspace.adopt(&proposal, !args.no_mark, &options).await?;
    tell(context, &proposal, &adopted);
    Ok(ExitCode::SUCCESS)
}

impl Args {
    fn wishes(&self) -> Result<Vec<Wish>, CommandError> {
        let parsed = |address: &str, vmid: &str| -> Result<Wish, CommandError> {
            let address: Address = address
                .parse()
                .map_err(|error| CommandError::failed(format!("`{address}` is no address: {error}")))?;
            let vmid = vmid.parse().map_err(|_| {
                CommandError::failed(format!("`{vmid}` is no VMID")).hint("it is a number, such as 9110")
            })?;
            Ok(Wish { address, vmid, target: self.target.clone() })
        };
        if let Some(address) = &self.address {
            return match self.guests.as_slice() {
                [vmid] => Ok(vec![parsed(address, vmid)?]),
                _ => Err(CommandError::failed("`--as` names the address of one guest")),
            };
        }
        let wish = |guest: &String| match guest.split_once('=') {
            Some((address, vmid)) => parsed(address, vmid),
            None => Err(CommandError::failed(format!("`{guest}` does not say as what the guest is adopted"))
                .hint("write `ADDRESS=VMID`, such as `web/vm/db=9110`, or name the address with `--as`")),
        };
        self.guests.iter().map(wish).collect()
    }
}

fn show(context: &Context, proposal: &Proposal) {
    let printer = &context.printer;
    for (path, edit) in &proposal.files {
        printer.event(&Event::file(path, None));
        printer.line(paint(style::STRONG, path));
        for line in line_diff(&edit.before, &edit.after) {
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
    for (address, error) in &proposal.refused {
        let about = address.to_string();
        printer.event(&Event::Note {
            message: &error.message,
            address: Some(&about),
            file: None,
            line: None,
        });
        if proposal.refused.len() > 1 {
            printer.note(format!("{} {address}: {}", paint(style::DESTROY, "refused:"), error.message));
        }
    }
}

/// Whole or not at all, and only over what was shown.
fn write(workspace: &Workspace<'_>, path: &str, edit: &FileEdit) -> Result<(), CommandError> {
    let place = workspace.root().join(path);
    let failed = |error: std::io::Error| CommandError::failed(format!("cannot write `{path}`: {error}"));
    let now = match std::fs::read_to_string(&place) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed(error)),
    };
    if now != edit.before {
        return Err(CommandError::refused(format!("`{path}` was changed meanwhile")).hint("adopt again"));
    }
    if let Some(folder) = place.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    strata_secrets::replace(&place, edit.after.as_bytes()).map_err(failed)
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
    printer.event(&Event::TakenOverAll { taken: count, known: 0, refused: 0, left, dry_run: false });
    let guests = if count == 1 { "1 guest".to_owned() } else { format!("{count} guests") };
    let plan = match left {
        0 => "the plan of what was adopted is empty".to_owned(),
        left => format!("`strata plan` shows {left} differences"),
    };
    printer.line(format!("{} {guests}, {marked} marked; {plan}", paint(style::CREATE, "adopted:")));
}
