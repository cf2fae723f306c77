//! Agents.

use super::fixture::*;
use crate::*;
use colloquy_types::{TenantId, UnixMillis};

async fn new_agent(f: &Fixture, id: &str) -> Agent {
    let tenant = TenantId::new();
    f.store.create_tenant(tenant, &tenant.to_string()).await.unwrap();
    agent_of(tenant, id)
}

fn agent_of(tenant: TenantId, id: &str) -> Agent {
    Agent {
        tenant,
        id: agent(id),
        display_name: "Helper".to_owned(),
        profile: "goclaw".to_owned(),
        overrides_json: r#"{"queue":{"capacity":5}}"#.to_owned(),
        version: 77,
        created: UnixMillis(0),
        updated: UnixMillis(0),
    }
}

pub async fn an_agents_version_grows_with_every_change(f: &Fixture) {
    let given = new_agent(f, "default").await;
    let now = f.store.now().await.unwrap();
    let first = f.store.put_agent(&given).await.unwrap();
    assert_eq!(
        first,
        Agent {
            version: 1,
            created: now,
            updated: now,
            ..given.clone()
        }
    );
    f.advance(5).await;
    let changed = Agent {
        profile: "openclaw".to_owned(),
        ..given
    };
    let second = f.store.put_agent(&changed).await.unwrap();
    assert_eq!(
        (second.version, second.created, second.updated),
        (2, now, now.plus(5))
    );
    assert_eq!(second.profile, "openclaw");
    assert_eq!(
        f.store.get_agent(changed.tenant, &changed.id).await.unwrap(),
        Some(second)
    );
    assert_eq!(
        f.store
            .get_agent(changed.tenant, &agent("unknown"))
            .await
            .unwrap(),
        None
    );
}

pub async fn agents_are_listed_by_id(f: &Fixture) {
    let first = new_agent(f, "b").await;
    f.store.put_agent(&first).await.unwrap();
    f.store.put_agent(&agent_of(first.tenant, "a")).await.unwrap();
    let listed = f.store.list_agents(first.tenant).await.unwrap();
    assert_eq!(
        listed.iter().map(|agent| agent.id.as_str()).collect::<Vec<_>>(),
        ["a", "b"]
    );
}
