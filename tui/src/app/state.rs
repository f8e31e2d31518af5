//! Everything the app knows. Only `update` changes it; the view reads it.

use crate::message::{Candidate, Cursor, Overview};
use holdup_core::snapshot::{
    Actor, ActorId, Hold, HoldId, Moment, Process, Resource, ResourceId, Site, SiteId, Stack,
    StackId, Wait,
};
use holdup_core::{Finding, FindingId};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Lines of the program's output that are kept.
pub const LOG_LINES: usize = 2_000;

/// What is on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Screen {
    /// The processes that can be attached.
    Processes,
    /// Findings and resources.
    Overview,
    /// One resource.
    Resource(ResourceId),
    /// One finding.
    Finding(FindingId),
    /// What the program printed.
    Log,
}

/// What lies over the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlay {
    /// Nothing.
    None,
    /// The keys.
    Help,
    /// The filter is being typed.
    Filter,
}

/// How things are between us and the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// Not attached to anything.
    Idle,
    /// On the way to this address.
    Connecting(String),
    /// Attached; last heard at that time.
    Live(Duration),
    /// Lost at that time for this reason, another attempt follows.
    Retrying(Duration, String),
    /// Lost at that time for good, for this reason.
    Gone(Duration, String),
}

/// A selection in a list that changes under it: by id, and where the row is gone, by its old place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice<T> {
    id: Option<T>,
    place: usize,
}

impl<T> Default for Choice<T> {
    fn default() -> Choice<T> {
        Choice { id: None, place: 0 }
    }
}

impl<T: Copy + PartialEq> Choice<T> {
    /// The selected row's index; `None` if there are no rows.
    pub fn index(&self, mut rows: impl ExactSizeIterator<Item = T>) -> Option<usize> {
        let last = rows.len().checked_sub(1)?;
        let found = self.id.and_then(|id| rows.position(|row| row == id));
        Some(found.unwrap_or(self.place.min(last)))
    }

    /// Selects the row at an index.
    pub(super) fn set(&mut self, place: usize, id: T) {
        *self = Choice { id: Some(id), place };
    }

    /// Selects whatever is at an index once the rows are there.
    pub(super) fn set_place(&mut self, place: usize) {
        *self = Choice { id: None, place };
    }
}

/// A row of the overview.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// A finding.
    Finding(FindingId),
    /// A resource.
    Resource(ResourceId),
}

/// The order of the resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "`as_str` has the words")]
pub enum Sort {
    #[default]
    Trouble,
    Waiting,
    Used,
    Oldest,
    Name,
    Created,
}

impl Sort {
    /// All, in the order in which a key walks through them.
    pub const ALL: [Sort; 6] =
        [Sort::Trouble, Sort::Waiting, Sort::Used, Sort::Oldest, Sort::Name, Sort::Created];

    /// The words after "by".
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Sort::Trouble => "trouble",
            Sort::Waiting => "waiting",
            Sort::Used => "used",
            Sort::Oldest => "oldest hold",
            Sort::Name => "name",
            Sort::Created => "creation",
        }
    }
}

/// Which list of a resource has the selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Who holds.
    Holders,
    /// Who waits.
    Waiters,
}

/// What holds and waits have in common here.
pub trait Record {
    /// Its id, unique among its kind.
    fn key(&self) -> u64;
    /// Who.
    fn actor(&self) -> ActorId;
    /// Its stack.
    fn stack(&self) -> StackId;
    /// Where it was called.
    fn site(&self) -> SiteId;
    /// Since when.
    fn since(&self) -> Moment;
    /// What a page after it begins after.
    fn after(&self) -> Option<(Moment, HoldId)>;
}

impl Record for Hold {
    fn key(&self) -> u64 {
        self.id.0
    }
    fn actor(&self) -> ActorId {
        self.moved_to.unwrap_or(self.actor)
    }
    fn stack(&self) -> StackId {
        self.stack
    }
    fn site(&self) -> SiteId {
        self.site
    }
    fn since(&self) -> Moment {
        self.since
    }
    fn after(&self) -> Option<(Moment, HoldId)> {
        Some((self.since, self.id))
    }
}

impl Record for Wait {
    fn key(&self) -> u64 {
        self.id.0
    }
    fn actor(&self) -> ActorId {
        self.actor
    }
    fn stack(&self) -> StackId {
        self.stack
    }
    fn site(&self) -> SiteId {
        self.site
    }
    fn since(&self) -> Moment {
        self.since
    }
    fn after(&self) -> Option<(Moment, HoldId)> {
        None
    }
}

/// One page of a list that may be long.
#[derive(Clone, Debug)]
pub struct Pane<T> {
    /// Where the wanted page begins.
    pub cursor: Cursor,
    /// The beginnings of the pages before it.
    pub(super) before: Vec<Cursor>,
    /// The rows of [`Pane::loaded`].
    pub rows: Vec<T>,
    /// When they were read, on the process's clock.
    pub taken: Moment,
    /// Where the page of the rows begins; `None` before the first answer.
    pub loaded: Option<Cursor>,
    /// The selected row.
    pub choice: Choice<u64>,
}

impl<T> Default for Pane<T> {
    fn default() -> Pane<T> {
        Pane {
            cursor: Cursor::default(),
            before: Vec::new(),
            rows: Vec::new(),
            taken: Moment::default(),
            loaded: None,
            choice: Choice::default(),
        }
    }
}

impl<T: Record> Pane<T> {
    /// The selected row's index in the page.
    #[must_use]
    pub fn index(&self) -> Option<usize> {
        self.choice.index(self.rows.iter().map(Record::key))
    }

    /// The selected row.
    #[must_use]
    pub fn selected(&self) -> Option<&T> {
        self.rows.get(self.index()?)
    }
}

/// The resource on screen.
#[derive(Clone, Debug)]
pub struct Detail {
    /// Which.
    pub id: ResourceId,
    /// Who holds.
    pub holds: Pane<Hold>,
    /// Who waits.
    pub waits: Pane<Wait>,
    /// Who they are.
    pub actors: Vec<Actor>,
    /// The sites of the rows.
    pub sites: Vec<(SiteId, Site)>,
    /// Which list has the selection; `None`: holders if there are any.
    pub(super) side: Option<Side>,
    /// Show the frames of the runtime.
    pub unfolded: bool,
    /// It no longer exists.
    pub gone: bool,
    /// Pages were asked for and have not come.
    pub(super) asked: bool,
}

impl Detail {
    pub(super) fn new(id: ResourceId) -> Detail {
        Detail {
            id,
            holds: Pane::default(),
            waits: Pane::default(),
            actors: Vec::new(),
            sites: Vec::new(),
            side: None,
            unfolded: false,
            gone: false,
            asked: false,
        }
    }

    /// Which list has the selection.
    #[must_use]
    pub fn side(&self) -> Side {
        match self.side {
            Some(side) => side,
            None if self.holds.rows.is_empty() && !self.waits.rows.is_empty() => Side::Waiters,
            None => Side::Holders,
        }
    }

    /// The selected hold or wait.
    #[must_use]
    pub fn selected(&self) -> Option<&dyn Record> {
        match self.side() {
            Side::Holders => self.holds.selected().map(|h| h as &dyn Record),
            Side::Waiters => self.waits.selected().map(|w| w as &dyn Record),
        }
    }

    /// What is known of an actor.
    #[must_use]
    pub fn actor(&self, id: ActorId) -> Option<&Actor> {
        self.actors.iter().find(|a| a.id == id)
    }
}

/// How a piece of text is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// As the rest.
    #[default]
    Plain,
    /// Trouble.
    Bad,
    /// A warning.
    Warn,
    /// Good news.
    Good,
    /// What leads the eye.
    Accent,
}

/// A piece of a line, free of control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The text.
    pub text: String,
    /// How it is meant.
    pub tone: Tone,
    /// It is important.
    pub bold: bool,
}

/// A finding as text.
#[derive(Clone, Debug)]
pub struct Told {
    /// The finding, as it was last seen.
    pub finding: Finding,
    /// Its lines.
    pub lines: Vec<Vec<Piece>>,
    /// The first line on screen.
    pub scroll: usize,
    /// It is no longer true.
    pub ended: bool,
}

/// The program that `holdup run` started.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The command line.
    pub command: String,
    /// What it printed.
    pub lines: VecDeque<String>,
    /// How many older lines were dropped.
    pub dropped: u64,
    /// How many lines the view is scrolled up from the end.
    pub up: usize,
    /// It has not begun to serve in time.
    pub mute: bool,
    /// How it ended.
    pub ended: Option<String>,
}

/// A frozen picture.
#[derive(Clone, Debug)]
pub struct Frozen {
    /// Since when.
    pub since: Duration,
    /// What has come in meanwhile.
    pub(super) latest: Option<Overview>,
}

/// Everything the app knows.
#[derive(Debug)]
pub struct State {
    /// The time on the app's clock.
    pub clock: Duration,
    /// Columns and rows.
    pub size: (u16, u16),
    /// Use colours.
    pub colour: bool,
    /// The screens one came through; the last is shown. Never empty.
    pub screens: Vec<Screen>,
    /// What lies over it.
    pub overlay: Overlay,
    /// How things are with the process.
    pub link: Link,
    /// The processes that can be attached; `None` before the first answer.
    pub processes: Option<Vec<Candidate>>,
    /// Where we looked for them.
    pub looked: String,
    /// The selected one.
    pub process_choice: Choice<u32>,
    /// Whom we are attached to.
    pub process: Option<Process>,
    /// Its state, as it is shown.
    pub picture: Option<Overview>,
    /// The picture stands still.
    pub frozen: Option<Frozen>,
    /// The order of the resources.
    pub sort: Sort,
    /// What their names must contain.
    pub filter: String,
    /// The resources that pass, in order.
    pub visible: Vec<ResourceId>,
    /// The selected row of the overview.
    pub choice: Choice<Row>,
    /// The resource that is open.
    pub detail: Option<Detail>,
    /// The finding that is open.
    pub told: Option<Told>,
    /// Named stacks.
    pub stacks: HashMap<StackId, Stack>,
    pub(super) asked_stacks: HashSet<StackId>,
    /// Source files; `None` if not readable.
    pub files: HashMap<Arc<str>, Option<Arc<str>>>,
    pub(super) asked_files: HashSet<Arc<str>>,
    pub(super) discovered: Option<Duration>,
    /// The program that we started.
    pub program: Option<Program>,
}

impl State {
    /// The state before anything has happened.
    #[must_use]
    pub fn new(size: (u16, u16), colour: bool) -> State {
        State {
            clock: Duration::ZERO,
            size,
            colour,
            screens: vec![Screen::Processes],
            overlay: Overlay::None,
            link: Link::Idle,
            processes: None,
            looked: String::new(),
            process_choice: Choice::default(),
            process: None,
            picture: None,
            frozen: None,
            sort: Sort::default(),
            filter: String::new(),
            visible: Vec::new(),
            choice: Choice::default(),
            detail: None,
            told: None,
            stacks: HashMap::new(),
            asked_stacks: HashSet::new(),
            files: HashMap::new(),
            asked_files: HashSet::new(),
            discovered: None,
            program: None,
        }
    }

    /// The same for a program that we started.
    #[must_use]
    pub fn with_program(size: (u16, u16), colour: bool, command: String) -> State {
        let mut state = State::new(size, colour);
        state.screens = vec![Screen::Log];
        state.program = Some(Program { command, ..Program::default() });
        state
    }

    /// The screen that is shown.
    #[must_use]
    pub fn screen(&self) -> Screen {
        self.screens.last().copied().unwrap_or(Screen::Processes)
    }

    /// A resource of the picture.
    #[must_use]
    pub fn resource(&self, id: ResourceId) -> Option<&Resource> {
        let resources = &self.picture.as_ref()?.resources;
        resources.binary_search_by_key(&id, |r| r.id).ok().map(|at| &resources[at])
    }

    /// A site of the picture or of the open resource's rows.
    #[must_use]
    pub fn site(&self, id: SiteId) -> Option<&Site> {
        let known = self.picture.as_ref().and_then(|p| p.sites.get(id.0 as usize));
        known.or_else(|| {
            let sites = &self.detail.as_ref()?.sites;
            sites.iter().find(|(site, _)| *site == id).map(|(_, site)| site)
        })
    }

    /// The findings of the picture.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        self.picture.as_ref().map_or(&[], |p| &p.findings)
    }

    /// The rows of the overview, findings first.
    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        let findings = self.findings().iter().map(|f| Row::Finding(f.id));
        findings.chain(self.visible.iter().map(|id| Row::Resource(*id))).collect()
    }

    /// The finding that the resource on screen takes part in; the selected hold's or wait's own first.
    #[must_use]
    pub fn finding_here(&self) -> Option<&Finding> {
        let detail = self.detail.as_ref()?;
        let own = detail.selected().and_then(|row| {
            self.findings().iter().find(|f| match detail.side() {
                Side::Holders => f.holds.contains(&HoldId(row.key())),
                Side::Waiters => f.waits.iter().any(|w| w.0 == row.key()),
            })
        });
        own.or_else(|| self.findings().iter().find(|f| f.resources.contains(&detail.id)))
    }
}
