//! Threads that no runtime counts among its workers: they run blocking jobs, and whatever was moved there.

use std::path::Path;

/// Threads that are looked at. A program with more has too many to say anything of them.
const MAX_THREADS: usize = 256;
/// What tokio calls the threads of a runtime, unless it is told otherwise.
const TOKIO: &str = "tokio-rt-worker";
/// Bytes of a thread's name that the system keeps.
const KEPT: usize = 15;

/// Threads beyond this many workers that permits may have been moved to; a guess on the high side where that cannot be
/// told. `named` is what the threads of runtimes are called besides tokio's own name for them.
pub(super) fn beyond(workers: usize, named: &[String]) -> u64 {
    names(Path::new("/proc/self/task")).map_or(1, |names| count(&names, workers, named))
}

/// The names of all threads, the first one's first; `None` if they cannot be read.
fn names(tasks: &Path) -> Option<Vec<String>> {
    let mut threads: Vec<(u64, String)> = Vec::new();
    for thread in std::fs::read_dir(tasks).ok()? {
        let thread = thread.ok()?;
        let number = thread.file_name().to_str()?.parse().ok()?;
        // One that has ended meanwhile is nobody.
        let Ok(name) = std::fs::read_to_string(thread.path().join("comm")) else { continue };
        threads.push((number, name.trim_end_matches('\n').to_owned()));
        if threads.len() > MAX_THREADS {
            return None;
        }
    }
    threads.sort_unstable_by_key(|(number, _)| *number);
    Some(threads.into_iter().map(|(_, name)| name).collect())
}

fn count(names: &[String], workers: usize, named: &[String]) -> u64 {
    let cut = |name: &str| -> String {
        let end = (0..=KEPT.min(name.len())).rev().find(|end| name.is_char_boundary(*end));
        name[..end.unwrap_or(0)].to_owned()
    };
    let of_runtime = |name: &&String| **name == TOKIO || named.iter().any(|of| cut(of) == **name);
    // A thread without a name of its own has that of the thread that spawned it.
    let first = names.first();
    let unnamed = names.iter().skip(1).filter(|name| Some(*name) == first && !of_runtime(name));
    let runtime = names.iter().filter(of_runtime).count();
    (runtime.saturating_sub(workers) + unnamed.count()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_worker_counts() {
        let own = ["pool of the importer".to_owned()];
        let table: &[(&[&str], usize, u64)] = &[
            (&[], 0, 0),
            (&["app"], 0, 0),
            (&["app", "holdup-monitor", TOKIO, TOKIO], 2, 0),
            (&["app", TOKIO, TOKIO, TOKIO], 2, 1),
            // Workers that have not started yet.
            (&["app", TOKIO], 4, 0),
            (&["app", TOKIO], 0, 1),
            (&["app", "app", TOKIO, "app"], 1, 2),
            (&["app", "pool of the imp", "pool of the imp"], 1, 1),
            // Where the first thread is such a one itself.
            (&[TOKIO, TOKIO, TOKIO], 2, 1),
        ];
        for (names, workers, expected) in table {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(count(&names, *workers, &own), *expected, "{names:?}, {workers}");
        }
    }

    #[test]
    fn where_nothing_can_be_read_there_may_be_somebody() {
        assert_eq!(names(Path::new("/nowhere/at/all")), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_blocking_job_is_seen() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("built");
        let before = beyond(0, &[]);
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let (begin, begun) = std::sync::mpsc::channel::<()>();
        let job = runtime.spawn_blocking(move || {
            begin.send(()).expect("heard");
            let _ = ended.recv();
        });
        begun.recv().expect("begins");
        assert!(beyond(0, &[]) > before);
        drop(end);
        runtime.block_on(job).expect("no panic");
    }
}
