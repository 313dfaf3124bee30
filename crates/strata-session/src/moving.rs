//! Carries out the moves of a run, once it is agreed to and before anything else is done.

use strata_engine::Move;

use crate::error::SessionError;
use crate::planned::Planned;
use crate::stack_session::StackSession;

/// Every state has its lock by now. A run that dies on the way leaves each object in one state: the next one goes on.
pub(crate) async fn carry_out(planned: &mut [Planned<'_>]) -> Result<(), SessionError> {
    let mut sessions: Vec<&mut StackSession> = planned
        .iter_mut()
        .filter_map(|one| match one {
            Planned::Native(session, _) => Some(&mut **session),
            Planned::Driven(_) | Planned::Deferred { .. } | Planned::Unplanned { .. } => None,
        })
        .collect();
    for session in &mut sessions {
        session.rename().await?;
    }
    for to in 0..sessions.len() {
        for from in 0..sessions.len() {
            let key = sessions[from].view().key.clone();
            let is_from = |one: &&Move| matches!(one, Move::Arrival { from_key, .. } if *from_key == key);
            let arrivals: Vec<Move> = sessions[to].view().moves.iter().filter(is_from).cloned().collect();
            if arrivals.is_empty() {
                continue;
            }
            if let Ok([source, target]) = sessions.get_disjoint_mut([from, to]) {
                source.hand_over(target, &arrivals).await?;
            }
        }
    }
    Ok(())
}
