//! Paths from the root of a repository.

/// A relative path from a folder, with `..` and `.` resolved; `None` where it leaves the repository.
pub fn resolve(folder: &str, relative: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            other => parts.push(other),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::resolve;

    #[test]
    fn nothing_outside_is_reached() {
        assert_eq!(resolve("stacks/onprem/a", "../../../modules/vm").as_deref(), Some("modules/vm"));
        assert_eq!(resolve("stacks", "../../x"), None);
    }
}
