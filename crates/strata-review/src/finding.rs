//! What is said against a plan: by the plan itself, by a guardrail, by a rule.

use serde::Serialize;

/// Whether it stands in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    Error,
    Warning,
}

/// One thing that a reader should know, or that forbids the apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Finding {
    pub severity: Severity,
    /// The rule, guardrail or stack that says it.
    pub rule: String,
    /// The address, stack or file that it is about.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub about: String,
    pub message: String,
}

impl Finding {
    pub fn error(rule: impl Into<String>, about: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, rule: rule.into(), about: about.into(), message: message.into() }
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// `✗ maxDestroys: 7 would be destroyed, 3 are allowed`.
    pub fn line(&self) -> String {
        let sign = if self.is_error() { '✗' } else { '!' };
        match self.about.as_str() {
            "" => format!("  {sign} {}: {}", self.rule, self.message),
            about => format!("  {sign} {}: {about}: {}", self.rule, self.message),
        }
    }
}
