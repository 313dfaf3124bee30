//! What a review is about: the plans of everything that a commit range changes, and all that they are bound to.

use serde::{Deserialize, Serialize};
use strata_engine::{PlanFile, Summary};

use crate::changed::StackKey;
use crate::sealed::digest;

/// The content of a sealed plan. It has no time in it: the same source, states and live objects give the same content, and the same digest.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reviewed {
    /// The version of Strata that planned.
    pub strata: String,
    /// The id of the repository.
    pub repository: String,
    /// The commit that was planned.
    pub commit: String,
    /// Where it left the base.
    pub merge_base: Option<String>,
    /// The files that differ, from the root of the repository; none where nobody can say.
    pub paths: Option<Vec<String>>,
    /// Every stack that the range can change.
    pub stacks: Vec<ReviewedStack>,
    /// The plans, by environment.
    pub plans: Vec<PlanFile>,
}

/// A stack of the range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReviewedStack {
    pub environment: String,
    pub stack: String,
    /// `added`, `changed` or `removed`.
    pub change: String,
    /// The digest of everything that it is made from; none where it is not in the source any more.
    pub source: Option<String>,
}

impl ReviewedStack {
    pub fn key(&self) -> StackKey {
        StackKey { environment: self.environment.clone(), stack: self.stack.clone() }
    }
}

impl Reviewed {
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let reviewed: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        for plan in &reviewed.plans {
            let bytes = serde_json::to_vec(plan).map_err(|error| error.to_string())?;
            PlanFile::parse(&bytes)?;
        }
        Ok(reviewed)
    }

    /// Equal reviews have equal bytes.
    pub fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// What is approved.
    pub fn digest(&self) -> String {
        digest(&self.bytes())
    }

    /// The numbers of all plans.
    pub fn summary(&self) -> Summary {
        let mut all = Summary::default();
        for plan in &self.plans {
            all += strata_views::saved::summary(plan);
        }
        all
    }
}
