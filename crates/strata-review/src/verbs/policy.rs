//! `strata policy test`: the rules of `review.rules`, asked by whoever writes them.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use strata_engine::PlanFile;
use strata_events::Event;
use strata_session::{ErrorKind, SessionError};
use strata_source::settings::review::PlanRule;

use super::{Desk, Ended, read};
use crate::finding::Finding;
use crate::reviewed::Reviewed;
use crate::rules;

/// Asks the rules of `review.rules` about plans
///
/// Without a file it says whether every rule can be read. The rules are those of the files here; a review takes them from its base.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Plans that `strata plan -o` saved, or documents that `strata review plan --document` wrote
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Fails where a rule with the severity `error` is broken.
pub fn run(args: &Args, desk: &Desk<'_>) -> Result<Ended, SessionError> {
    let workspace = crate::planning::valid_workspace(&desk.surroundings)?;
    let settings = &workspace.repository().settings;
    let rules: Vec<PlanRule> = settings.review.iter().flat_map(|review| review.rules.clone()).collect();
    let mut found = rules::unreadable(&rules);
    if found.is_empty() {
        for path in &args.files {
            found.extend(rules::check_document(&rules, &document(path)?));
        }
    }
    for one in &found {
        let Finding { rule, about, message, .. } = one;
        let (severity, about) = (if one.is_error() { "error" } else { "warning" }, about.as_str());
        desk.terminal.event(None, &Event::RuleBroken { rule, severity, about, message });
        desk.terminal.line(&crate::text::line(&one.line()));
    }
    let errors = found.iter().filter(|one| one.is_error()).count();
    if errors > 0 {
        return Err(SessionError::already_shown(ErrorKind::Refused));
    }
    let counted = if rules.len() == 1 { "1 rule".to_owned() } else { format!("{} rules", rules.len()) };
    desk.terminal.line(&format!("{counted}, none broken"));
    Ok(Ended::Done)
}

fn document(path: &Path) -> Result<Json, SessionError> {
    let bytes = read(path)?;
    let not_a_plan = |reason: String| SessionError::failed(format!("`{}`: {reason}", path.display()));
    let json: Json = serde_json::from_slice(&bytes).map_err(|error| not_a_plan(error.to_string()))?;
    if json["format"].is_null() {
        return match json["stacks"].is_array() {
            true => Ok(json),
            false => Err(not_a_plan("it is neither a plan nor a document of one".to_owned())),
        };
    }
    let file = PlanFile::parse(&bytes).map_err(not_a_plan)?;
    let reviewed = Reviewed {
        strata: file.strata.clone(),
        repository: String::new(),
        commit: file.commit.clone().unwrap_or_default(),
        merge_base: None,
        paths: None,
        stacks: Vec::new(),
        plans: vec![file],
    };
    Ok(rules::document(&reviewed))
}
