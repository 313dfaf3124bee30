//! One look at everything: what several stacks would ask in the same words is asked once.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OnceCell;

type Answer = Arc<OnceCell<Arc<dyn Any + Send + Sync>>>;

/// The answers of one look, by question. It begins when the plans of a run do, and ends with them: nothing that was written is behind it,
/// so a listing of it is as good as a new one. Whoever recovers, executes or proves something looks again.
#[derive(Clone, Default)]
pub struct Look(Arc<Mutex<BTreeMap<String, Answer>>>);

impl Look {
    /// The answer to a question: of whoever asked it first in this look, or else of `ask`. An answer that says that it failed is one, too:
    /// what does not answer is not asked again by every stack.
    pub async fn once<T, F>(&self, question: String, ask: impl FnOnce() -> F) -> Arc<T>
    where
        T: Send + Sync + 'static,
        F: Future<Output = T>,
    {
        let cell = {
            let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(answers.entry(question).or_default())
        };
        let answer = cell.get_or_init(|| async { Arc::new(ask().await) as Arc<dyn Any + Send + Sync> });
        let answer = Arc::clone(answer.await);
        answer.downcast().expect("a question names what it asks for")
    }
}

impl fmt::Debug for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Look(..)")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_question_is_asked_once_however_many_ask_it_at_the_same_time() {
        let (look, asked) = (Look::default(), AtomicUsize::new(0));
        let ask = |question: &str| {
            look.once(question.to_owned(), || async {
                tokio::task::yield_now().await;
                asked.fetch_add(1, Ordering::SeqCst)
            })
        };
        let (a, b, c) = tokio::join!(ask("guests"), ask("guests"), ask("storages"));
        assert_eq!(a, b);
        assert_ne!(a, c);
        assert_eq!(*ask("guests").await, *a);
        assert_eq!(asked.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn what_failed_is_not_asked_again() {
        let (look, asked) = (Look::default(), AtomicUsize::new(0));
        for _ in 0..3 {
            let answer = look.once("guests".to_owned(), || async {
                asked.fetch_add(1, Ordering::SeqCst);
                Err::<(), _>("nobody answers")
            });
            assert_eq!(*answer.await, Err("nobody answers"));
        }
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }
}
