//! Versions as code for OpenTofu pins them: `~> 5.1`, `5.1.0`, `= 5.1.0`.

use strata_talos::Version;

/// A constraint that names one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Constraint {
    /// `~> `, `= ` or nothing, as it is written.
    operator: String,
    parts: Vec<u64>,
}

impl Constraint {
    /// None where it names several versions, a range or a pre-release: nobody can say which of them is meant to move.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let number = text.trim_start_matches(['~', '>', '=', ' ']);
        let operator = &text[..text.len() - number.len()];
        if !matches!(operator.trim(), "" | "=" | "~>") {
            return None;
        }
        let number = number.strip_prefix('v').unwrap_or(number);
        let parts: Option<Vec<u64>> = number
            .split('.')
            .map(|part| part.parse().ok().filter(|_| part.bytes().all(|byte| byte.is_ascii_digit())))
            .collect();
        let parts = parts.filter(|parts| (1..=3).contains(&parts.len()))?;
        Some(Self { operator: operator.to_owned(), parts })
    }

    pub(crate) fn major(&self) -> u64 {
        self.parts.first().copied().unwrap_or_default()
    }

    /// Whether a version lies beyond what is written, counted as far as it is written.
    pub(crate) fn is_below(&self, version: &Version) -> bool {
        let numbers = [version.major, version.minor, version.patch];
        self.parts.as_slice() < &numbers[..self.parts.len()]
    }

    /// The same constraint of another version.
    pub(crate) fn of(&self, version: &Version) -> String {
        let numbers = [version.major, version.minor, version.patch];
        let numbers: Vec<String> = numbers[..self.parts.len()].iter().map(u64::to_string).collect();
        format!("{}{}", self.operator, numbers.join("."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constraint_keeps_its_form() {
        let newest: Version = "5.30.2".parse().unwrap();
        for (written, next) in [
            ("~> 5.1", "~> 5.30"),
            ("~> 5.1.0", "~> 5.30.2"),
            ("= 5.1.0", "= 5.30.2"),
            ("5.1.0", "5.30.2"),
            ("~>5", "~>5"),
        ] {
            let constraint = Constraint::parse(written).unwrap();
            assert_eq!(constraint.of(&newest), next);
            assert_eq!(constraint.is_below(&newest), written != next, "{written}");
        }
        for several in [">= 1.0, < 2.0", ">= 1.0", "~> 1.0.0-beta1", "", "latest", "!= 1.0", "~> 1.2.3.4"] {
            assert_eq!(Constraint::parse(several), None, "{several}");
        }
        assert!(!Constraint::parse("~> 6.0").unwrap().is_below(&newest));
    }
}
