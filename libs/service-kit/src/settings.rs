//! Where a process listens and how long things may take.

use colloquy_types::Error;
use serde::{Deserialize, Serialize};

/// Where a process listens. Port 0 takes a free one; an empty string does not listen.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// gRPC, for instance `0.0.0.0:7100`.
    pub grpc_listen: String,
    /// Webhooks and other HTTP.
    pub http_listen: String,
    /// `/livez`, `/readyz`, `/metrics`.
    pub admin_listen: String,
    /// Longest time a unary call may take, in seconds; a client's own deadline is kept when shorter.
    pub call_limit_s: u64,
    /// After the stop signal: time in which a load balancer takes the process out, in milliseconds.
    pub drain_ms: u64,
    /// After that: time in which calls and tasks may finish, in seconds.
    pub stop_limit_s: u64,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            grpc_listen: "127.0.0.1:7100".into(),
            http_listen: "127.0.0.1:7180".into(),
            admin_listen: "127.0.0.1:7190".into(),
            call_limit_s: 60,
            drain_ms: 500,
            stop_limit_s: 20,
        }
    }
}

impl ServerConfig {
    /// What cannot work, by setting below `server`.
    pub fn problems(&self) -> Vec<Error> {
        let listeners = [
            ("grpc_listen", &self.grpc_listen),
            ("http_listen", &self.http_listen),
            ("admin_listen", &self.admin_listen),
        ];
        let mut problems = Vec::new();
        for (place, (setting, listen)) in listeners.iter().enumerate() {
            if listen.is_empty() {
                continue;
            }
            let port = listen.rsplit_once(':').filter(|(host, _)| !host.is_empty());
            let Some(port) = port.and_then(|(_, port)| port.parse::<u16>().ok()) else {
                let message = format!("`{listen}` is not host:port, for instance 0.0.0.0:7100");
                problems.push(Error::invalid(*setting, message));
                continue;
            };
            let taken = listeners[..place].iter().find(|(_, other)| other == listen);
            if let Some((other, _)) = taken.filter(|_| port != 0) {
                let message = format!("`{listen}` is `{other}` already");
                problems.push(Error::invalid(*setting, message));
            }
        }
        if self.call_limit_s == 0 {
            problems.push(Error::invalid("call_limit_s", "must be at least 1"));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(change: impl FnOnce(&mut ServerConfig)) -> Vec<String> {
        let mut config = ServerConfig::default();
        change(&mut config);
        let fields = config.problems().into_iter().filter_map(|problem| problem.field);
        fields.collect()
    }

    #[test]
    fn what_cannot_be_listened_on_is_said() {
        assert!(wrong(|_| ()).is_empty());
        for listen in [
            "nonsense",
            "127.0.0.1",
            ":7100",
            "127.0.0.1:",
            "host:70000",
            "http://host",
        ] {
            assert_eq!(
                wrong(|c| c.grpc_listen = listen.into()),
                ["grpc_listen"],
                "{listen}"
            );
        }
        for listen in ["", "localhost:7100", "[::1]:7100", "0.0.0.0:0"] {
            assert!(wrong(|c| c.grpc_listen = listen.into()).is_empty(), "{listen}");
        }
        assert_eq!(wrong(|c| c.http_listen = c.grpc_listen.clone()), ["http_listen"]);
        let any = |c: &mut ServerConfig| {
            c.http_listen = "127.0.0.1:0".into();
            c.grpc_listen = "127.0.0.1:0".into();
        };
        assert!(wrong(any).is_empty(), "each takes a free port of its own");
    }
}
