//! Trying again: jittered backoff with a deadline, and a verdict by the caller on every failure.

use std::sync::Arc;
use std::time::Duration;

use crate::Clock;

/// A source of random numbers, for jitter only.
pub type Random = Arc<dyn Fn() -> u64 + Send + Sync>;

/// How long and how often to try.
#[derive(Debug, Clone, Copy)]
pub struct RetryPolicy {
    /// The first wait; each further one is twice as long.
    pub first: Duration,
    /// No wait is longer.
    pub longest: Duration,
    /// No attempt begins after this much time.
    pub deadline: Duration,
    /// The first one counts.
    pub attempts: u32,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(200),
            longest: Duration::from_secs(5),
            deadline: Duration::from_secs(30),
            attempts: 10,
        }
    }
}

/// What a failure means for the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It could work a moment later.
    Again,
    /// It could work, but hardly: tried again only so many times in all.
    AtMost(u32),
    /// It is what it is.
    Final,
}

/// Runs `attempt` until it succeeds, its failure is final, or the policy is used up; then the last failure is the answer.
pub async fn retry<T, E, F: Future<Output = Result<T, E>>>(
    policy: RetryPolicy,
    clock: &dyn Clock,
    random: &Random,
    mut attempt: impl FnMut() -> F,
    verdict: impl Fn(&E) -> Verdict,
) -> Result<T, E> {
    let end = clock.monotonic() + policy.deadline;
    for made in 1.. {
        let error = match attempt().await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let allowed = match verdict(&error) {
            Verdict::Again => policy.attempts,
            Verdict::AtMost(attempts) => attempts.min(policy.attempts),
            Verdict::Final => return Err(error),
        };
        let wait = policy.wait(made, random());
        if made >= allowed || clock.monotonic() + wait > end {
            return Err(error);
        }
        clock.sleep(wait).await;
    }
    unreachable!("the loop ends by returning")
}

impl RetryPolicy {
    /// Between half of the step and the whole of it, so that many clients do not come back together.
    fn wait(&self, made: u32, random: u64) -> Duration {
        let step = self.first.saturating_mul(1 << (made - 1).min(16)).min(self.longest);
        let half = step / 2;
        let spread = u64::try_from(half.as_millis()).unwrap_or(u64::MAX).max(1);
        half + Duration::from_millis(random % spread)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;

    use super::*;

    /// A clock on which sleeping costs nothing and is remembered.
    #[derive(Default)]
    struct Slept(Mutex<Vec<Duration>>);

    #[async_trait]
    impl Clock for Slept {
        fn monotonic(&self) -> Duration {
            self.0.lock().unwrap().iter().sum()
        }
        fn unix(&self) -> i64 {
            0
        }
        async fn sleep(&self, duration: Duration) {
            self.0.lock().unwrap().push(duration);
        }
    }

    async fn run(
        policy: RetryPolicy,
        failures: usize,
        verdict: Verdict,
    ) -> (Result<usize, usize>, Vec<u128>) {
        let clock = Slept::default();
        let random: Random = Arc::new(|| 0);
        let mut made = 0;
        let result = retry(
            policy,
            &clock,
            &random,
            || {
                made += 1;
                std::future::ready(if made > failures { Ok(made) } else { Err(made) })
            },
            |_| verdict,
        )
        .await;
        let slept = clock.0.lock().unwrap().iter().map(Duration::as_millis).collect();
        (result, slept)
    }

    #[tokio::test]
    async fn waits_longer_each_time_until_it_works() {
        let (result, slept) = run(RetryPolicy::default(), 4, Verdict::Again).await;
        assert_eq!(result, Ok(5));
        assert_eq!(slept, [100, 200, 400, 800]);
    }

    #[tokio::test]
    async fn ends_at_the_deadline_and_at_the_last_attempt() {
        let short = RetryPolicy { deadline: Duration::from_millis(350), ..RetryPolicy::default() };
        assert_eq!(run(short, 99, Verdict::Again).await.0, Err(3));
        assert_eq!(run(RetryPolicy::default(), 99, Verdict::AtMost(2)).await.0, Err(2));
        assert_eq!(run(RetryPolicy::default(), 99, Verdict::Final).await, (Err(1), vec![]));
    }

    #[test]
    fn jitter_stays_within_the_step() {
        let policy = RetryPolicy::default();
        for random in [0, 1, 99, u64::MAX] {
            let wait = policy.wait(3, random);
            assert!(wait >= Duration::from_millis(400) && wait < Duration::from_millis(800), "{wait:?}");
        }
        assert!(policy.wait(u32::MAX, u64::MAX) <= policy.longest);
    }
}
