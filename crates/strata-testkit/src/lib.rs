//! A test's world: a repository, a simulator, a binary, snapshot filters.
