//! What is due, one by one: the failure of one holds up none of the others.

use colloquy_types::{Result, TenantId};
use std::fmt::Display;

/// Does `step` for every item. What fails is logged and stays due: it comes first again in the next round, ordered by
/// time as the lists are, and must not keep back what stands behind it.
pub async fn each<T, F, Fut>(what: &'static str, items: Vec<(TenantId, T)>, mut step: F)
where
    T: Copy + Display,
    F: FnMut(TenantId, T) -> Fut,
    Fut: Future<Output = Result<()>>,
{
    for (tenant, id) in items {
        if let Err(error) = step(tenant, id).await {
            tracing::warn!(%tenant, %id, %error, "{what}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use colloquy_types::{Error, TurnId};
    use std::sync::Mutex;

    #[tokio::test]
    async fn one_that_always_fails_holds_up_none_behind_it() {
        let items: Vec<(TenantId, TurnId)> = (0..3).map(|_| (TenantId::new(), TurnId::new())).collect();
        let (poisoned, done) = (items[0].1, Mutex::new(Vec::new()));
        each("turn cannot be ended", items.clone(), |_, turn| {
            if turn != poisoned {
                done.lock().unwrap().push(turn);
            }
            async move {
                if turn == poisoned {
                    return Err(Error::internal("broken row"));
                }
                Ok(())
            }
        })
        .await;
        assert_eq!(*done.lock().unwrap(), [items[1].1, items[2].1]);
    }
}
