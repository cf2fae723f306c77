//! Stands between a client and a server, to count what goes through and to cut it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

#[derive(Default)]
struct State {
    refuses: AtomicBool,
    scripts: AtomicUsize,
}

pub struct Proxy {
    pub url: String,
    state: Arc<State>,
    cut: watch::Sender<u32>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    /// In front of `redis://host:port`.
    pub async fn start(url: &str) -> Self {
        let server = url
            .trim_start_matches("redis://")
            .trim_end_matches('/')
            .to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        let (state, cut) = (Arc::new(State::default()), watch::Sender::new(0));
        let mut tasks = JoinSet::new();
        let (shared, cuts) = (state.clone(), cut.clone());
        tasks.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if shared.refuses.load(Ordering::SeqCst) {
                    continue;
                }
                let (state, mut cuts) = (shared.clone(), cuts.subscribe());
                let server = TcpStream::connect(&server).await.unwrap();
                tokio::spawn(async move {
                    tokio::select! {
                        () = pass(client, server, &state) => {}
                        _ = cuts.changed() => {}
                    }
                });
            }
        });
        Self {
            url,
            state,
            cut,
            _tasks: tasks,
        }
    }

    /// Scripts called so far.
    pub fn scripts(&self) -> usize {
        self.state.scripts.load(Ordering::SeqCst)
    }

    /// Breaks every connection and takes no new one.
    pub fn break_off(&self) {
        self.state.refuses.store(true, Ordering::SeqCst);
        self.cut.send_modify(|cuts| *cuts += 1);
    }

    pub fn let_through(&self) {
        self.state.refuses.store(false, Ordering::SeqCst);
    }
}

async fn pass(mut client: TcpStream, mut server: TcpStream, state: &State) {
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let there = async {
        let mut buffer = vec![0; 65_536];
        while let Ok(size @ 1..) = from_client.read(&mut buffer).await {
            let calls = buffer[..size]
                .windows(7)
                .filter(|word| word == b"EVALSHA")
                .count();
            state.scripts.fetch_add(calls, Ordering::SeqCst);
            if to_server.write_all(&buffer[..size]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = there => {}
        _ = copy(&mut from_server, &mut to_client) => {}
    }
}
