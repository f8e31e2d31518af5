//! runcase list                      the labels, one JSON object a line
//! runcase run <id>                  one case in this process, watched from outside its runtime
//! runcase verify [--jobs N] [--repeat N] [--only open|heldout|<id>]
//!                                   each case in a process of its own; checks the label's `plain` behaviour

#![expect(clippy::disallowed_methods, reason = "a stuck runtime is not waited for")]

use async_cases::case::Case;
use async_cases::run::{run, Ran, Watch};
use std::process::{exit, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const HANG_WATCH: Duration = Duration::from_millis(1200);
const QUICK: Duration = Duration::from_millis(1000);
const SLOW: Duration = Duration::from_millis(2000);
/// Time left to background tasks after a case has returned.
const LINGER: Duration = Duration::from_millis(300);

fn find(id: &str) -> Case {
    async_cases::all().into_iter().find(|c| c.id == id).unwrap_or_else(|| {
        eprintln!("no case {id}");
        exit(2)
    })
}

/// Runs one case and judges it; the text says what was seen.
fn judge(c: Case) -> (bool, String) {
    let watch = Watch {
        returns: if c.slow { SLOW } else { QUICK },
        linger: LINGER,
        hangs: HANG_WATCH,
        hangs_at_most: HANG_WATCH,
    };
    let Ran { what, wrong } = run(c, &watch, &|| false);
    let ok = wrong.is_empty();
    (ok, if ok { what } else { format!("{what}; WRONG: {}", wrong.join("; ")) })
}

fn json(c: &Case) -> String {
    let list = |v: &[&str]| {
        format!("[{}]", v.iter().map(|s| format!("{s:?}")).collect::<Vec<_>>().join(","))
    };
    let lines =
        c.culprits.iter().map(|t| format!("{t:?}:{:?}", c.lines(t))).collect::<Vec<_>>().join(",");
    format!(
        "{{\"id\":{:?},\"title\":{:?},\"class\":\"{:?}\",\"expect\":{:?},\"also_ok\":{},\"plain\":\"{:?}\",\"slow\":{},\"primitives\":{},\"flavor\":\"{:?}\",\"max_blocking_threads\":{},\"source\":{:?},\"heldout\":{},\"file\":{:?},\"culprit_lines\":{{{}}}}}",
        c.id, c.title, c.class, c.expect, list(c.also_ok), c.plain, c.slow, list(c.primitives), c.flavor,
        c.max_blocking_threads.map_or("null".into(), |n| n.to_string()), c.source, c.heldout, c.file, lines
    )
}

fn verify(args: &[String]) -> i32 {
    let (mut jobs, mut repeat, mut only) = (4usize, 1usize, None::<String>);
    let mut it = args.iter();
    while let Some(a) = it.next() {
        let mut val = || it.next().cloned().unwrap_or_default();
        match a.as_str() {
            "--jobs" => jobs = val().parse().unwrap(),
            "--repeat" => repeat = val().parse().unwrap(),
            "--only" => only = Some(val()),
            other => {
                eprintln!("unknown argument {other}");
                return 2;
            }
        }
    }
    let mut todo: Vec<Case> = async_cases::all();
    if let Some(o) = &only {
        todo.retain(|c| match o.as_str() {
            "open" => !c.heldout,
            "heldout" => c.heldout,
            id => c.id == id,
        });
    }
    let total = todo.len() * repeat;
    let queue: Vec<Case> = (0..repeat).flat_map(|_| todo.iter().copied()).rev().collect();
    let queue = Arc::new(Mutex::new(queue));
    let results = Arc::new(Mutex::new(Vec::new()));
    let me = std::env::current_exe().unwrap();
    let threads: Vec<_> = (0..jobs)
        .map(|_| {
            let (queue, results, me) = (queue.clone(), results.clone(), me.clone());
            std::thread::spawn(move || loop {
                let Some(c) = queue.lock().unwrap().pop() else { return };
                // One more try, told as such: the machine may be busy with other things.
                let mut first = None;
                loop {
                    let out = Command::new(&me)
                        .args(["run", c.id])
                        .stdin(Stdio::null())
                        .output()
                        .unwrap();
                    let ok = out.status.success();
                    let mut text = String::from_utf8_lossy(&out.stdout).trim().to_string();
                    if !ok && first.is_none() {
                        first = Some(text);
                        continue;
                    }
                    if let Some(f) = &first {
                        text = format!("SECOND TRY {text} (first: {f})");
                    }
                    results.lock().unwrap().push((c, ok, text));
                    break;
                }
            })
        })
        .collect();
    for t in threads {
        t.join().unwrap();
    }
    let mut results = std::mem::take(&mut *results.lock().unwrap());
    results.sort_by_key(|r| (r.0.class, r.0.id));
    let bad = results.iter().filter(|r| !r.1).count();
    for (c, ok, text) in &results {
        println!(
            "{} {:17} {:15} {:8} {:44} {}",
            if *ok { "ok  " } else { "FAIL" },
            format!("{:?}", c.class),
            c.expect,
            if c.heldout { "heldout" } else { "open" },
            c.id,
            text
        );
    }
    let again = results.iter().filter(|r| r.2.starts_with("SECOND TRY")).count();
    println!(
        "{} runs of {} cases, {} failed, {} needed a second try",
        total,
        todo.len(),
        bad,
        again
    );
    i32::from(bad > 0)
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("list") => async_cases::all().iter().for_each(|c| println!("{}", json(c))),
        Some("run") if args.len() == 2 => {
            let (ok, text) = judge(find(&args[1]));
            println!("{text}");
            exit(i32::from(!ok)) // never waits for stuck threads
        }
        Some("verify") => exit(verify(&args[1..])),
        _ => {
            eprintln!("usage: runcase list | run <id> | verify [--jobs N] [--repeat N] [--only open|heldout|<id>]");
            exit(2)
        }
    }
}
