//! `review:` of strata.yaml: who may sign a plan, who reads it, and what may be applied.

use strata_yaml::{Map, Spanned, TextRule, TextShape, choice, record};

use crate::value::name::{NAME, URL};

/// An ed25519 public key: 32 bytes in base64.
pub const PUBLIC_KEY: TextRule = TextRule {
    shape: TextShape {
        what: "a public key as `strata review keygen` prints it: 44 characters of base64",
        pattern: Some("^[A-Za-z0-9+/]{43}=$"),
    },
    accepts: |text| {
        text.len() == 44
            && text.ends_with('=')
            && text[..43].bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/')
    },
};

/// A time of day.
const TIME: TextRule = TextRule {
    shape: TextShape {
        what: "a time of day such as `08:30`",
        pattern: Some("^([01][0-9]|2[0-3]):[0-5][0-9]$"),
    },
    accepts: |text| minutes(text).is_some(),
};

/// The minute of the day.
pub fn minutes(time: &str) -> Option<u32> {
    let (hour, minute) = time.split_once(':')?;
    let number = |text: &str, most: u32| {
        let digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|number: &u32| digits && *number < most)
    };
    Some(number(hour, 24)? * 60 + number(minute, 60)?)
}

choice! {
    /// What a plan does to what runs.
    pub enum Effect {
        Destroy = "destroy",
        Replace = "replace",
        Restart = "restart",
        Reboot = "reboot",
        Quorum = "quorum",
    }
}

choice! {
    /// A day of the week.
    pub enum Weekday {
        Monday = "monday",
        Tuesday = "tuesday",
        Wednesday = "wednesday",
        Thursday = "thursday",
        Friday = "friday",
        Saturday = "saturday",
        Sunday = "sunday",
    }
}

choice! {
    /// Whether a rule forbids or warns.
    pub enum RuleSeverity { Error = "error", Warning = "warning" }
}

record! {
    /// A time in which nothing is applied.
    pub struct Freeze {
        /// the days on which it begins; every day if none is given
        "days" days: Vec<Weekday>;
        /// when it begins
        "from" from: String [text(TIME)];
        /// when it ends; on the next day, if that is not after `from`
        "to" to: String [text(TIME)];
        /// the zone of these times, such as `Europe/Berlin`
        "timeZone" time_zone: String;
        /// why, for whoever is refused
        "reason" reason: Option<String>;
    }
}

record! {
    /// Who must have approved a plan. Where it names paths or effects, only a plan that has one of them.
    pub struct Approval {
        /// how many people
        "count" count: u32 [range(1, 20)];
        /// files of the repository that the change is about: `clusters/**`
        "paths" paths: Vec<String>;
        /// what the plan does
        "effects" effects: Vec<Effect>;
        /// only these people count, by their names at the forge
        "by" by: Vec<String>;
    }
}

record! {
    /// A rule over plans, in CEL.
    pub struct PlanRule {
        /// how findings call it
        "name" name: Spanned<String> [text(NAME)];
        /// what breaks the rule, asked for each step: an expression over `step`, `stack` and `plan`
        "when" when: Spanned<String>;
        /// what to say then
        "message" message: String;
        /// whether it forbids the apply; `error` if not given
        "severity" severity: Option<RuleSeverity>;
    }
}

choice! {
    /// Whose API a forge has.
    pub enum ForgeKind { Github = "github", Gitlab = "gitlab", Gitea = "gitea", Forgejo = "forgejo" }
}

record! {
    /// Where changes are requested and approved. What is not said here is what the variables of the pipeline say.
    pub struct ForgeSettings {
        /// whose API it has
        "kind" kind: Option<ForgeKind>;
        /// its address, as people use it: `https://git.example.org`
        "url" url: Option<Spanned<String>> [text(URL)];
        /// `owner/name`
        "repository" repository: Option<String>;
        /// a file with the certificates of the authority that signs its certificate, from the root of the repository
        "ca" ca: Option<Spanned<String>>;
    }
}

record! {
    /// How changes are reviewed. It counts as it stands on the base branch, never as a request changes it.
    pub struct Review {
        /// public keys of the runners whose plans may be applied, by their names
        "runners" runners: Map<String> [text(PUBLIC_KEY)];
        /// where changes are requested and approved
        "forge" forge: Option<ForgeSettings>;
        /// age recipients that can read sealed plans; otherwise those of `state.encryption`, otherwise those of the files of secrets
        "recipients" recipients: Vec<Spanned<String>>;
        /// how many objects one change may destroy or replace
        "maxDestroys" max_destroys: Option<u32> [range(0, 100_000)];
        /// stacks of which nothing is destroyed or replaced: `db`, or in one environment `prod/db`
        "protected" protected: Vec<String>;
        /// times in which nothing is applied
        "freezes" freezes: Vec<Freeze>;
        /// who must have approved
        "approvals" approvals: Vec<Approval>;
        /// rules over plans
        "rules" rules: Vec<PlanRule>;
        /// whether `--break-glass REASON` bypasses the guardrails; the reason goes into the audit log
        "breakGlass" break_glass: bool = false;
    }
}
