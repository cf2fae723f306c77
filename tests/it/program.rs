//! The program as a person starts it.

use colloquy_tests::cluster::{free_port, program};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn dev(data: &Path) -> Command {
    let mut command = Command::new(program());
    let listen = || format!("127.0.0.1:{}", free_port());
    command.arg("dev").arg("--data").arg(data);
    command.args(["--grpc", &listen(), "--http", &listen()]);
    command.stdin(Stdio::null());
    command
}

/// Dies with the test.
struct Running(Child);

impl Running {
    /// Returns once it has greeted.
    fn start(data: &Path) -> Self {
        let mut child = dev(data).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let running = Self(child);
        let greeting = lines.next().unwrap().unwrap();
        assert!(greeting.starts_with("colloquy is up"), "{greeting}");
        running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn a_folder_is_served_by_one_dev_server_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let first = Running::start(folder.path());
    let second = dev(folder.path()).output().unwrap();
    assert!(!second.status.success());
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(
        said.contains("another `colloquy dev`") && said.contains("--data"),
        "{said}"
    );
    // Another folder is another server; and a killed one holds nothing.
    drop(Running::start(tempfile::tempdir().unwrap().path()));
    drop(first);
    drop(Running::start(folder.path()));
}
