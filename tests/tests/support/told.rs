//! Listens to what is told of this process.

use holdup::core::Finding;
use holdup::core::snapshot::ResourceId;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// How long a finding may take at the most, on a machine that is busy with other things.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Time for several looks.
pub(crate) const A_WHILE: Duration = Duration::from_millis(700);

/// All findings of this process from now on.
pub(crate) fn listen() -> Receiver<Finding> {
    let (sender, receiver) = channel();
    assert!(holdup::on_finding(move |finding| {
        let _ = sender.send(finding.clone());
    }));
    receiver
}

/// The next finding about this resource.
pub(crate) fn next(told: &Receiver<Finding>, resource: ResourceId) -> Finding {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let finding = told.recv_timeout(left).expect("a finding");
        if finding.resources.contains(&resource) {
            return finding;
        }
    }
}

/// Fails if anything is told about one of these resources for a while.
pub(crate) fn nothing(told: &Receiver<Finding>, resources: &[ResourceId]) {
    let deadline = Instant::now() + A_WHILE;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match told.recv_timeout(left) {
            Ok(finding) if finding.resources.iter().any(|id| resources.contains(id)) => {
                panic!("a false alarm: {finding:#?}")
            }
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) => return,
            Err(RecvTimeoutError::Disconnected) => panic!("nobody tells any more"),
        }
    }
}

/// What `make` makes, with its number in the books.
pub(crate) fn listed<T>(make: impl FnOnce() -> T) -> (T, ResourceId) {
    let scope = holdup::Scope::new();
    let entered = scope.enter();
    let made = make();
    drop(entered);
    let id = scope.snapshot().resources[0].id;
    (made, id)
}

/// The lines of a file that a finding shows.
pub(crate) fn lines(finding: &Finding, file: &str) -> Vec<u32> {
    let here = finding.marks.iter().filter(|mark| &*mark.site.file == file);
    here.map(|mark| mark.site.line).collect()
}

pub(crate) fn runtimes() -> [Runtime; 2] {
    let mut current = tokio::runtime::Builder::new_current_thread();
    let mut multi = tokio::runtime::Builder::new_multi_thread();
    [&mut current, multi.worker_threads(2)].map(|it| it.enable_all().build().expect("a runtime"))
}
