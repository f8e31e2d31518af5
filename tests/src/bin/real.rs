//! Runs mini-redis, a server that others wrote, under holdup, with nothing changed but an import and a limit.
//!
//! Its sources come from the registry's copy, go into the target folder, and stay there. First its own tests are run,
//! which must end as they do with tokio's semaphore.
//! Then clients take all the connections it permits, and what `holdup snapshot --json` says is compared with what is true.

use holdup_tests::workspace::{Metadata, Scratch, cargo, read, run};
use serde_json::Value;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

/// So few that three clients reach it.
const LIMIT: usize = 3;

/// How long the server and holdup may take for anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// How the published server acquires: the permit is forgotten, and added again when the connection ends.
const FORGETS: &str = "self.limit_connections.acquire().await.unwrap().forget();";
/// How mini-redis does it since: the permit travels into the connection's task.
const OWNS: &str = "let permit = self.limit_connections.clone().acquire_owned().await.unwrap();";

fn main() {
    let metadata = Metadata::of_workspace();
    let target = metadata.target_folder();
    let holdup = target.join("debug/holdup");
    run(cargo().args(["build", "--bin", "holdup"]));

    let theirs = fetch(target);
    println!("mini-redis: its own tests, with tokio's semaphore and with ours");
    let with_tokio = results(&copy(&theirs, target, |text| text));
    let package = copy(&theirs, target, |text| text.replace("tokio::sync", "holdup::sync"));
    let with_holdup = results(&package);
    assert_eq!(with_holdup, with_tokio);
    println!("  the same results: {}", with_holdup.join(", "));

    let published = read(&package.folder().join("src/server.rs"));
    let limited = replace(
        &published,
        "MAX_CONNECTIONS: usize = 250",
        &format!("MAX_CONNECTIONS: usize = {LIMIT}"),
    );
    let owning = replace(&limited, FORGETS, OWNS);
    let owning = replace(
        &owning,
        "tokio::spawn(async move {",
        "tokio::spawn(async move { let _permit = permit;",
    );
    let owning = replace(&owning, "self.limit_connections.add_permits(1);", "");

    println!("mini-redis as published: permits are forgotten and added again");
    let server = Server::start(&package, &holdup, &limited);
    let mut clients = Client::several(&server);
    let line = site(&limited, FORGETS);
    server.shows("all permits forgotten, and the accept loop waits", |seen| {
        let resource = seen.semaphore();
        let (forgotten, added) = (resource["forgotten"].as_u64(), resource["added"].as_u64());
        let away = forgotten.zip(added).map(|(forgotten, added)| forgotten - added);
        away == Some(LIMIT as u64)
            && resource["available"] == 0
            && seen.sites_of("waits") == [line.as_str()]
    });
    clients.pop();
    server.shows("a connection ended, and its permit was added again", |seen| {
        let resource = seen.semaphore();
        resource["added"] == 1 && resource["waiting"] == 0 && resource["granted"] == 0
    });
    server.stop(clients);

    println!("mini-redis with owned permits: they are held");
    let server = Server::start(&package, &holdup, &owning);
    let mut clients = Client::several(&server);
    let line = site(&owning, OWNS);
    server.shows("a hold for each connection, acquired by the accept loop, which waits", |seen| {
        let (holds, waits) = (seen.sites_of("holds"), seen.sites_of("waits"));
        let all_here = holds.iter().chain(&waits).all(|site| *site == line);
        // A permit shows who acquired it; where it travelled leaves no trace.
        let acquirer = &seen.0["waits"][0]["actor"];
        let by_the_loop = (0..LIMIT).all(|hold| seen.0["holds"][hold]["actor"] == *acquirer);
        holds.len() == LIMIT && waits.len() == 1 && all_here && by_the_loop
    });
    clients.pop();
    server.shows("a connection ended, and its permit came back", |seen| {
        let resource = seen.semaphore();
        resource["counters"]["released"] == 1 && resource["waiting"] == 0
    });
    server.stop(clients);
    println!("all as it should be");
}

/// The folder of mini-redis in the registry.
fn fetch(target: &Path) -> PathBuf {
    let package = Scratch::new(&target.join("real/fetch"), target);
    package.manifest(
        r#"
        [package]
        name = "fetch"
        version = "0.0.0"
        [dependencies]
        mini-redis = "=0.4.1"
        "#,
    );
    package.write("src/lib.rs", "");
    package.metadata().package("mini-redis").folder().to_owned()
}

/// mini-redis, able to use holdup, with each file changed.
fn copy(theirs: &Path, target: &Path, change: impl Fn(String) -> String) -> Scratch {
    let package = Scratch::new(&target.join("real/mini-redis"), target);
    package.manifest(&format!(
        "{}\n[dependencies.holdup]\nHOLDUP\n",
        read(&theirs.join("Cargo.toml"))
    ));
    for folder in ["src", "tests"] {
        package.copy(&theirs.join(folder), Path::new(folder), &change);
    }
    package.write("README.md", read(&theirs.join("README.md")));
    package
}

/// Each of its tests with its result. One of them fails on a tokio that is younger than it, whoever's semaphore it is.
fn results(package: &Scratch) -> Vec<String> {
    run(&mut package.cargo(["test", "--no-run"]));
    let output = package
        .cargo(["test", "--tests", "--no-fail-fast"])
        .output()
        .expect("cargo can be started");
    let output = String::from_utf8_lossy(&output.stdout);
    let tests = output.lines().filter_map(|line| line.strip_prefix("test ")?.split_once(" ... "));
    let mut results: Vec<_> = tests.map(|(name, result)| format!("{name} {result}")).collect();
    results.sort();
    assert!(results.iter().any(|result| result.ends_with("ok")), "{results:?}");
    results
}

/// Replaces what must be there.
fn replace(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "mini-redis has no {from:?} any more");
    text.replace(from, to)
}

/// `file:line:`, as in a site, of a statement in the server.
fn site(server: &str, statement: &str) -> String {
    let line =
        server.lines().position(|line| line.contains(statement)).expect("it was just put there");
    format!("src/server.rs:{}:", line + 1)
}

/// The server, under holdup.
struct Server {
    holdup: PathBuf,
    /// For the socket, so that no other process is found. The server makes it.
    folder: PathBuf,
    port: u16,
    run: Child,
}

impl Server {
    fn start(package: &Scratch, holdup: &Path, code: &str) -> Server {
        package.write("src/server.rs", code);
        run(&mut package.cargo(["build", "--bin", "mini-redis-server"]));

        let folder = package.folder().join("sockets");
        let log = File::create(package.folder().join("log")).expect("a file in the target folder");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = listener.local_addr().expect("the port of a listener").port();
        drop(listener);
        let run = Command::new(holdup)
            .args(["run", "--text", "--"])
            .arg(package.built("debug", "mini-redis-server"))
            .args(["--port", &port.to_string()])
            .env("HOLDUP_SOCKET_DIR", &folder)
            .stdout(log.try_clone().expect("a second handle"))
            .stderr(log)
            .spawn();
        let run = run.expect("holdup was just built");
        Server { holdup: holdup.to_owned(), folder, port, run }
    }

    fn seen(&self) -> Option<Seen> {
        let mut snapshot = Command::new(&self.holdup);
        snapshot.args(["snapshot", "--json"]).env("HOLDUP_SOCKET_DIR", &self.folder);
        let output = snapshot.output().expect("holdup was just built");
        output.status.success().then(|| Seen(serde_json::from_slice(&output.stdout).expect("JSON")))
    }

    /// Waits until holdup shows something. There must be no finding, before and then.
    fn shows(&self, what: &str, shown: impl Fn(&Seen) -> bool) {
        let begin = Instant::now();
        loop {
            let seen = self.seen();
            if let Some(seen) = &seen {
                assert_eq!(
                    seen.0["findings"],
                    Value::Array(Vec::new()),
                    "a healthy server is accused"
                );
                if shown(seen) {
                    println!("  {what}");
                    return;
                }
            }
            if begin.elapsed() > PATIENCE {
                let seen = seen.map(|seen| format!("{:#}", seen.0));
                panic!("not seen: {what}\n{}", seen.unwrap_or_else(|| "no snapshot".to_owned()));
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Ends it as a user would. `holdup run` ends with it, and says how it ended.
    fn stop(mut self, clients: Vec<Client>) {
        drop(clients);
        let seen = self.seen().expect("a snapshot of a server that runs");
        let pid = seen.0["process"]["pid"].to_string();
        run(Command::new("kill").args(["-INT", &pid]));
        let status = self.run.wait().expect("our own child");
        assert!(status.success(), "holdup run: {status}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After `stop` there is nobody left; after a panic it is best effort.
        if let Some(seen) =
            self.run.try_wait().ok().filter(Option::is_none).and_then(|_| self.seen())
        {
            let _ = Command::new("kill").arg(seen.0["process"]["pid"].to_string()).status();
        }
        let _ = self.run.kill();
        let _ = self.run.wait();
    }
}

/// What `holdup snapshot --json` says.
struct Seen(Value);

impl Seen {
    /// The one that limits connections; `Null` before the server has made it.
    fn semaphore(&self) -> &Value {
        let resources = self.0["resources"].as_array().map_or(&[][..], Vec::as_slice);
        resources.iter().find(|resource| resource["initial"] == LIMIT).unwrap_or(&Value::Null)
    }

    /// `file:line:` of all holds or waits.
    fn sites_of(&self, records: &str) -> Vec<&str> {
        let records = self.0[records].as_array().map_or(&[][..], Vec::as_slice);
        let sites = records.iter().filter_map(|record| record["site"].as_str());
        sites.map(|site| site.trim_end_matches(|column: char| column.is_ascii_digit())).collect()
    }
}

/// A connection that has been served, and stays.
struct Client {
    _stream: TcpStream,
}

impl Client {
    /// As many as the server permits.
    fn several(server: &Server) -> Vec<Client> {
        (0..LIMIT).map(|client| Client::new(server.port, client)).collect()
    }

    fn new(port: u16, client: usize) -> Client {
        let mut stream = connect(port);
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout that is not zero");
        let key = format!("k{client}");
        stream
            .write_all(format!("*3\r\n$3\r\nSET\r\n$2\r\n{key}\r\n$1\r\n1\r\n").as_bytes())
            .expect("a live server");
        let mut reply = [0; 5];
        stream.read_exact(&mut reply).expect("a reply");
        assert_eq!(&reply, b"+OK\r\n");
        Client { _stream: stream }
    }
}

fn connect(port: u16) -> TcpStream {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let begin = Instant::now();
    loop {
        match TcpStream::connect(address) {
            Ok(stream) => return stream,
            Err(error) if begin.elapsed() > PATIENCE => panic!("{address}: {error}"),
            Err(_) => thread::sleep(Duration::from_millis(50)),
        }
    }
}
