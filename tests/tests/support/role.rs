//! What the programs do.

use super::answer;
use holdup::ResourceExt;
use holdup::sync::{OwnedSemaphorePermit, Semaphore};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write, stdin};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tokio::runtime::Runtime;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Threads of the program's runtime, and tasks that compete for permits.
const WORKERS: usize = 2;
/// Semaphores of a program that holds a lot.
const MANY: usize = 1000;

static COUNT: AtomicU64 = AtomicU64::new(0);

/// Works as `role` says, answers questions from stdin, and ends with it.
pub(crate) fn run(role: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .expect("a runtime");
    let semaphore = Arc::new(Semaphore::new(WORKERS).named("work"));
    // The first use: what it starts has been started when the program says that it is ready.
    drop(semaphore.try_acquire());
    for _ in 0..2 * WORKERS {
        runtime.spawn(work(Arc::clone(&semaphore)));
    }
    // A role is what is held, besides the work.
    let _held = match role {
        "work" => Vec::new(),
        many => hold(many.parse().expect("a role, or a number of holds")),
    };
    answer("ready", "");
    for line in stdin().lock().lines() {
        let line = line.expect("text");
        match line.as_str() {
            "count" => answer("count", COUNT.load(Ordering::Relaxed)),
            "init" => answer("init", init()),
            "stick" => answer("stick", stick(&runtime)),
            "fork" => answer("fork", fork()),
            "end on SIGPIPE" => answer("end on SIGPIPE", end_on_sigpipe()),
            "trace" => answer("trace", Trace::start()),
            "traced" => answer("traced", Trace::seen()),
            other => panic!("what is `{other}`?"),
        }
    }
}

async fn work(semaphore: Arc<Semaphore>) {
    loop {
        let _permit = semaphore.acquire().await.expect("nobody closes it");
        COUNT.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
    }
}

/// Holds `holds` permits, of [`MANY`] semaphores.
fn hold(holds: usize) -> Vec<OwnedSemaphorePermit> {
    let semaphores: Vec<_> = (0..MANY)
        .map(|number| Arc::new(Semaphore::new(holds).named(format!("many {number}"))))
        .collect();
    let next = semaphores.iter().cycle().take(holds);
    next.map(|semaphore| Arc::clone(semaphore).try_acquire_owned().expect("there are enough"))
        .collect()
}

/// Where the program serves, or why it does not.
fn init() -> String {
    match holdup::init() {
        Ok(service) => service.address().map_or("off".to_owned(), ToString::to_string),
        Err(error) => format!("error: {error}"),
    }
}

/// Puts every thread of the runtime to sleep for good; returns when they sleep.
fn stick(runtime: &Runtime) -> usize {
    let sleeping = Arc::new(AtomicU64::new(0));
    for _ in 0..WORKERS {
        let sleeping = Arc::clone(&sleeping);
        runtime.spawn(async move {
            sleeping.fetch_add(1, Ordering::Relaxed);
            loop {
                thread::sleep(Duration::from_secs(3600));
            }
        });
    }
    while sleeping.load(Ordering::Relaxed) < WORKERS as u64 {
        thread::yield_now();
    }
    WORKERS
}

/// What Rust has turned off when it started.
fn end_on_sigpipe() -> usize {
    #[expect(unsafe_code, reason = "std sets no signals")]
    mod c {
        // SAFETY: the signature is that of C, with a handler that is a number.
        unsafe extern "C" {
            pub(super) safe fn signal(signal: i32, handler: usize) -> usize;
        }
    }
    const SIGPIPE: i32 = 13;
    const DEFAULT: usize = 0;
    c::signal(SIGPIPE, DEFAULT)
}

/// A subscriber that wants to know of everything, and remembers who spoke.
struct Trace;

static SPOKE: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

impl Trace {
    fn start() -> bool {
        tracing::subscriber::set_global_default(Trace).is_ok()
    }

    /// The crates that spoke.
    fn seen() -> String {
        let spoke = SPOKE.lock().expect("nobody panics");
        spoke.iter().copied().collect::<Vec<_>>().join(" ")
    }

    fn note(metadata: &'static Metadata<'static>) {
        let target = metadata.target();
        let name = target.split("::").next().unwrap_or(target);
        SPOKE.lock().expect("nobody panics").insert(name);
    }
}

impl Subscriber for Trace {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        Trace::note(span.metadata());
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        Trace::note(event.metadata());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Copies this process twice. The first copy ends at once, in an orderly way; the second one serves, too, and
/// lives as long as this one. Returns where that one says it serves.
fn fork() -> String {
    #[expect(unsafe_code, reason = "std does not fork")]
    mod c {
        // SAFETY: the signature is that of POSIX, and the copies do what works in a copy of one thread.
        unsafe extern "C" {
            pub(super) safe fn fork() -> i32;
        }
    }
    let copy = |run: &dyn Fn(&mut UnixStream)| {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        if c::fork() == 0 {
            drop(ours);
            run(&mut theirs);
            #[expect(
                clippy::disallowed_methods,
                reason = "what happens at the end is what is tested"
            )]
            std::process::exit(0);
        }
        ours
    };
    let line = |of: &UnixStream| {
        let mut line = String::new();
        BufReader::new(of).read_line(&mut line).map(|_| line.trim().to_owned()).expect("text")
    };
    // Nothing to read: it has ended.
    assert_eq!(line(&copy(&|_| ())), "");
    let copy = copy(&|parent| {
        let said = format!("{}\n", init());
        if parent.write_all(said.as_bytes()).is_ok() {
            let _ = parent.read(&mut [0]);
        }
    });
    let said = line(&copy);
    // Closed with this process.
    std::mem::forget(copy);
    said
}
