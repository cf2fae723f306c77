//! A whole server on free ports, called over the network and in process.

#![allow(clippy::unwrap_used)] // a test may panic

mod http;

use async_trait::async_trait;
use colloquy_service_kit::run::{Boot, Context, connect_within, start};
use colloquy_service_kit::{
    Auth, Check, Contract, Credentials, MethodRoles, Parts, Running, ServerConfig, Shutdown, Task,
};
use colloquy_types::{CallerRole, Error, Principal, Reason, Result, TenantId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use tonic::transport::Channel;
use tonic::{Code, Request};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

const CHECK: &str = "/grpc.health.v1.Health/Check";

struct OneKey;

#[async_trait]
impl Credentials for OneKey {
    async fn authenticate(&self, token: &str) -> Result<Principal> {
        if token != "good" {
            return Err(Error::new(Reason::BadCredential, "unknown key"));
        }
        Ok(Principal {
            tenant: Some(TenantId::new()),
            roles: vec![CallerRole::Viewer],
            key: None,
            subject: "someone".into(),
            account: None,
            agents: vec![],
        })
    }
}

fn free_ports() -> ServerConfig {
    ServerConfig {
        grpc_listen: "127.0.0.1:0".into(),
        http_listen: "127.0.0.1:0".into(),
        admin_listen: "127.0.0.1:0".into(),
        drain_ms: 0,
        stop_limit_s: 2,
        ..ServerConfig::default()
    }
}

async fn server(roles: &[CallerRole], parts: Parts) -> Running {
    server_with(&free_ports(), roles, parts).await
}

async fn server_with(config: &ServerConfig, roles: &[CallerRole], parts: Parts) -> Running {
    let methods = MethodRoles::from([(CHECK, roles.to_vec())]);
    let build = |_: Context| async move {
        Ok(Boot {
            auth: Auth::new(Arc::new(OneKey), "svc_key", Some("op_key"), methods),
            parts: vec![parts],
        })
    };
    start(
        config,
        Contract {
            descriptors: tonic_health::pb::FILE_DESCRIPTOR_SET,
        },
        build,
        Shutdown::new(),
    )
    .await
    .unwrap()
}

async fn check(channel: Channel, headers: &[(&'static str, &str)]) -> Code {
    let mut request = Request::new(HealthCheckRequest {
        service: String::new(),
    });
    for (name, value) in headers {
        request.metadata_mut().insert(*name, value.parse().unwrap());
    }
    HealthClient::new(channel)
        .check(request)
        .await
        .map_or_else(|status| status.code(), |_| Code::Ok)
}

#[tokio::test]
async fn a_method_asks_for_a_credential_with_one_of_its_roles() {
    let running = server(&[CallerRole::Viewer, CallerRole::Service], Parts::new("test")).await;
    let over_network =
        colloquy_service_kit::client::channel(&format!("http://{}", running.grpc.unwrap())).unwrap();
    for channel in [running.channel.clone(), over_network] {
        assert_eq!(check(channel.clone(), &[]).await, Code::Unauthenticated);
        assert_eq!(
            check(channel.clone(), &[("authorization", "good")]).await,
            Code::Unauthenticated
        );
        assert_eq!(
            check(channel.clone(), &[("authorization", "Bearer bad")]).await,
            Code::Unauthenticated
        );
        assert_eq!(
            check(channel.clone(), &[("authorization", "Bearer good")]).await,
            Code::Ok
        );
        assert_eq!(
            check(channel.clone(), &[("authorization", "Bearer op_key")]).await,
            Code::PermissionDenied
        );
        assert_eq!(
            check(channel, &[("authorization", "Bearer svc_key")]).await,
            Code::Ok
        );
    }
    assert!(running.stop().await);
}

#[tokio::test]
async fn only_a_service_may_name_a_tenant() {
    let running = server(&[CallerRole::Viewer, CallerRole::Service], Parts::new("test")).await;
    let tenant = TenantId::new().to_string();
    let named = |key| [("authorization", key), ("x-colloquy-tenant", tenant.as_str())];
    assert_eq!(
        check(running.channel.clone(), &named("Bearer good")).await,
        Code::InvalidArgument
    );
    assert_eq!(
        check(running.channel.clone(), &named("Bearer svc_key")).await,
        Code::Ok
    );
    let nonsense = [
        ("authorization", "Bearer svc_key"),
        ("x-colloquy-tenant", "nonsense"),
    ];
    assert_eq!(
        check(running.channel.clone(), &nonsense).await,
        Code::InvalidArgument
    );
}

#[tokio::test]
async fn a_dependency_that_fails_takes_the_service_out_and_back() {
    let (down, probes) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU32::new(0)));
    let (down_here, probes_here) = (down.clone(), probes.clone());
    let probe = move || {
        probes_here.fetch_add(1, Ordering::SeqCst);
        let down = down_here.load(Ordering::SeqCst);
        async move {
            if down {
                Err(Error::unavailable("down"))
            } else {
                Ok(())
            }
        }
    };
    let running = server(
        &[CallerRole::Viewer],
        Parts::new("test").check(Check::new("db", probe)),
    )
    .await;
    let until = |ready: bool| {
        let readiness = running.readiness.clone();
        async move {
            while readiness.get() != ready {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), until(true))
        .await
        .expect("one failure is tolerated");
    tokio::time::timeout(Duration::from_secs(10), until(false))
        .await
        .expect("three in a row are not");
    assert!(probes.load(Ordering::SeqCst) >= 3);
    down.store(false, Ordering::SeqCst);
    tokio::time::timeout(Duration::from_secs(10), until(true))
        .await
        .expect("one success brings it back");
}

#[tokio::test]
async fn ready_goes_false_first_and_the_stop_is_bounded() {
    let stuck = Task::new("stuck", async {
        std::future::pending::<()>().await;
        Ok(())
    });
    let running = server(&[CallerRole::Viewer], Parts::new("test").task(stuck)).await;
    let before = tokio::time::Instant::now();
    assert!(!running.stop().await, "a stuck task is reported");
    assert!(!running.readiness.get());
    assert!(before.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn ready_stays_false_while_calls_are_still_taken() {
    let config = ServerConfig {
        drain_ms: 2_500,
        ..free_ports()
    };
    let running = server_with(&config, &[CallerRole::Viewer], Parts::new("test")).await;
    let ready = running.readiness.clone();
    while !ready.get() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let stop = running.stop();
    tokio::pin!(stop);
    let mut looks = 0;
    // The checks go on all the while and find everything well.
    while tokio::time::timeout(Duration::from_millis(20), &mut stop)
        .await
        .is_err()
    {
        assert!(!ready.get(), "ready again after {looks} looks");
        looks += 1;
    }
    assert!(looks > 50, "{looks}");
}

#[tokio::test]
async fn a_task_that_fails_stops_the_process() {
    let failing = Task::new("failing", async { Err(Error::internal("broken")) });
    let running = server(&[CallerRole::Viewer], Parts::new("test").task(failing)).await;
    tokio::time::timeout(Duration::from_secs(5), running.shutdown.begun())
        .await
        .expect("the stop begins");
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_dependency_ends() {
    let result = connect_within("database", Duration::from_secs(30), || async {
        Err::<(), _>(Error::unavailable("refused"))
    });
    assert_eq!(result.await.unwrap_err().reason, Reason::Dependency);
    let at_once = connect_within("database", Duration::from_secs(30), || async {
        Err::<(), _>(Error::invalid("postgres.url", "not a URL"))
    });
    assert_eq!(at_once.await.unwrap_err().reason, Reason::InvalidField);
}

#[tokio::test]
async fn an_answer_carries_the_calls_request_id() {
    let running = server(&[CallerRole::Viewer], Parts::new("test")).await;
    for (given, key) in [
        (Some("abc-1"), "Bearer good"),
        (None, "Bearer good"),
        (Some("abc-2"), "Bearer bad"),
    ] {
        let mut request = Request::new(HealthCheckRequest {
            service: String::new(),
        });
        request
            .metadata_mut()
            .insert("authorization", key.parse().unwrap());
        if let Some(id) = given {
            request.metadata_mut().insert("x-request-id", id.parse().unwrap());
        }
        let metadata = match HealthClient::new(running.channel.clone()).check(request).await {
            Ok(answer) => answer.metadata().clone(),
            Err(status) => status.metadata().clone(),
        };
        let answered = metadata.get("x-request-id").expect("an id").to_str().unwrap();
        assert!(
            given.is_none_or(|given| given == answered) && !answered.is_empty(),
            "{answered}"
        );
    }
}
