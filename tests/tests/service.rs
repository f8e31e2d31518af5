//! A program that is attached to goes on, whatever the clients do.

#![cfg(all(target_os = "linux", debug_assertions))]

mod support;

use holdup_core::snapshot::Kind;
use holdup_proto::client::{Client, Target};
use holdup_proto::discovery;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::{PATIENCE, Place, Program, Relay, attach, eventually, refusal, role};

/// Further ones are turned away.
const CLIENTS: usize = 16;

/// What an HTTP/2 client says first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// And then: it has no wishes.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

/// The program itself, when it is started with a role; otherwise makes sure that it works.
#[test]
fn program() {
    match std::env::var(support::ROLE) {
        Ok(role) => role::run(&role),
        Err(_) => Program::start(&mut Program::command("work")).goes_on(),
    }
}

#[tokio::test]
async fn shows_the_program_and_lets_it_go() {
    let place = Place::new();
    let mut program = Program::serving(&place.sockets());
    let client = attach(&program.socket(&place.sockets())).await;
    assert_eq!(client.process().pid, program.pid());

    let mut watch = client.watch(Duration::from_millis(50)).await.expect("a watch");
    let first = watch.next().await.expect("a picture");
    let work = first.snapshot.resources.iter().find(|it| it.name.as_deref() == Some("work"));
    let work = work.expect("what the program works with");
    assert_eq!((work.kind, work.capacity()), (Kind::Semaphore, 2));
    let created = first.snapshot.site(work.created).expect("a place in the source");
    assert!(created.file.ends_with("role.rs"), "{created}");

    let later = watch.next().await.expect("another picture");
    assert!(later.revision > first.revision);
    let later = later.snapshot.resource(work.id).expect("it is still there");
    assert!(later.counters.acquired > work.counters.acquired, "the program goes on meanwhile");

    drop((watch, client));
    program.goes_on();
}

#[tokio::test]
async fn answers_while_every_thread_of_the_runtime_sleeps() {
    let place = Place::new();
    let mut program = Program::serving(&place.sockets());
    program.ask("stick");
    let client = attach(&program.socket(&place.sockets())).await;
    let picture = client.snapshot(true).await.expect("a snapshot");
    assert_eq!(picture.snapshot.resources.len(), 1);
    for stack in &picture.snapshot.stacks {
        assert!(stack.frames.is_some(), "the names were asked for");
    }
}

#[tokio::test]
async fn attaching_a_hundred_times_leaves_nothing_behind() {
    let place = Place::new();
    let mut program = Program::serving(&place.sockets());
    let socket = program.socket(&place.sockets());
    let files = program.files();
    for _ in 0..100 {
        let client = attach(&socket).await;
        let mut watch = client.watch(Duration::from_millis(50)).await.expect("a watch");
        watch.next().await.expect("a picture");
    }
    program.goes_on();
    eventually("all connections are closed", async || program.files() == files).await;
}

#[tokio::test]
async fn a_client_that_stops_reading_is_waited_for_by_nobody() {
    let place = Place::new();
    let mut command = Program::command("100000");
    command.env("HOLDUP_SERVE", "1").env("HOLDUP_SOCKET_DIR", place.sockets());
    let mut program = Program::start(command.env("HOLDUP_CAPTURE", "location"));
    let socket = program.socket(&place.sockets());
    let files = program.files();

    let relay = Relay::new(&place, socket.clone());
    let client = attach(&relay.socket).await;
    let mut watch = client.watch(Duration::from_millis(50)).await.expect("a watch");
    watch.next().await.expect("a picture");
    relay.stop();
    let stuck = tokio::spawn(async move { client.snapshot(false).await });

    program.goes_on();
    let other = attach(&socket).await;
    for _ in 0..3 {
        let picture = other.snapshot(false).await.expect("a snapshot");
        assert!(picture.snapshot.holds.len() >= 100_000);
    }
    drop(other);
    eventually("the program hangs up", async || program.files() == files).await;
    program.goes_on();
    stuck.abort();
}

#[tokio::test]
async fn garbage_is_hung_up_on() {
    let noise: Vec<u8> =
        (0..1 << 20).map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let place = Place::new();
    let mut program = Program::serving(&place.sockets());
    let socket = program.socket(&place.sockets());
    let files = program.files();
    for (what, said) in [
        ("noise", noise.clone()),
        ("zeros", vec![0; 1 << 20]),
        ("HTTP/1", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec()),
        ("noise behind the preface", [PREFACE, &noise].concat()),
        (
            "a frame of 16 MiB",
            [PREFACE, SETTINGS, &[255, 255, 255, 0, 0, 0, 0, 0, 1], &noise].concat(),
        ),
        (
            "headers that are none",
            [PREFACE, SETTINGS, &[0, 0, 4, 1, 4, 0, 0, 0, 1], &[255; 4]].concat(),
        ),
        ("half a preface", PREFACE[..10].to_vec()),
        ("a greeting and nothing more", [PREFACE, SETTINGS].concat()),
        ("nothing", Vec::new()),
    ] {
        let mut stream = UnixStream::connect(&socket).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        // It may have hung up before all was said.
        let _ = stream.write_all(&said);
        let end = stream.read_to_end(&mut Vec::new());
        let ended =
            end.as_ref().map_or_else(|error| error.kind() == ErrorKind::ConnectionReset, |_| true);
        assert!(ended, "{what}: {end:?}");
        program.goes_on();
    }
    attach(&socket).await;
    eventually("all connections are closed", async || program.files() == files).await;
}

/// Where a program undoes what Rust does about SIGPIPE, every client that hangs up could end it.
#[tokio::test]
async fn a_client_that_hangs_up_raises_no_signal() {
    let place = Place::new();
    let mut program = Program::serving(&place.sockets());
    let socket = program.socket(&place.sockets());
    program.ask("end on SIGPIPE");
    for _ in 0..100 {
        let mut stream = UnixStream::connect(&socket).expect("a connection");
        stream.write_all(&[PREFACE, SETTINGS].concat()).expect("the socket takes it");
        drop(stream);
        program.count();
    }
    attach(&socket).await;
    program.goes_on();
}

#[tokio::test]
async fn the_service_is_no_part_of_what_the_program_traces() {
    let place = Place::new();
    let mut program = Program::serving(&place.sockets());
    assert_eq!(program.ask("trace"), "true");
    let client = attach(&program.socket(&place.sockets())).await;
    let mut watch = client.watch(Duration::from_millis(50)).await.expect("a watch");
    for _ in 0..2 {
        watch.next().await.expect("a picture");
    }
    client.snapshot(true).await.expect("a snapshot");
    assert_eq!(program.ask("traced"), "");
}

#[tokio::test]
async fn a_crowd_is_turned_away_with_a_word_and_the_silent_make_room() {
    let place = Place::new();
    let mut program = Program::serving(&place.sockets());
    let socket = program.socket(&place.sockets());
    let target = Target::Socket(socket.clone());
    let silent: Vec<_> =
        (0..CLIENTS).map(|_| UnixStream::connect(&socket).expect("a connection")).collect();
    let refused = refusal(Client::connect(&target).await);
    assert!(refused.contains("16 clients are attached already"), "{refused}");
    program.goes_on();
    eventually("there is room again", async || Client::connect(&target).await.is_ok()).await;
    drop(silent);

    // More than are told why.
    let flood: Vec<_> =
        (0..10 * CLIENTS).map(|_| UnixStream::connect(&socket).expect("a connection")).collect();
    let refused = refusal(Client::connect(&target).await);
    assert!(refused.contains("hung up"), "{refused}");
    program.goes_on();
    drop(flood);
    eventually("there is room again", async || Client::connect(&target).await.is_ok()).await;
}

#[tokio::test]
async fn two_processes_serve_at_once() {
    let place = Place::new();
    let mut programs = [Program::serving(&place.sockets()), Program::serving(&place.sockets())];
    let found = discovery::running_in(&[place.sockets()]);
    let mut pids: Vec<u32> = programs.iter().map(Program::pid).collect();
    pids.sort_unstable();
    assert_eq!(found.iter().map(|it| it.pid).collect::<Vec<_>>(), pids);
    for found in &found {
        assert_eq!(attach(&found.socket).await.process().pid, found.pid);
    }
    for program in &mut programs {
        program.goes_on();
    }
}

#[tokio::test]
async fn only_the_user_can_reach_the_socket() {
    let place = Place::new();
    let mut command = Program::command_after("umask 0", "work");
    command.env("HOLDUP_SERVE", "1").env("HOLDUP_SOCKET_DIR", place.sockets());
    let program = Program::start(&mut command);
    assert_eq!(mode(&place.sockets()), 0o700);
    assert_eq!(mode(&program.socket(&place.sockets())), 0o600);
    drop(program);

    command = Program::command_after("umask 277", "work");
    command.env("HOLDUP_SERVE", "1").env("HOLDUP_SOCKET_DIR", place.around().join("other"));
    let program = Program::start(&mut command);
    assert_eq!(mode(&place.around().join("other")), 0o700);
    assert_eq!(mode(&program.socket(&place.around().join("other"))), 0o600);
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[tokio::test]
async fn a_socket_is_removed_at_the_end_or_by_the_next_program() {
    let place = Place::new();
    let orderly = Program::serving(&place.sockets());
    let socket = orderly.socket(&place.sockets());
    assert!(socket.exists());
    assert!(orderly.finish().success());
    assert!(!socket.exists(), "removed at the end");

    let killed = Program::serving(&place.sockets());
    let socket = killed.socket(&place.sockets());
    killed.kill();
    assert!(socket.exists());
    assert_eq!(discovery::running_in(&[place.sockets()]), []);
    let refused = refusal(Client::connect(&Target::Socket(socket.clone())).await);
    assert!(refused.contains("has ended"), "{refused}");

    let mut next = Program::serving(&place.sockets());
    eventually("what was left over is removed", async || !socket.exists()).await;
    next.goes_on();
    attach(&next.socket(&place.sockets())).await;
}

#[tokio::test]
async fn a_left_over_socket_of_the_same_number_is_replaced() {
    let place = Place::new();
    let mut command = Program::command("work");
    let mut program = Program::start(command.env("HOLDUP_SOCKET_DIR", place.sockets()));
    fs::DirBuilder::new().create(place.sockets()).expect("a folder");
    fs::set_permissions(place.sockets(), fs::Permissions::from_mode(0o700)).expect("ours");
    let socket = program.socket(&place.sockets());
    drop(UnixListener::bind(&socket).expect("a socket"));
    assert_eq!(program.ask("init"), socket.display().to_string());
    assert_eq!(attach(&socket).await.process().pid, program.pid());
    assert_eq!(program.ask("init"), socket.display().to_string(), "the same service again");
    program.goes_on();
}

#[tokio::test]
async fn what_somebody_listens_on_is_left_alone() {
    let place = Place::new();
    let mut command = Program::command("work");
    let mut program = Program::start(command.env("HOLDUP_SOCKET_DIR", place.sockets()));
    fs::DirBuilder::new().create(place.sockets()).expect("a folder");
    fs::set_permissions(place.sockets(), fs::Permissions::from_mode(0o700)).expect("ours");
    let listener = UnixListener::bind(program.socket(&place.sockets())).expect("a socket");
    let said = program.ask("init");
    assert!(said.contains("another program listens on"), "{said}");
    listener.accept().expect("it was asked, and is still there");
    program.goes_on();
}

#[test]
fn a_folder_that_will_not_do_is_refused_with_the_reason() {
    let place = Place::new();
    let open = place.around().join("open");
    fs::create_dir(&open).expect("a folder");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).expect("ours");
    let link = place.around().join("link");
    fs::create_dir(place.around().join("real")).expect("a folder");
    symlink(place.around().join("real"), &link).expect("a link");
    let file = place.around().join("file");
    fs::write(&file, "").expect("a file");
    let long = place.around().join("long".repeat(30));
    for (folder, reason) in [
        (open.as_path(), "others may enter the folder"),
        (&link, "is no folder"),
        (&file, "is no folder"),
        (&long, "name a shorter folder"),
        (&place.around().join("missing/folder"), "No such file or directory"),
        // Not even an administrator can make anything there.
        (Path::new("/proc/self/holdup"), "cannot make the folder"),
        (Path::new("/proc/self/fd"), "cannot make a socket in"),
    ] {
        let mut command = Program::command("work");
        command.env("HOLDUP_SERVE", "1").env("HOLDUP_SOCKET_DIR", folder);
        let mut program = Program::start(&mut command);
        program.goes_on();
        let [said] = program.said.as_slice() else { panic!("one line, not {:#?}", program.said) };
        assert!(said.contains("holdup: cannot be attached to") && said.contains(reason), "{said}");
        let said = program.ask("init");
        assert!(said.contains(reason), "{said}");
    }
}

#[tokio::test]
async fn the_next_folder_is_taken_if_the_first_will_not_do() {
    let place = Place::new();
    let mut command = Program::command("work");
    command.env("HOLDUP_SERVE", "1");
    command.env("XDG_RUNTIME_DIR", place.around().join("missing")).env("TMPDIR", place.around());
    let mut program = Program::start(&mut command);
    let socket = program.ask("init");
    assert!(Path::new(&socket).starts_with(place.around()), "{socket}");
    assert_eq!(attach(Path::new(&socket)).await.process().pid, program.pid());
    assert_eq!(program.said, [""; 0]);
}

/// On a real file system without room, where the machine lets us make one.
#[test]
fn a_full_disk_does_not_stop_the_program() {
    let place = Place::new();
    fs::create_dir(place.sockets()).expect("a folder");
    let folder = place.sockets().display().to_string();
    // A file system of one inode, which its own root takes.
    let mount = format!("mount -t tmpfs -o mode=700,nr_inodes=1 none {folder}");
    let private =
        ["unshare --map-root-user --mount", "unshare --mount"].into_iter().find(|private| {
            let mut command = Command::new("sh");
            command.args(["-c", &format!("{private} {mount}")]).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        });
    let (folder, mut command, reason) = match private {
        Some(private) => {
            // Once more in a place of our own, where the file system is for this process only.
            let inside = format!("{mount} && exec \"$@\"");
            let first = format!("set -- {private} sh -c '{inside}' sh \"$@\"");
            (folder, Program::command_after(&first, "work"), "No space left on device")
        }
        // Nobody can make a file here, either.
        None => ("/proc/self/fd".to_owned(), Program::command("work"), "cannot make a socket in"),
    };
    command.env("HOLDUP_SERVE", "1").env("HOLDUP_SOCKET_DIR", folder);
    let mut program = Program::start(&mut command);
    program.goes_on();
    let [said] = program.said.as_slice() else { panic!("one line, not {:#?}", program.said) };
    assert!(said.contains(reason), "{said}");
}

#[tokio::test]
async fn a_fork_does_not_answer_for_its_parent() {
    let place = Place::new();
    let mut parent = Program::serving(&place.sockets());
    let socket = parent.socket(&place.sockets());
    let of_child = parent.ask("fork");
    let of_child = Path::new(&of_child);
    assert_ne!(of_child, socket);
    let child = attach(of_child).await;
    assert_eq!(
        discovery::file_name(child.process().pid),
        of_child.file_name().expect("a name").display().to_string()
    );
    // The first copy has ended, and the second one holds a copy of the parent's listening socket.
    assert_eq!(attach(&socket).await.process().pid, parent.pid());
    parent.goes_on();
}

#[tokio::test]
async fn listens_on_a_port_if_it_is_told_to() {
    let mut command = Program::command("work");
    let mut program = Program::start(command.env("HOLDUP_SERVE", "1").env("HOLDUP_BIND", ":0"));
    let address = program.ask("init");
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let target: Target = address.parse().expect("a target");
    let client = Client::connect(&target).await.expect("a connection");
    assert_eq!(client.process().pid, program.pid());

    let mut command = Program::command("work");
    let mut other = Program::start(command.env("HOLDUP_SERVE", "1").env("HOLDUP_BIND", &address));
    let [said] = other.said.as_slice() else { panic!("one line, not {:#?}", other.said) };
    assert!(said.contains(&address), "{said}");
    other.goes_on();
}

#[test]
fn nothing_is_started_unless_it_is_asked_for() {
    let place = Place::new();
    let start = |off: bool| {
        let mut command = Program::command("work");
        command.env("HOLDUP_SOCKET_DIR", place.sockets());
        if off {
            command.env("HOLDUP", "off").env("HOLDUP_SERVE", "1");
        }
        Program::start(&mut command)
    };
    let mut quiet = start(false);
    quiet.goes_on();
    assert!(!place.sockets().exists());
    let mut off = start(true);
    assert_eq!(off.ask("init"), "off");
    off.goes_on();
    assert!(!place.sockets().exists());
}

/// A client refuses messages over 1 MiB, so what it gets came in smaller ones.
#[tokio::test]
async fn a_million_holds_come_in_small_messages() {
    const HOLDS: usize = 1_000_000;
    let place = Place::new();
    let mut command = Program::command(&HOLDS.to_string());
    command.env("HOLDUP_SERVE", "1").env("HOLDUP_SOCKET_DIR", place.sockets());
    let mut program = Program::start(command.env("HOLDUP_CAPTURE", "location"));
    let client = attach(&program.socket(&place.sockets())).await;

    let mut watch = client.watch(Duration::from_millis(50)).await.expect("a watch");
    let picture = watch.next().await.expect("a picture");
    let many = picture.snapshot.resources.iter().filter(|it| it.usage.holders == 1000);
    assert_eq!(many.count(), 1000);

    let start = Instant::now();
    let picture = client.snapshot(false).await.expect("a snapshot");
    eprintln!("a snapshot of {HOLDS} holds took {:?}", start.elapsed());
    let snapshot = picture.snapshot;
    assert!(snapshot.holds.len() >= HOLDS);
    assert_eq!(snapshot.dropped, Default::default());
    program.goes_on();

    let held = snapshot.resources.iter().find(|it| it.usage.holders == 1000).expect("one of many");
    let (mut after, mut pages) = (None, Vec::new());
    loop {
        let page = client.holds(held.id, after, 300).await.expect("a page");
        after = page.records.last().map(|last| (last.since, last.id));
        assert!(page.records.iter().all(|it| page.sites.contains_key(&it.site)));
        pages.extend(page.records);
        if !page.more {
            break;
        }
    }
    let whole: Vec<_> = snapshot.holds.into_iter().filter(|it| it.resource == held.id).collect();
    assert_eq!(pages, whole);
}
