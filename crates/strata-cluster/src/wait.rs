//! Waiting until something is so: looked at again and again, with a word on what is missing, until a deadline.

use std::time::{Duration, Instant};

use strata_engine::{ErrorClass, OperationContext, ProviderError};

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);

/// How long the steps of a node's life may take.
pub(crate) const BOOT: Duration = Duration::from_secs(15 * 60);
pub(crate) const JOIN: Duration = Duration::from_secs(10 * 60);
pub(crate) const PULL: Duration = Duration::from_secs(20 * 60);

/// What a look found.
pub(crate) enum Seen<T> {
    Done(T),
    NotYet(String),
}

/// Looks until it is done. A look that fails for certain ends the wait; one that only did not come through is a `NotYet`.
pub(crate) async fn until<T, F>(
    context: &dyn OperationContext,
    waiting_for: &str,
    within: Duration,
    mut look: impl FnMut() -> F,
) -> Result<T, ProviderError>
where
    F: Future<Output = Result<Seen<T>, ProviderError>>,
{
    let begun = Instant::now();
    let mut step = FIRST;
    let mut told = String::new();
    loop {
        let seen = match look().await? {
            Seen::Done(value) => return Ok(value),
            Seen::NotYet(seen) => seen,
        };
        if seen != told {
            context.progress(&format!("waits for {waiting_for}: {seen}"));
            told.clone_from(&seen);
        }
        // The user may have said stop now, or the lock may be gone: then nobody waits for anything.
        context.before_write()?;
        if begun.elapsed() + step > within {
            let seconds = within.as_secs();
            let message = format!("{waiting_for} did not come about within {seconds} s: {seen}");
            return Err(ProviderError::new(ErrorClass::Unreachable, message)
                .hint("look at the node's console; `strata apply` goes on from here"));
        }
        tokio::time::sleep(step).await;
        step = (step * 2).min(LONGEST);
    }
}
