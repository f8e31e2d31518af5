//! Whether a hold can end while a wait of the same actor goes on, by the paths on which both were polled.
//!
//! One task may hold and wait for the same semaphore in perfect health: `join!`, `buffer_unordered` and their
//! kind poll several children, and while one waits another goes on and releases. In an `async` body it cannot:
//! the body awaits one thing at a time, and what it acquired before stays until it moves on. So everything hangs
//! on where the two paths part.

mod name;
mod role;
#[cfg(test)]
mod tests;

use crate::snapshot::Frame;
use name::path_of;
use role::{Role, Trait, role_of};

/// Acquire futures whose addresses are closer than this overlap, so both cannot be alive at once: they belong to
/// one `async` body, which has moved on from the one to the other.
const FUTURE_SIZE: u64 = 64;

/// An acquire, as far as its path goes.
#[derive(Clone, Copy, Debug)]
pub struct Acquired<'a> {
    /// The call stack of its first poll, innermost first, as in [`Stack::frames`](crate::snapshot::Stack::frames).
    pub frames: &'a [Frame],
    /// The acquire future's address while it was polled; 0 if there was none.
    pub future: u64,
    /// The data pointer of the waker it was polled with; 0 if there was none.
    pub poller: u64,
}

/// How a hold and a wait of the same actor relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    /// The hold cannot end before the wait does.
    Blocked,
    /// The hold can end: what holds it goes on being polled beside the wait.
    Concurrent,
    /// The same acquire once more, as in a loop. Where the first permit went is not known.
    Repeated,
    /// The paths do not tell.
    Unknown,
}

/// Tells how a hold relates to a wait of the same actor.
///
/// `optimised` says that the code was built with optimisation, which may merge branches that are alike. Frames
/// without names or places make the answer [`Relation::Unknown`].
#[must_use]
pub fn relation(hold: &Acquired<'_>, wait: &Acquired<'_>, optimised: bool) -> Relation {
    let parting = Parting::of(&Path::new(hold.frames), &Path::new(wait.frames), optimised);
    parting.relation((hold.future, hold.poller), (wait.future, wait.poller))
}

/// Whether a frame belongs to what runs tasks and root futures: nothing further out is of interest, so nothing
/// further out needs a name. The poll of a task is no end, as it may be a `LocalSet`'s, and neither is a `block_on`
/// that is not tokio's, as it may run inside such a poll.
#[must_use]
pub fn is_outside(frame: &Frame) -> bool {
    let path = path_of(frame);
    role::is_runtime(&path)
        && !role::is_foreign_block_on(&path)
        && !path.starts_with("tokio::runtime::task")
}

/// The name of the innermost function that users wrote, also where it lies beyond a `block_on`.
pub(crate) fn function(frames: &[Frame]) -> Option<String> {
    Path::new(frames).function().or_else(|| frames.iter().find_map(name::spoken))
}

/// Whether a thread of the scheduler polled this: a task, or a root future where `block_on` itself is the scheduler.
/// Only then do the scheduler's counters tell when whoever was woken has been polled.
#[must_use]
pub fn is_scheduled(frames: &[Frame], current_thread: bool) -> bool {
    let mut paths = frames.iter().map(path_of).skip_while(|path| !role::is_runtime(path));
    let Some(poll) = paths.next() else { return false };
    if current_thread && poll.starts_with("tokio::runtime::scheduler::current_thread") {
        return true;
    }
    let local = |path: String| path.starts_with("tokio::task::local");
    poll.starts_with("tokio::runtime::task") && (current_thread || !paths.any(local))
}

/// Whether this wait keeps a thread from polling tasks: it goes on in a `block_on` within the poll of one.
#[must_use]
pub fn blocks_executor(frames: &[Frame]) -> bool {
    let mut paths = frames.iter().map(path_of);
    // What comes first, going outwards, is how the acquire is polled.
    let blocking = paths.by_ref().find(|path| role::is_runtime(path));
    if !blocking.is_some_and(|path| role::is_foreign_block_on(&path)) {
        return false;
    }
    // And then, what that blocks: a thread for blocking work, one that is free to block, or a scheduler's.
    let outer = paths.find(|path| {
        path.starts_with("tokio::runtime::") || path.starts_with("tokio::task::blocking")
    });
    let polls = ["tokio::runtime::task", "tokio::runtime::scheduler::current_thread"];
    outer.is_some_and(|outer| polls.iter().any(|module| outer.starts_with(module)))
}

/// One logical frame with what it does.
#[derive(Debug)]
struct Step<'a> {
    frame: &'a Frame,
    role: Role,
    traits: Trait,
    /// The innermost logical frame of its physical frame: only here does the return address say something new.
    exact: bool,
}

/// The part of a call stack between the runtime's poll of the task and the acquire, outermost first.
#[derive(Debug)]
pub(crate) struct Path<'a>(Vec<Step<'a>>);

impl<'a> Path<'a> {
    pub(crate) fn new(frames: &'a [Frame]) -> Self {
        let paths: Vec<String> = frames.iter().map(path_of).collect();
        let leaf = role::own_frames(&paths);
        let root = paths
            .iter()
            .skip(leaf)
            .position(|path| role::is_runtime(path))
            .map_or(frames.len(), |at| leaf + at);
        let mut steps: Vec<Step<'a>> = Vec::with_capacity(root - leaf);
        // What polls the outermost frame: the runtime, or somebody unknown.
        let mut parent = if root < frames.len() { Role::Body } else { Role::Unknown };
        for at in (leaf..root).rev() {
            let (role, traits) = role_of(&paths[at], &frames[at], parent);
            let exact = at == 0 || !frames[at - 1].inlined;
            steps.push(Step { frame: &frames[at], role, traits, exact });
            parent = role;
        }
        Path(steps)
    }

    /// The name of the innermost function that users wrote, as they would say it.
    pub(crate) fn function(&self) -> Option<String> {
        self.0.iter().rev().find_map(|step| name::spoken(step.frame))
    }

    /// One thing after the other, all the way: while this acquire waits, its actor does nothing else.
    pub(crate) fn is_plain(&self) -> bool {
        !self.0.is_empty() && plain(&self.0)
    }

    /// Nothing on the way gives the acquire up before it is served: no timeout, no `select!`.
    pub(crate) fn is_patient(&self) -> bool {
        let patient = |step: &Step<'_>| match step.role {
            Role::Body | Role::Sequence | Role::Call | Role::PollFn | Role::Queue => true,
            Role::Static | Role::Many => step.traits.join,
            Role::Timeout | Role::Unknown => false,
        };
        !self.0.is_empty() && self.0.iter().all(patient)
    }

    /// A timeout or a `select!` of the user's, near or far, may end the acquire. What a library selects in, between
    /// its client and the end of the program for example, is no part of how the program gets its permits.
    pub(crate) fn has_way_out(&self) -> bool {
        let outer = |at: usize| {
            self.0[..at].iter().rev().find(|step| !step.role.is_combinator()).map(|step| step.role)
        };
        self.0.iter().enumerate().any(|(at, step)| match step.role {
            Role::Timeout => true,
            Role::Static | Role::Many => !step.traits.join && outer(at) != Some(Role::Sequence),
            _ => false,
        })
    }

    /// Where the acquire is a branch of a combinator itself, with no `async` body between: the outermost frame of
    /// that combinator. The guard is the branch's output.
    fn direct_branch(&self) -> Option<usize> {
        let mut combinator = None;
        for (at, step) in self.0.iter().enumerate().rev() {
            match step.role {
                Role::PollFn | Role::Static | Role::Queue | Role::Many => combinator = Some(at),
                Role::Sequence | Role::Call => {}
                Role::Body | Role::Timeout | Role::Unknown => break,
            }
        }
        combinator
    }
}

/// What the frames say, before the addresses of the two futures and pollers are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parting {
    outcome: Outcome,
    /// Nothing between the parting and either acquire could poll, give up, or take the guard elsewhere. Only then
    /// is a [`Relation::Blocked`] certain: a `select!` on the way to the wait has other branches, a `timeout` ends
    /// it, and a future that was suspended in a `select!` may have been moved to another task.
    firm: bool,
    /// They part in one `async` body.
    in_body: bool,
    /// What the hold was acquired by is a future that the body kept and polls no more: a member of a set, or a branch
    /// that was polled by reference.
    inside: bool,
    /// The common part runs through a combinator whose children have a waker each.
    queue: bool,
    /// The common part runs through any combinator.
    combinator: bool,
    /// The pollers were seen below the same combinators, so they can be compared.
    pollers: bool,
    /// The common part does not tell one child from another; the addresses must.
    ambiguous: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Blocked,
    Concurrent,
    /// The paths are equal; `siblings` if two instances hold their guards until both are done.
    Equal {
        siblings: bool,
    },
    Unknown,
}

impl Parting {
    const UNKNOWN: Parting = Parting {
        outcome: Outcome::Unknown,
        firm: false,
        in_body: false,
        inside: false,
        queue: false,
        combinator: false,
        pollers: false,
        ambiguous: false,
    };

    /// Compares two paths of one actor.
    pub(crate) fn of(hold: &Path<'_>, wait: &Path<'_>, optimised: bool) -> Self {
        let (h, w) = (&hold.0, &wait.0);
        let unnamed = |steps: &[Step<'_>]| {
            steps.is_empty() || steps.iter().any(|s| s.frame.function.is_empty())
        };
        if unnamed(h) || unnamed(w) {
            return Parting::UNKNOWN;
        }
        // Without places an inlined combinator cannot be seen.
        let optimised =
            optimised || h.iter().chain(w).any(|s| s.frame.inlined && s.role == Role::Body);
        let unplaced = |steps: &[Step<'_>]| steps.iter().any(|s| place(s.frame).is_none());
        if optimised && (unplaced(h) || unplaced(w)) {
            return Parting::UNKNOWN;
        }

        let common = h.iter().zip(w).take_while(|(a, b)| same(a, b)).count();
        let direct = hold.direct_branch();
        if let Some(branch) = direct
            && common >= branch
            && w.get(branch).is_some_and(|b| same_function(h[branch].frame, b.frame))
        {
            return Self::beside(h, w, branch, common, optimised);
        }
        let (Some(a), Some(b)) = (h.get(common), w.get(common)) else {
            if h.len() == w.len() {
                return Parting { outcome: Outcome::Equal { siblings: false }, ..Parting::UNKNOWN };
            }
            return Parting::UNKNOWN;
        };
        let parent = common.checked_sub(1).map_or(Role::Unknown, |at| h[at].role);
        let (outcome, in_body) = part(a, b, parent, optimised);
        let mut parting = Self::with_common(&h[..common], outcome, optimised);
        parting.pollers = !has_queue(&h[common..]) && !has_queue(&w[common..]);
        parting.firm = in_body && returned(&h[common + 1..]) && plain(&w[common + 1..]);
        (parting.in_body, parting.inside) = (in_body, in_body && suspended(&h[common + 1..]));
        parting
    }

    /// The hold's guard is the output of a combinator's branch, and the wait came from the same combinator at the
    /// same await point.
    fn beside(
        h: &[Step<'_>],
        w: &[Step<'_>],
        branch: usize,
        common: usize,
        optimised: bool,
    ) -> Self {
        let group = &h[branch..];
        if !group.iter().any(|s| s.traits.join) {
            // The branch is done, so the whole is: where the guard went, and whether this is the next round, the
            // paths do not tell.
            return Parting::UNKNOWN;
        }
        let inside = w
            .iter()
            .skip(branch)
            .position(|s| matches!(s.role, Role::Body | Role::Timeout | Role::Unknown));
        let rest = inside.map_or(&w[w.len()..], |at| &w[branch + at..]);
        let equal = common == h.len() && common == w.len();
        let outcome = if equal {
            Outcome::Equal { siblings: group.iter().any(|s| s.role == Role::Many) }
        } else {
            Outcome::Blocked
        };
        let mut parting = Self::with_common(&h[..branch], outcome, optimised);
        parting.pollers = !has_queue(group) && !has_queue(&w[branch..]);
        parting.firm = plain(rest);
        parting
    }

    fn with_common(common: &[Step<'_>], outcome: Outcome, optimised: bool) -> Self {
        // Equal pollers tell the children of a queue apart, and with these everything outside of them.
        let queue = common.iter().rposition(|s| s.role == Role::Queue);
        let rest = &common[queue.map_or(0, |at| at + 1)..];
        let ambiguous = rest.iter().any(|s| match s.role {
            Role::Many | Role::Unknown => true,
            Role::Static => optimised,
            _ => false,
        });
        Parting {
            outcome,
            queue: queue.is_some(),
            combinator: queue.is_some() || rest.iter().any(|s| s.role.is_combinator()),
            ambiguous,
            ..Parting::UNKNOWN
        }
    }

    /// The relation of two acquires with these addresses of their future and poller.
    pub(crate) fn relation(&self, hold: (u64, u64), wait: (u64, u64)) -> Relation {
        let known = |a: u64, b: u64| a != 0 && b != 0;
        match self.outcome {
            Outcome::Unknown => Relation::Unknown,
            Outcome::Concurrent => Relation::Concurrent,
            Outcome::Equal { .. } if !known(hold.0, wait.0) => Relation::Unknown,
            Outcome::Equal { .. } if hold.0 == wait.0 => Relation::Repeated,
            Outcome::Equal { siblings: false } => Relation::Concurrent,
            Outcome::Equal { siblings: true } | Outcome::Blocked => {
                let comparable = self.pollers && known(hold.1, wait.1);
                if comparable && hold.1 != wait.1 && self.combinator {
                    return Relation::Concurrent;
                }
                let near = known(hold.0, wait.0) && hold.0.abs_diff(wait.0) < FUTURE_SIZE;
                if (self.queue && !comparable) || (self.ambiguous && !near) {
                    return Relation::Unknown;
                }
                Relation::Blocked
            }
        }
    }

    /// Whether a [`Relation::Blocked`] is certain.
    pub(crate) fn firm(&self) -> bool {
        self.firm
    }

    /// Whether what holds is a future that the body kept and polls no more, if it is [`Relation::Blocked`].
    pub(crate) fn is_inside(&self) -> bool {
        self.inside
    }

    /// Whether what holds is the body that waits, or what it has called, if it is [`Relation::Blocked`]: less than
    /// certain, as the guard may have come through a combinator, and the wait may be in one.
    pub(crate) fn is_likely(&self) -> bool {
        self.in_body || !self.combinator
    }
}

/// What follows from the first frames that differ; and whether they are one `async` body.
fn part(a: &Step<'_>, b: &Step<'_>, parent: Role, optimised: bool) -> (Outcome, bool) {
    if !same_function(a.frame, b.frame) || a.role != b.role {
        return match parent {
            Role::PollFn | Role::Static | Role::Queue | Role::Many => (Outcome::Concurrent, false),
            Role::Sequence | Role::Timeout => (Outcome::Blocked, false),
            // A body at one await point, with two children there: the loop's next round.
            Role::Body | Role::Call | Role::Unknown => (Outcome::Unknown, false),
        };
    }
    match a.role {
        // Optimisation may duplicate the code of one await point.
        Role::Body if optimised && place(a.frame) == place(b.frame) => (Outcome::Unknown, false),
        Role::Body => (Outcome::Blocked, true),
        Role::PollFn | Role::Static | Role::Queue | Role::Many => (Outcome::Concurrent, false),
        Role::Sequence | Role::Timeout => (Outcome::Blocked, false),
        Role::Call | Role::Unknown => (Outcome::Unknown, false),
    }
}

fn same(a: &Step<'_>, b: &Step<'_>) -> bool {
    same_function(a.frame, b.frame)
        && place(a.frame) == place(b.frame)
        && (!(a.exact && b.exact) || a.frame.address == b.frame.address)
}

/// By the name and, since some builds shorten names to `{async_fn#0}`, the file.
fn same_function(a: &Frame, b: &Frame) -> bool {
    let file = |f: &Frame| f.site.as_ref().map(|site| site.file.clone());
    a.function == b.function && (a.function.contains("::") || file(a) == file(b))
}

fn place(frame: &Frame) -> Option<(u32, u32)> {
    frame.site.as_ref().filter(|site| site.line > 0).map(|site| (site.line, site.column))
}

fn has_queue(steps: &[Step<'_>]) -> bool {
    steps.iter().any(|s| s.role == Role::Queue)
}

/// One thing after the other, all the way.
fn plain(steps: &[Step<'_>]) -> bool {
    steps.iter().all(|s| matches!(s.role, Role::Body | Role::Sequence | Role::Call))
}

/// Some future that has a body is left behind, alive: only sets and references keep one that is not done.
fn suspended(steps: &[Step<'_>]) -> bool {
    let last = steps.iter().rposition(|s| s.role == Role::Body).unwrap_or(0);
    let Some(first) = steps[..last].iter().position(|s| match s.role {
        Role::Static | Role::Many => !s.traits.join,
        Role::Queue | Role::Timeout => true,
        _ => false,
    }) else {
        return false;
    };
    let by_reference = |s: &Step<'_>| {
        let path = path_of(s.frame);
        ["core::pin", "alloc::boxed", "&"].iter().any(|module| path.starts_with(module))
    };
    let mut below = steps[first..last].iter().take_while(|s| s.role != Role::Body);
    below.any(|s| s.role == Role::Queue || by_reference(s))
}

/// The guard came back to the body: directly, as a combinator's or timeout's output, or through bodies that have
/// run to their end.
fn returned(steps: &[Step<'_>]) -> bool {
    let bodies = steps
        .iter()
        .rposition(|s| matches!(s.role, Role::Body | Role::Unknown))
        .map_or(0, |at| at + 1);
    plain(&steps[..bodies])
}
