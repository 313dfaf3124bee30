//! What goes wrong, and when: every call is numbered, and a script may say what becomes of it.

/// One call to a remote or a store.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// Counts the writes of all runs, from 1; none for a call that only looks.
    pub(crate) write: Option<usize>,
    pub(crate) what: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// It fails and has done nothing.
    Before,
    /// It is done, and the answer is lost.
    After,
    KillBefore,
    KillAfter,
    /// The process dies while it writes: only a part arrives. A remote knows no such thing.
    KillTorn,
}

type Decide = Box<dyn FnMut(&Call) -> Fault + Send>;

/// Numbers the calls and asks the script about each.
#[derive(Default)]
pub(crate) struct Script {
    decide: Option<Decide>,
    pub(crate) writes: usize,
    /// All calls, in order.
    pub(crate) log: Vec<String>,
}

impl Script {
    pub(crate) fn set(&mut self, decide: impl FnMut(&Call) -> Fault + Send + 'static) {
        self.writes = 0;
        self.decide = Some(Box::new(decide));
    }

    pub(crate) fn clear(&mut self) {
        self.decide = None;
    }

    pub(crate) fn next(&mut self, what: &str, is_write: bool) -> Fault {
        self.writes += usize::from(is_write);
        self.log.push(what.to_owned());
        let call = Call { write: is_write.then_some(self.writes), what: what.to_owned() };
        self.decide.as_mut().map_or(Fault::None, |decide| decide(&call))
    }
}

/// The process dies at the k-th write.
pub(crate) fn kill_at(k: usize, fault: Fault) -> impl FnMut(&Call) -> Fault + Send + 'static {
    move |call| if call.write == Some(k) { fault } else { Fault::None }
}
