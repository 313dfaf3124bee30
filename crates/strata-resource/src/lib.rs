//! The vocabulary: address, kind, spec of every managed object, inputs from other resources, secrecy, field rules, diff.
