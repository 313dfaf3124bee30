//! A saved plan, and what it is bound to. It runs exactly as it was reviewed, or not at all.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::plan::{Plan, Summary};

const FORMAT: u32 = 1;

/// The content of a plan file: one or more stacks, planned from one commit.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PlanFile {
    pub format: u32,
    /// The version of Strata that made it.
    pub strata: String,
    /// The commit of the repository, if it is one; `-dirty` is appended where files were changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    pub environment: Option<String>,
    pub destroy: bool,
    /// What it is about, where that is not all of its stacks: stacks, addresses, patterns, as they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub selection: Vec<String>,
    /// What is replaced because somebody asked for it: `--replace`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replace: Vec<String>,
    pub stacks: Vec<PlannedStack>,
    /// Stacks that another program plans and applies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub driven: Vec<DrivenPlan>,
    /// Stacks that could not be planned before this plan has run, for whoever runs it to know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PlannedStack {
    pub stack: String,
    pub source_digest: String,
    /// SHA-256 of the plan itself.
    pub plan_digest: String,
    pub plan: Plan,
}

/// A plan that another program made, and that only it can read: what it does is shown beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DrivenPlan {
    pub stack: String,
    /// The key of the state.
    pub key: String,
    pub source_digest: String,
    /// Where that program's own state stood: which one, and its serial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<(String, u64)>,
    pub summary: Summary,
    /// What it does, as it was shown.
    pub changes: serde_json::Value,
    /// The plan itself, encrypted by the program; base64.
    pub sealed: String,
    /// SHA-256 of all of the above.
    #[serde(default)]
    pub digest: String,
}

impl DrivenPlan {
    /// The same, with its digest.
    #[must_use]
    pub fn bound(mut self) -> Self {
        self.digest = self.own_digest();
        self
    }

    fn own_digest(&self) -> String {
        let bare = Self { digest: String::new(), ..self.clone() };
        hex::encode(Sha256::digest(serde_json::to_vec(&bare).unwrap_or_default()))
    }

    /// Whether source and state are those that it was made from; what else moved is found by planning again.
    pub fn check(
        &self,
        source_digest: &str,
        position: Option<&(String, u64)>,
        more: Vec<String>,
    ) -> Result<(), StalePlan> {
        let mut moved = Vec::new();
        if self.source_digest != source_digest {
            moved.push("the source changed".to_owned());
        }
        match (&self.position, position) {
            (Some((then, _)), Some((now, _))) if then != now => moved.push("the state is another".to_owned()),
            (Some((_, then)), Some((_, now))) if then != now => {
                moved.push(format!("the state went from serial {then} to {now}"));
            }
            (Some(_), None) => moved.push("the state is gone".to_owned()),
            (None, Some(_)) => moved.push("there is a state now".to_owned()),
            _ => {}
        }
        moved.extend(more);
        if moved.is_empty() { Ok(()) } else { Err(StalePlan { stack: self.stack.clone(), moved }) }
    }
}

/// What moved since the plan was made. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the plan of `{stack}` is stale: {}", .moved.join("; "))]
pub struct StalePlan {
    pub stack: String,
    pub moved: Vec<String>,
}

impl PlanFile {
    pub fn new(strata: &str, commit: Option<String>, environment: Option<String>, destroy: bool) -> Self {
        let strata = strata.to_owned();
        Self {
            format: FORMAT,
            strata,
            commit,
            environment,
            destroy,
            selection: Vec::new(),
            replace: Vec::new(),
            stacks: Vec::new(),
            driven: Vec::new(),
            waiting: Vec::new(),
        }
    }

    /// Reads a file that this very version could have written. What another version saved is told apart from what somebody edited.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let raw: serde_json::Value = serde_json::from_slice(bytes).map_err(not_a_plan)?;
        let version = raw["strata"].as_str().unwrap_or("unknown");
        if let Some(format) = raw["format"].as_u64().filter(|format| *format != u64::from(FORMAT)) {
            return Err(format!(
                "Strata {version} saved it in format {format}, and this one knows {FORMAT}; plan again"
            ));
        }
        if let Some(stack) = edited(&raw) {
            return Err(format!("the plan of `{stack}` was changed after it was made"));
        }
        let other = || {
            format!("another version of Strata saved it ({version}), which plans in another way; plan again")
        };
        // As it was saved, and yet nothing that this version would write.
        let whole =
            raw["stacks"].as_array().is_some_and(|stacks| stacks.iter().all(|one| one["plan"].is_object()));
        let file: Self =
            serde_json::from_slice(bytes).map_err(|error| if whole { other() } else { not_a_plan(error) })?;
        let same_plans = file.stacks.iter().all(|planned| plan_digest(&planned.plan) == planned.plan_digest);
        let same_driven = file.driven.iter().all(|planned| planned.own_digest() == planned.digest);
        if same_plans && same_driven { Ok(file) } else { Err(other()) }
    }

    /// What selects it again: the names of all its stacks, or what was asked for.
    pub fn names(&self) -> Vec<String> {
        if !self.selection.is_empty() {
            return self.selection.clone();
        }
        let own = self.stacks.iter().map(|planned| planned.stack.clone());
        own.chain(self.driven.iter().map(|planned| planned.stack.clone())).collect()
    }

    pub fn push(&mut self, stack: &str, source_digest: &str, plan: Plan) {
        let (stack, source_digest, plan_digest) =
            (stack.to_owned(), source_digest.to_owned(), plan_digest(&plan));
        self.stacks.push(PlannedStack { stack, source_digest, plan_digest, plan });
    }
}

impl PlannedStack {
    /// Whether the plan made now is the one that was reviewed. All that moved is named.
    pub fn check(&self, source_digest: &str, now: &Plan) -> Result<(), StalePlan> {
        let then = &self.plan;
        let mut moved = Vec::new();
        if self.source_digest != source_digest {
            moved.push("the source changed".to_owned());
        }
        if then.lineage != now.lineage {
            moved.push("it was made for another repository".to_owned());
        }
        if then.serial != now.serial {
            moved.push(format!("the state went from serial {} to {}", then.serial, now.serial));
        }
        if !now.open.is_empty() {
            moved.push("an interrupted apply left work open".to_owned());
        }
        for (address, before) in &then.live {
            match (before, now.live.get(address).cloned().flatten()) {
                (Some(_), None) => moved.push(format!("`{address}` is gone")),
                (None, Some(_)) => moved.push(format!("`{address}` appeared")),
                (Some(before), Some(now)) if *before != now => moved.push(format!("`{address}` was changed")),
                _ => {}
            }
        }
        let addresses: BTreeSet<_> = then.former.keys().chain(now.former.keys()).collect();
        for address in addresses {
            if then.former.get(address) != now.former.get(address) {
                moved.push(format!("a former object of `{address}` was changed"));
            }
        }
        let blocked = now.problems.iter().filter(|problem| !then.problems.contains(problem));
        let hidden = now.unknown.iter().filter(|problem| !then.unknown.contains(problem));
        for problem in blocked.chain(hidden) {
            moved.push(format!("`{}`: {}", problem.address, problem.message));
        }
        if moved.is_empty() && self.plan_digest != plan_digest(now) {
            moved.push("the same source now gives another plan".to_owned());
        }
        if moved.is_empty() { Ok(()) } else { Err(StalePlan { stack: self.stack.clone(), moved }) }
    }
}

fn not_a_plan(error: serde_json::Error) -> String {
    format!("it is not a plan file: {error}")
}

/// The stack whose plan is not what its digest says, whichever version wrote both.
fn edited(file: &serde_json::Value) -> Option<String> {
    let digest = |value: &serde_json::Value| {
        hex::encode(Sha256::digest(serde_json::to_vec(value).unwrap_or_default()))
    };
    let is_edited = |planned: &&serde_json::Value| digest(&planned["plan"]) != planned["plan_digest"];
    let is_driven_edited = |planned: &&serde_json::Value| {
        let mut bare = (*planned).clone();
        bare["digest"] = "".into();
        digest(&bare) != planned["digest"]
    };
    let list = |name: &str| file[name].as_array().into_iter().flatten();
    let found = list("stacks").find(is_edited).or_else(|| list("driven").find(is_driven_edited))?;
    Some(found["stack"].as_str().unwrap_or_default().to_owned())
}

/// Equal plans have equal digests; secrets take part by their keyed digests.
fn plan_digest(plan: &Plan) -> String {
    let json = serde_json::to_vec(plan).unwrap_or_default();
    hex::encode(Sha256::digest(json))
}

#[cfg(test)]
mod tests;
