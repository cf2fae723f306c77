//! Channel accounts, as control knows them.

use colloquy_proto::convert::required;
use colloquy_proto::v1;
use colloquy_proto::v1::control_service_client::ControlServiceClient;
use colloquy_service_kit::cache::Answers;
use colloquy_service_kit::client::untenanted;
use colloquy_service_kit::{InternalChannel, from_status};
use colloquy_types::{AccountId, AgentId, ChannelName, Error, Result, TenantId};

/// What a message of the account needs.
#[derive(Clone)]
pub struct Account {
    pub tenant: TenantId,
    pub id: AccountId,
    pub channel: ChannelName,
    pub agent: AgentId,
    pub secret: String,
}

#[derive(Clone)]
pub struct Accounts {
    control: ControlServiceClient<InternalChannel>,
    known: Answers<AccountId, Account>,
}

impl Accounts {
    pub fn new(control: InternalChannel) -> Self {
        Self {
            control: ControlServiceClient::new(control),
            known: Answers::default(),
        }
    }

    /// # Errors
    /// `NOT_FOUND`, also for text that is no account id; `DEPENDENCY`.
    pub async fn find(&self, id: &str) -> Result<Account> {
        let account = AccountId::parse(id).map_err(|_| Error::not_found("account", id))?;
        let ask = || {
            let (mut control, account_id) = (self.control.clone(), id.to_owned());
            async move {
                let request = untenanted(v1::ResolveAccountRequest { account_id });
                convert(
                    control
                        .resolve_account(request)
                        .await
                        .map_err(from_status)?
                        .into_inner(),
                )
            }
        };
        self.known.get(account, ask).await
    }
}

fn convert(resolved: v1::ResolveAccountResponse) -> Result<Account> {
    let account = required("account", resolved.account)?;
    Ok(Account {
        tenant: resolved.tenant_id.parse()?,
        id: AccountId::parse(&account.account_id)?,
        channel: ChannelName::parse(&account.channel)?,
        agent: AgentId::parse(&account.agent)?,
        secret: account.secret,
    })
}
