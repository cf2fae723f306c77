//! Workers that fail in ways of their own.

use colloquy_client::{Answer, Worker};
use colloquy_tests::both_ways;
use colloquy_tests::people::{Tenant, check_echoes};
use colloquy_tests::server::Server;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

both_ways! {
    a_panicking_agent_gives_its_turn_back,
}

async fn a_panicking_agent_gives_its_turn_back(server: Server) {
    // A lease far longer than the test: only the release can bring the turn back.
    let overrides = json!({"queue": {"debounce_ms": 0, "lease_ms": 600_000, "retry_ms": 0}});
    let tenant = Tenant::create(&server.operator, &server.http, overrides).await;
    let (stop, calls) = (CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
    let worker = Worker::new(tenant.worker_client(&server.operator), "clumsy").stop_with(stop.clone());
    let counted = calls.clone();
    let run = tokio::spawn(worker.run(move |turn| {
        let call = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            assert!(call > 0, "the first attempt panics");
            Ok(Answer::text(format!("echo: {}", turn.text())))
        }
    }));
    tenant.say(5, 1, "hello").await;
    tenant.settled(5, Duration::from_secs(20)).await;
    check_echoes(5, &["hello".into()], &tenant.talk(5).await);
    assert_eq!(calls.load(Ordering::SeqCst), 2);
    stop.cancel();
    run.await.unwrap().unwrap();
}
