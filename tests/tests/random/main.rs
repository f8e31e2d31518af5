//! Random healthy programs are not accused, and random programs with one fault are.
//!
//! `HOLDUP_RANDOM_RUNS` says how many healthy programs there are, `HOLDUP_RANDOM_SEED` with which number they
//! begin. A program is the same for the same number, its schedule is not.

#![cfg(debug_assertions)]
#![expect(
    clippy::disallowed_methods,
    reason = "a program that is stuck for good is not waited for"
)]

mod acquire;
mod fault;
mod generate;
mod program;
mod run;

use fault::Fault;
use holdup::core::snapshot::ResourceId;
use holdup::core::{Finding, Verdict};
use program::Program;
use std::collections::HashMap;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Tells this binary, when it is started again, what to do.
const ROLE: &str = "HOLDUP_RANDOM_ROLE";
/// Shorter than the defaults, as the corpus is judged, and longer than anything healthy takes here.
const LIMITS: &str = "stall=1500ms,futurelock=500ms,orphan_grace=1500ms,overdue=2s";
/// Programs that run at the same time in a process; most of their time they sleep.
const AT_ONCE: u64 = 6;
/// Healthy programs in a process.
const BATCH: u64 = 60;
/// Processes at the same time.
const PROCESSES: usize = 4;
/// How long a program may take, and a finding, on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long the watching thread has to tell of the last thing that happened.
const LINGER: Duration = Duration::from_millis(2500);

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// This test binary again, with a role.
struct Again {
    role: String,
    child: Child,
}

impl Again {
    fn start(role: String) -> Again {
        let mut command = Command::new(std::env::current_exe().expect("known"));
        command.args(["--exact", "program", "--nocapture"]).env(ROLE, &role);
        for variable in ["HOLDUP", "HOLDUP_SERVE", "HOLDUP_CAPTURE", "HOLDUP_STDERR"] {
            command.env_remove(variable);
        }
        command.env("HOLDUP_LIMITS", LIMITS).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(Stdio::piped()).spawn().expect("it starts");
        Again { role, child }
    }

    /// What it said, if it did not do as it should.
    fn wrong(self) -> Option<String> {
        let output = self.child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        (!output.status.success()).then(|| format!("=== {}\n{said}", self.role))
    }
}

/// Runs all roles, some at a time; fails with what those said that went wrong.
fn run_all(mut roles: Vec<String>) {
    roles.reverse();
    let (count, roles, wrong) = (roles.len(), Mutex::new(roles), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..PROCESSES {
            scope.spawn(|| {
                while let Some(role) = { locked(&roles).pop() } {
                    let said = Again::start(role).wrong();
                    locked(&wrong).extend(said);
                }
            });
        }
    });
    let wrong = locked(&wrong);
    assert!(wrong.is_empty(), "{} of {count} went wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn healthy_programs_are_not_accused() {
    let runs = setting("HOLDUP_RANDOM_RUNS", 120);
    let first = setting("HOLDUP_RANDOM_SEED", 1);
    println!("programs {first} to {}", first + runs - 1);
    let batches = (0..runs).step_by(BATCH as usize);
    let role = |done| format!("healthy {} {}", first + done, BATCH.min(runs - done));
    run_all(batches.map(role).collect());
}

#[test]
fn a_fault_in_a_healthy_program_is_told() {
    let runs = setting("HOLDUP_RANDOM_RUNS", 120).div_ceil(60);
    let first = setting("HOLDUP_RANDOM_SEED", 1);
    println!("programs {first} to {}", first + runs - 1);
    let seeds = first..first + runs;
    let roles = seeds.flat_map(|seed| Fault::ALL.iter().map(move |it| format!("{it:?} {seed}")));
    run_all(roles.collect());
}

/// Is the program that the tests above start; without a role it has nothing to do.
#[test]
fn program() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let words: Vec<&str> = role.split(' ').collect();
    let number = |at: usize| words[at].parse::<u64>().expect("a number");
    match Fault::ALL.iter().find(|fault| format!("{fault:?}") == words[0]) {
        Some(fault) => faulty(number(1), *fault),
        None => healthy(number(1), number(2)),
    }
}

/// What was told so far.
static TOLD: Mutex<Vec<Finding>> = Mutex::new(Vec::new());

fn listen() {
    assert!(holdup::on_finding(|finding| locked(&TOLD).push(finding.clone())));
}

/// Runs these programs, and fails if anything is told of one of them.
fn healthy(first: u64, count: u64) {
    listen();
    let next = AtomicU64::new(first);
    let waited = AtomicU64::new(0);
    let running = Mutex::new(HashMap::new());
    let owners = Mutex::new(HashMap::<ResourceId, u64>::new());
    let accused = |finding: &Finding| -> String {
        let owner = finding.resources.iter().find_map(|id| locked(&owners).get(id).copied());
        let program = owner.map(|seed| format!("{:?}", Program::new(seed, None)));
        let program = program.unwrap_or_else(|| format!("one of {:?}", locked(&running).keys()));
        format!("seed {owner:?} is accused of {} ({}): {program}", finding.code, finding.verdict)
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        return;
                    }
                    let program = Program::new(seed, None);
                    let books = holdup::Scope::new();
                    let entered = books.enter();
                    let env = run::Env::new(&program);
                    drop(entered);
                    let ids = books.snapshot().resources.into_iter().map(|it| (it.id, seed));
                    locked(&owners).extend(ids);
                    locked(&running).insert(seed, Instant::now());
                    run::run(&program, &env);
                    let resources = books.snapshot().resources;
                    waited.fetch_add(
                        resources.iter().map(|it| it.counters.waited).sum(),
                        Ordering::Relaxed,
                    );
                    locked(&running).remove(&seed);
                }
            });
        }
        // Whoever does not end is named: the generator promises that all do.
        scope.spawn(|| {
            loop {
                std::thread::sleep(Duration::from_millis(100));
                let running = locked(&running);
                let late = running.iter().find(|(_, since)| since.elapsed() > PATIENCE);
                if let Some((seed, _)) = late {
                    eprintln!("{:?}", Program::new(*seed, None));
                    eprintln!("seed {seed} does not end");
                    std::process::exit(1);
                }
                if running.is_empty() && next.load(Ordering::Relaxed) >= first + count + AT_ONCE {
                    return;
                }
            }
        });
    });
    std::thread::sleep(LINGER);
    let waited = waited.into_inner();
    assert!(waited >= count, "the programs are too tame: they waited {waited} times");
    let told = locked(&TOLD);
    let accused: Vec<String> =
        told.iter().filter(|it| it.verdict != Verdict::Resolved).map(accused).collect();
    assert!(accused.is_empty(), "{}", accused.join("\n"));
}

/// Runs this program with this fault until it is told, and fails if that or anything else is not so.
fn faulty(seed: u64, fault: Fault) {
    listen();
    let program = Program::new(seed, Some(fault));
    let text = format!("{program:?}");
    std::thread::spawn(move || {
        let env = run::Env::new(&program);
        run::run(&program, &env);
    });
    let fits = |finding: &Finding| fault.codes().contains(&finding.code);
    let deadline = Instant::now() + PATIENCE;
    while !locked(&TOLD).iter().any(fits) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
    }
    // What comes of it: others wait, and may be told of with what is suspected, but not of another cause.
    std::thread::sleep(LINGER);
    let told = locked(&TOLD);
    let other = told.iter().find(|it| !fits(it) && it.verdict == Verdict::Proven);
    let right = told.iter().any(fits) && other.is_none();
    if !right {
        eprintln!("{text}");
    }
    assert!(told.iter().any(fits), "seed {seed}: {fault:?} is not told");
    assert!(other.is_none(), "seed {seed}: something else is told: {other:?}");
    // The program may be stuck for good.
    std::process::exit(0);
}
