//! What is said of a number of stacks or objects.

/// What is said of stacks that have no plan.
pub fn not_planned(count: usize) -> String {
    match count {
        1 => "1 stack is not planned: it is left as it is".to_owned(),
        _ => format!("{count} stacks are not planned: they are left as they are"),
    }
}

/// What a plan leaves as it is because nobody can see it.
pub fn not_seen(count: usize) -> String {
    match count {
        1 => "1 object cannot be seen: it is left as it is".to_owned(),
        _ => format!("{count} objects cannot be seen: they are left as they are"),
    }
}
