//! Waiting until something is so: looked at again and again, with a word on what is missing, until a deadline or until the user
//! says stop.

use std::time::Duration;

use strata_engine::{ErrorClass, OperationContext, ProviderError};
use strata_net::WritePermit;
use tokio::time::Instant;

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);

/// How long the steps of a node's life may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// From being switched on to answering.
    pub boot: Duration,
    /// From having a configuration to being healthy in the cluster.
    pub join: Duration,
    /// A reboot, with everything that has to be pulled before and after it.
    pub reboot: Duration,
    /// The network of pods, and the controllers of Flux.
    pub flux: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
        Self { boot: minutes(15), join: minutes(10), reboot: minutes(20), flux: minutes(15) }
    }
}

/// What a look found.
pub(crate) enum Seen<T> {
    Done(T),
    NotYet(String),
}

/// Looks until it is done. The looks change nothing: one that is under way is given up when the user says stop.
///
/// A look that fails for certain ends the wait; one that only did not come through is a `NotYet`.
pub(crate) async fn until<T, F>(
    context: &dyn OperationContext,
    waiting_for: &str,
    within: Duration,
    mut look: impl FnMut() -> F,
) -> Result<T, ProviderError>
where
    F: Future<Output = Result<Seen<T>, ProviderError>>,
{
    until_done(context, waiting_for, within, || cut(context, waiting_for, look())).await
}

/// As [`until`], where the looks also do something: such a look comes to its end before a stop is heard.
pub(crate) async fn until_done<T, F>(
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
        context.may_go_on()?;
        if begun.elapsed() + step > within {
            let seconds = within.as_secs();
            let message = format!("{waiting_for} did not come about within {seconds} s: {seen}");
            return Err(ProviderError::new(ErrorClass::Unreachable, message)
                .hint("look at the node's console; `strata apply` goes on from here"));
        }
        let pause = async {
            tokio::time::sleep(step).await;
            Ok(())
        };
        cut(context, waiting_for, pause).await?;
        step = (step * 2).min(LONGEST);
    }
}

/// Something that changes nothing here or elsewhere: given up as soon as the user says stop.
pub(crate) async fn cut<T>(
    context: &dyn OperationContext,
    waiting_for: &str,
    look: impl Future<Output = Result<T, ProviderError>>,
) -> Result<T, ProviderError> {
    tokio::select! {
        biased;
        seen = look => seen,
        () = context.stopped() => Err(stopped(waiting_for)),
    }
}

/// For one write, which counts from now on. Whether the run may still write is looked at again when the request is about to be sent.
pub(crate) fn permit(context: &dyn OperationContext) -> Result<WritePermit<'_>, ProviderError> {
    context.before_write()?;
    Ok(WritePermit::new(|| context.may_go_on().map_err(|error| error.message), context.write_timeout()))
}

/// The same for what waits now and then: nobody may have said stop.
pub(crate) fn permit_unless_stopped<'c>(
    context: &'c dyn OperationContext,
    waiting_for: &str,
) -> Result<WritePermit<'c>, ProviderError> {
    if context.stopping() {
        return Err(stopped(waiting_for));
    }
    permit(context)
}

fn stopped(waiting_for: &str) -> ProviderError {
    ProviderError::new(ErrorClass::Stopped, format!("interrupted while it waited for {waiting_for}"))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use tokio::sync::Notify;

    use super::*;

    /// A user who says stop.
    #[derive(Default)]
    struct User(Notify);

    #[async_trait]
    impl OperationContext for User {
        fn before_write(&self) -> Result<(), ProviderError> {
            Ok(())
        }
        async fn task_started(&self, _: &str) -> Result<(), ProviderError> {
            Ok(())
        }
        fn progress(&self, _: &str) {}
        async fn stopped(&self) {
            self.0.notified().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_ends_a_look_that_never_answers_but_not_one_that_writes() {
        let user = User::default();
        user.0.notify_one();
        let endless = || std::future::pending::<Result<Seen<()>, ProviderError>>();
        let error = until(&user, "a node", Duration::from_secs(9), endless).await.unwrap_err();
        assert_eq!((error.class, error.nothing_done), (ErrorClass::Stopped, false));
        assert_eq!(error.message, "interrupted while it waited for a node");

        let (user, writes) = (User::default(), AtomicUsize::new(0));
        user.0.notify_one();
        let error = until_done(&user, "a node", Duration::from_secs(9), || async {
            tokio::time::sleep(Duration::from_secs(3)).await;
            writes.fetch_add(1, Ordering::SeqCst);
            Ok(Seen::<()>::NotYet("it goes down".to_owned()))
        })
        .await
        .unwrap_err();
        assert_eq!((error.class, writes.into_inner()), (ErrorClass::Stopped, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_says_what_was_missing() {
        let user = User::default();
        let looks = AtomicUsize::new(0);
        let never = || async {
            looks.fetch_add(1, Ordering::SeqCst);
            Ok(Seen::<()>::NotYet("it is booting".to_owned()))
        };
        let error = until(&user, "`cp-1`", Duration::from_secs(1), never).await.unwrap_err();
        assert_eq!(error.class, ErrorClass::Unreachable);
        assert_eq!(error.message, "`cp-1` did not come about within 1 s: it is booting");
        assert_eq!(looks.into_inner(), 5, "pauses grow, so that a node that boots is not asked all the time");
    }
}
