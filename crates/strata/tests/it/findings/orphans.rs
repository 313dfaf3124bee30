//! Absence and effect: what a refusal, a missing privilege or a forgotten task must not be taken for.

mod written;
