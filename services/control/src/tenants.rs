//! Operator's business.

use crate::{convert, keys};
use colloquy_proto::v1;
use colloquy_storage::ControlStore;
use colloquy_types::{CallerRole, Result, TenantId};

pub async fn create(
    store: &dyn ControlStore,
    request: v1::CreateTenantRequest,
) -> Result<v1::CreateTenantResponse> {
    convert::check_name("name", &request.name, 200)?;
    let id = TenantId::new();
    let minted = keys::mint(id, "first admin", vec![CallerRole::Admin], "admin");
    let tenant = store
        .create_tenant_with_key(id, &request.name, &minted.row)
        .await?;
    Ok(v1::CreateTenantResponse {
        tenant: Some(convert::tenant(tenant)),
        admin_key: minted.text,
    })
}

pub async fn list(
    store: &dyn ControlStore,
    request: v1::ListTenantsRequest,
) -> Result<v1::ListTenantsResponse> {
    let page = store
        .list_tenants(&convert::page(request.page_size, request.page_token))
        .await?;
    Ok(v1::ListTenantsResponse {
        tenants: page.items.into_iter().map(convert::tenant).collect(),
        next_page_token: page.next.unwrap_or_default(),
    })
}
