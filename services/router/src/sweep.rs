//! Seeds the schedule from the database: what was lost with Redis or a replica comes back within one pause.
//! Every replica sweeps; seeding twice is harmless.

use crate::service::Router;
use crate::{Config, route::schedule};
use colloquy_proto::convert::{duration, duration_ms};
use colloquy_proto::v1;
use colloquy_service_kit::client::untenanted;
use colloquy_service_kit::from_status;
use colloquy_types::queue::Lane;
use colloquy_types::{AgentId, Result};
use std::time::Duration;
use tokio::time::Instant;

const LIMIT: u32 = 2_000;
/// Sessions of one agent: enough to keep its workers busy until the next sweep, and no more than that.
const PER_AGENT: u32 = 200;
/// Pause after a sweep, in its own durations.
const REST: u32 = 10;

pub async fn run(router: Router, config: Config) -> Result<()> {
    let horizon = i64::try_from(config.sweep_ms).unwrap_or(1_000) * 2;
    let mut took = Duration::ZERO;
    loop {
        // A sweep over a great backlog takes its time; the database is not to do little else.
        let pause = Duration::from_millis(config.sweep_ms).max(took * REST);
        if !router
            .shutdown
            .sleep(pause.mul_f64(rand::random_range(0.8..1.2)))
            .await
        {
            break;
        }
        let start = Instant::now();
        // Seeding half is harmless, and a call that the stop cuts off is no fault.
        tokio::select! {
            seeded = seed(&router, horizon) => if let Err(error) = seeded {
                tracing::warn!(%error, "schedule sweep failed");
            },
            () = router.shutdown.begun() => break,
        }
        took = start.elapsed();
    }
    Ok(())
}

async fn seed(router: &Router, horizon: i64) -> Result<()> {
    let message = v1::ListRunnableRequest {
        horizon: Some(duration(horizon)),
        limit: LIMIT,
        per_agent: PER_AGENT,
    };
    let found = router
        .history()
        .list_runnable(untenanted(message))
        .await
        .map_err(from_status)?
        .into_inner();
    for session in found.sessions {
        let due = session.due_in.as_ref().map_or(0, duration_ms);
        let lane = Lane::from(session.lane());
        let (tenant, agent) = (session.tenant_id.parse()?, AgentId::parse(&session.agent)?);
        schedule(router, tenant, agent, &session.session_id, lane, due).await;
    }
    Ok(())
}
