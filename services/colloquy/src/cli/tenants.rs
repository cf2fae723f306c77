//! Tenants.

use super::output::{Output, Row, instant, when};
use super::paging;
use clap::Subcommand;
use colloquy_client::{Client, v1};
use serde_json::json;

#[derive(Debug, Subcommand)]
pub enum Tenants {
    /// Create a tenant; prints its first admin key, this once.
    #[command(after_help = "Example: colloquy tenants create 'Harbour Bikes' --key OPERATOR_KEY")]
    Create {
        /// Unique, 1 to 200 characters.
        name: String,
    },
    /// All tenants by creation.
    #[command(after_help = "Example: colloquy tenants list --key OPERATOR_KEY")]
    List,
}

pub async fn run(client: &Client, out: &Output, verb: Tenants) -> anyhow::Result<()> {
    match verb {
        Tenants::Create { name } => create(client, out, name).await,
        Tenants::List => list(client, out).await,
    }
}

async fn create(client: &Client, out: &Output, name: String) -> anyhow::Result<()> {
    let created = client
        .control()
        .create_tenant(v1::CreateTenantRequest { name })
        .await?;
    let created = created.into_inner();
    let tenant = created.tenant.unwrap_or_default();
    let (mut json, _) = row(&tenant);
    json["admin_key"] = created.admin_key.clone().into();
    out.one(
        &json,
        &[("tenant", tenant.tenant_id), ("admin key", created.admin_key)],
    );
    out.note("Keep the key: it is not shown again.");
    Ok(())
}

async fn list(client: &Client, out: &Output) -> anyhow::Result<()> {
    let (tenants, _) = paging::up_to(u32::MAX, |page_size, page_token| {
        let mut control = client.control();
        async move {
            let ask = v1::ListTenantsRequest {
                page_size,
                page_token,
            };
            let page = control.list_tenants(ask).await?.into_inner();
            Ok((page.tenants, page.next_page_token))
        }
    })
    .await?;
    out.list(&["TENANT", "NAME", "CREATED"], tenants.iter().map(row).collect());
    Ok(())
}

fn row(tenant: &v1::Tenant) -> Row {
    let created = tenant.created_at.as_ref();
    let json = json!({"tenant_id": tenant.tenant_id, "name": tenant.name, "created_at": instant(created)});
    (
        json,
        vec![tenant.tenant_id.clone(), tenant.name.clone(), when(created)],
    )
}
