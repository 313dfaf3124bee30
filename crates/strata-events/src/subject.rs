//! The stack that an event is about.

/// A stack in one of its environments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    pub environment: String,
    pub stack: String,
}

impl Subject {
    /// From the key of a state, `<environment>/<stack>`. The name of a stack may be a path.
    pub fn of_key(key: &str) -> Self {
        let (environment, stack) = key.split_once('/').unwrap_or(("", key));
        Self { environment: environment.to_owned(), stack: stack.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_environment_and_stack() {
        let subject = Subject::of_key("prod/onprem/web");
        assert_eq!((subject.environment.as_str(), subject.stack.as_str()), ("prod", "onprem/web"));
    }
}
