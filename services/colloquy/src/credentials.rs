//! API keys, as control knows them: believed for seconds while it is up, for minutes while it is down.

use async_trait::async_trait;
use colloquy_proto::convert::optional_id;
use colloquy_proto::v1::control_service_client::ControlServiceClient;
use colloquy_proto::v1::{self};
use colloquy_service_kit::cache::Answers;
use colloquy_service_kit::client::untenanted;
use colloquy_service_kit::{Credentials, InternalChannel, from_status};
use colloquy_types::{AccountId, AgentId, CallerRole, Error, Principal, Reason, Result};
use sha2::{Digest, Sha256};

/// Longest key that is looked at, in bytes.
const MAX_KEY_BYTES: usize = 512;

/// Asks the control service.
pub struct ControlKeys {
    control: ControlServiceClient<InternalChannel>,
    /// By hash: no key stays in memory in clear.
    known: Answers<[u8; 32], Principal>,
}

impl ControlKeys {
    pub fn new(control: InternalChannel) -> Self {
        Self {
            control: ControlServiceClient::new(control),
            known: Answers::default(),
        }
    }
}

#[async_trait]
impl Credentials for ControlKeys {
    async fn authenticate(&self, token: &str) -> Result<Principal> {
        if !token.starts_with("clq_") || token.len() > MAX_KEY_BYTES {
            return Err(Error::new(
                Reason::BadCredential,
                "the key is unknown, malformed or revoked",
            ));
        }
        let ask = || {
            let (mut control, key) = (self.control.clone(), token.to_owned());
            async move {
                let answer = control.verify_key(untenanted(v1::VerifyKeyRequest { key })).await;
                principal(answer.map_err(from_status)?.into_inner())
            }
        };
        self.known.get(Sha256::digest(token.as_bytes()).into(), ask).await
    }
}

fn principal(answer: v1::VerifyKeyResponse) -> Result<Principal> {
    let roles = answer.roles().map(CallerRole::try_from).collect::<Result<_>>()?;
    Ok(Principal {
        tenant: Some(answer.tenant_id.parse()?),
        roles,
        key: optional_id(&answer.key_id)?,
        account: Some(answer.account)
            .filter(|text| !text.is_empty())
            .map(|text| AccountId::parse(&text))
            .transpose()?,
        agents: answer
            .agents
            .iter()
            .map(|agent| AgentId::parse(agent))
            .collect::<Result<_>>()?,
        subject: answer.subject,
    })
}
