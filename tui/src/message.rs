//! What the app asks of the outside, and what it hears from there.
//!
//! Plain data over the core's types: the app knows no sockets, and the source knows no screens.

use holdup_core::Finding;
use holdup_core::snapshot::{
    Actor, Dropped, Hold, HoldId, Moment, Process, Resource, ResourceId, Site, SiteId, Stack,
    StackId, Wait,
};
use std::sync::Arc;

/// How many holds or waits one page has.
pub const PAGE: usize = 200;

/// How many stacks are asked for at once.
pub const STACKS: usize = 64;

/// A process that could be attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Process id.
    pub pid: u32,
    /// The executable's name, if it can be told.
    pub name: String,
    /// How long it has run, if it can be told.
    pub up: Option<std::time::Duration>,
    /// Where it serves.
    pub address: String,
}

/// The state of the whole process without the holds and waits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overview {
    /// When it was true, on the process's clock.
    pub taken: Moment,
    /// All resources, by id.
    pub resources: Arc<[Resource]>,
    /// By [`holdup_core::snapshot::SiteId`].
    pub sites: Arc<[Site]>,
    /// What is wrong.
    pub findings: Arc<[Finding]>,
    /// What was not recorded.
    pub dropped: Dropped,
    /// Resources beyond the limit of a watch.
    pub resources_left_out: u64,
    /// Findings beyond the limit of a watch.
    pub findings_left_out: u64,
}

/// Where a page begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// How many rows lie before the page.
    pub skipped: u64,
    /// The last hold before the page; `None` at the beginning, and for waits.
    pub after: Option<(Moment, HoldId)>,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    /// Where it begins.
    pub cursor: Cursor,
    /// When it was read, on the process's clock.
    pub taken: Moment,
    /// At most [`PAGE`] rows.
    pub rows: Vec<T>,
}

/// The pages of the resource on screen.
#[derive(Clone, Debug, PartialEq)]
pub struct Records {
    /// Of which resource.
    pub resource: ResourceId,
    /// The holds, oldest first.
    pub holds: Page<Hold>,
    /// The waits, in queue order.
    pub waits: Page<Wait>,
    /// Who they are.
    pub actors: Vec<Actor>,
    /// The sites that the rows refer to.
    pub sites: Vec<(SiteId, Site)>,
}

/// What comes from the outside.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// The processes that can be attached now, and where we looked.
    Processes(Vec<Candidate>, String),
    /// A connection is being made.
    Connecting(String),
    /// A process answered.
    Attached(Process),
    /// Its state.
    Overview(Overview),
    /// Pages that were asked for.
    Records(Records),
    /// The resource that was asked for is gone.
    NoResource(ResourceId),
    /// A question was not answered in time; it may be asked again.
    NoAnswer,
    /// Stacks that were asked for.
    Stacks(Vec<Stack>),
    /// A source file that was asked for; `None` if it is not readable here.
    File(Arc<str>, Option<Arc<str>>),
    /// The connection failed or ended. With `again`, the source goes on trying.
    Lost {
        /// Why, in words.
        why: String,
        /// Whether another attempt follows.
        again: bool,
    },
    /// A line that the program printed.
    Line(String),
    /// The program that we started has not begun to serve.
    NotServing,
    /// The program that we started has ended, in these words.
    Ended(String),
}

/// What the app asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Look for processes.
    Discover,
    /// Attach to this address or pid.
    Attach(String),
    /// Let go of the process.
    Detach,
    /// Pages of a resource.
    Records {
        /// Of which resource.
        resource: ResourceId,
        /// The page of holds.
        holds: Cursor,
        /// The page of waits.
        waits: Cursor,
    },
    /// Name these stacks.
    Stacks(Vec<StackId>),
    /// Read a source file.
    File {
        /// As the compiler recorded it.
        file: Arc<str>,
        /// What relative paths may be relative to.
        bases: Vec<String>,
    },
}
