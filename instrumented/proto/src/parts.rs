//! Large things in small messages: cutting a picture into parts, and putting it together again.

use crate::convert::Error;
use crate::limits;
use crate::v1;
use holdup_core::finding::Finding;
use holdup_core::snapshot::{
    Actor, ActorId, Dropped, Hold, Moment, Process, Resource, ResourceId, Site, SiteId, Snapshot,
    Stack, Wait,
};
use prost::Message;
use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::mem;

/// What a process shows of itself at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Picture {
    /// Counts the pictures of a stream, from 1, with gaps where the reader was too slow.
    pub revision: u64,
    /// What was true. A watch leaves out holds, waits, actors and stacks.
    pub snapshot: Snapshot,
    /// Resources beyond the limit of a watch.
    pub resources_left_out: u64,
    /// Changes when the findings do.
    pub findings_revision: u64,
    /// What holdup concludes.
    pub findings: Vec<Finding>,
    /// Findings beyond the limit.
    pub findings_left_out: u64,
}

/// The most that a field takes besides its content: one byte for its key, up to five for the length.
const FRAMING: usize = 6;

/// One record, ready to be put into a part.
#[derive(Debug)]
enum Record {
    Site(v1::Site),
    Resource(v1::Resource),
    Gone(u64),
    Actor(v1::Actor),
    Hold(v1::Hold),
    Wait(v1::Wait),
    Stack(v1::Stack),
    Finding(v1::Finding),
    Learned(v1::Learned),
    Order(v1::Order),
    Runtime(v1::Runtime),
}

impl Record {
    /// At least the bytes that the record adds to a part.
    fn size(&self) -> usize {
        FRAMING
            + match self {
                Self::Site(site) => site.encoded_len(),
                Self::Resource(resource) => resource.encoded_len(),
                Self::Gone(_) => 10,
                Self::Actor(actor) => actor.encoded_len(),
                Self::Hold(hold) => hold.encoded_len(),
                Self::Wait(wait) => wait.encoded_len(),
                Self::Stack(stack) => stack.encoded_len(),
                Self::Finding(finding) => finding.encoded_len(),
                Self::Learned(learned) => learned.encoded_len(),
                Self::Order(order) => order.encoded_len(),
                Self::Runtime(runtime) => runtime.encoded_len(),
            }
    }

    fn add_to(self, part: &mut v1::Part) {
        match self {
            Self::Site(site) => part.sites.push(site),
            Self::Resource(resource) => part.resources.push(resource),
            Self::Gone(id) => part.gone.push(id),
            Self::Actor(actor) => part.actors.push(actor),
            Self::Hold(hold) => part.holds.push(hold),
            Self::Wait(wait) => part.waits.push(wait),
            Self::Stack(stack) => part.stacks.push(stack),
            Self::Finding(finding) => part.findings.push(finding),
            Self::Learned(learned) => part.learned.push(learned),
            Self::Order(order) => part.orders.push(order),
            Self::Runtime(runtime) => part.runtimes.push(runtime),
        }
    }
}

/// The parts of a picture, made one at a time as they are asked for; always at least one.
pub struct Parts {
    head: Option<v1::Head>,
    records: Peekable<Box<dyn Iterator<Item = Record> + Send>>,
    ended: bool,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").field("ended", &self.ended).finish_non_exhaustive()
    }
}

impl Parts {
    fn new(head: Option<v1::Head>, records: impl Iterator<Item = Record> + Send + 'static) -> Self {
        let records: Box<dyn Iterator<Item = Record> + Send> = Box::new(records);
        Self { head, records: records.peekable(), ended: false }
    }

    /// A whole snapshot and the findings beside it.
    #[must_use]
    pub fn of_snapshot(
        snapshot: Snapshot,
        (findings_revision, mut findings): (u64, Vec<Finding>),
    ) -> Self {
        let findings_left_out = keep(&mut findings, limits::FINDINGS);
        let head = v1::Head {
            taken: snapshot.taken.0,
            revision: 1,
            process: Some((&snapshot.process).into()),
            dropped: Some((&snapshot.dropped).into()),
            resources_left_out: 0,
            findings_revision,
            findings_told: true,
            findings_left_out,
        };
        let records = (snapshot.sites.into_iter())
            .map(|site| Record::Site((&site).into()))
            .chain(snapshot.resources.into_iter().map(|it| Record::Resource((&it).into())))
            .chain(findings.into_iter().map(|it| Record::Finding((&it).into())))
            .chain(snapshot.actors.into_iter().map(|it| Record::Actor((&it).into())))
            .chain(snapshot.runtimes.into_iter().map(|it| Record::Runtime((&it).into())))
            .chain(snapshot.waits.into_iter().map(|it| Record::Wait((&it).into())))
            .chain(snapshot.holds.into_iter().map(|it| Record::Hold((&it).into())))
            .chain(snapshot.learned.into_iter().map(|it| Record::Learned((&it).into())))
            .chain(snapshot.orders.into_iter().map(|it| Record::Order((&it).into())))
            .chain(snapshot.stacks.into_iter().map(|it| Record::Stack((&it).into())));
        Self::new(Some(head), records)
    }

    /// Some stacks.
    #[must_use]
    pub fn of_stacks(stacks: Vec<Stack>) -> Self {
        Self::new(None, stacks.into_iter().map(|it| Record::Stack((&it).into())))
    }
}

impl Iterator for Parts {
    type Item = v1::Part;

    fn next(&mut self) -> Option<v1::Part> {
        if self.ended {
            return None;
        }
        let mut part = v1::Part { head: self.head.take(), ..v1::Part::default() };
        let mut size = part.encoded_len();
        let mut empty = true;
        while let Some(record) = self.records.peek() {
            size += record.size();
            if size > limits::PART && !empty {
                break;
            }
            empty = false;
            if let Some(record) = self.records.next() {
                record.add_to(&mut part);
            }
        }
        part.more = self.records.peek().is_some();
        self.ended = !part.more;
        Some(part)
    }
}

/// Shortens `list` to `limit`; says how many were left out.
fn keep<T>(list: &mut Vec<T>, limit: usize) -> u64 {
    let left_out = list.len().saturating_sub(limit);
    list.truncate(limit);
    left_out as u64
}

/// What can be on a page: holds and waits.
pub trait Listed {
    /// Its message.
    type Wire: Message + for<'a> From<&'a Self>;

    /// The source place that it refers to.
    fn site(&self) -> SiteId;

    /// The actors that it refers to.
    fn actors(&self) -> impl Iterator<Item = ActorId>;
}

impl Listed for Hold {
    type Wire = v1::Hold;

    fn site(&self) -> SiteId {
        self.site
    }

    fn actors(&self) -> impl Iterator<Item = ActorId> {
        [self.actor].into_iter().chain(self.moved_to)
    }
}

impl Listed for Wait {
    type Wire = v1::Wait;

    fn site(&self) -> SiteId {
        self.site
    }

    fn actors(&self) -> impl Iterator<Item = ActorId> {
        [self.actor].into_iter()
    }
}

/// A page of records with what they refer to.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<W> {
    /// The records.
    pub records: Vec<W>,
    /// There may be more behind the last one.
    pub more: bool,
    /// The source places that the records refer to.
    pub sites: Vec<v1::PlacedSite>,
    /// What is known of the actors that the records refer to.
    pub actors: Vec<v1::Actor>,
}

/// At most `limit` of `records`, and less where they would make the message too large; at least one.
///
/// The sites are by id; the actors are sorted by id.
#[must_use]
pub fn page<T: Listed>(
    records: &[T],
    limit: usize,
    sites: &[Site],
    actors: &[Actor],
) -> Page<T::Wire> {
    let mut page = Page {
        records: Vec::new(),
        more: records.len() >= limit,
        sites: Vec::new(),
        actors: Vec::new(),
    };
    let mut size = 0;
    let (mut sites_told, mut actors_told) = (BTreeSet::new(), BTreeSet::new());
    for record in records.iter().take(limit) {
        let wire = T::Wire::from(record);
        let id = record.site();
        let site = sites.get(id.0 as usize).filter(|_| !sites_told.contains(&id));
        let site = site.map(|site| v1::PlacedSite { id: id.0, site: Some(site.into()) });
        let known = |id: &ActorId| actors.binary_search_by_key(id, |actor| actor.id).ok();
        let new_actors = record.actors().filter(|id| !actors_told.contains(id));
        let new_actors: Vec<v1::Actor> =
            new_actors.filter_map(|id| Some((&actors[known(&id)?]).into())).collect();
        let adds = FRAMING
            + wire.encoded_len()
            + site.as_ref().map_or(0, |site| FRAMING + site.encoded_len())
            + new_actors.iter().map(|actor| FRAMING + actor.encoded_len()).sum::<usize>();
        if size + adds > limits::PART && !page.records.is_empty() {
            page.more = true;
            break;
        }
        size += adds;
        sites_told.insert(id);
        actors_told.extend(record.actors());
        page.records.push(wire);
        page.sites.extend(site);
        page.actors.extend(new_actors);
    }
    page
}

/// What a watcher has been told, so that it is told changes only.
#[derive(Debug, Default)]
pub struct Told {
    revision: u64,
    process: Option<Process>,
    sites: usize,
    resources: Vec<Resource>,
    findings_revision: Option<u64>,
}

/// What a watch shows, as the registry and the monitor give it.
#[derive(Debug)]
pub struct Current<'a> {
    /// When it was copied.
    pub taken: Moment,
    /// The process.
    pub process: Process,
    /// By id.
    pub resources: Vec<Resource>,
    /// All source places so far; the list only ever grows.
    pub sites: &'a [Site],
    /// The findings, with their revision.
    pub findings: (u64, Vec<Finding>),
    /// What is missing.
    pub dropped: Dropped,
}

impl Told {
    /// Goes on to the next picture. The parts assume that the watcher gets them all.
    #[must_use]
    pub fn next(&mut self, current: Current<'_>) -> Parts {
        let Current { taken, process, mut resources, sites, findings, dropped } = current;
        let resources_left_out = select(&mut resources);
        let (findings_revision, mut findings) = findings;
        let findings_told = self.findings_revision != Some(findings_revision);
        if !findings_told {
            findings.clear();
        }
        let findings_left_out = keep(&mut findings, limits::FINDINGS);
        let process_changed = self.process.as_ref() != Some(&process);
        self.revision += 1;
        let head = v1::Head {
            taken: taken.0,
            revision: self.revision,
            process: process_changed.then(|| (&process).into()),
            dropped: Some((&dropped).into()),
            resources_left_out,
            findings_revision,
            findings_told,
            findings_left_out,
        };
        let new_sites = sites.get(self.sites..).unwrap_or_default().to_vec();
        let (changed, gone) = changes(&self.resources, &resources);

        self.process = Some(process);
        self.sites = sites.len().max(self.sites);
        self.resources = resources;
        self.findings_revision = Some(findings_revision);

        let records = (new_sites.into_iter())
            .map(|it| Record::Site((&it).into()))
            .chain(gone.into_iter().map(|id| Record::Gone(id.0)))
            .chain(changed.into_iter().map(|it| Record::Resource((&it).into())))
            .chain(findings.into_iter().map(|it| Record::Finding((&it).into())));
        Parts::new(Some(head), records)
    }
}

/// Keeps what a watch can show, in the order of ids; says how many resources were left out.
fn select(resources: &mut Vec<Resource>) -> u64 {
    let left_out = resources.len().saturating_sub(limits::WATCHED);
    if left_out > 0 {
        // Where somebody waits comes first, then where somebody holds, then what is oldest.
        resources.sort_by_key(|it| (it.usage.waiting == 0, it.usage.holders == 0, it.id));
        resources.truncate(limits::WATCHED);
        resources.sort_by_key(|it| it.id);
    }
    left_out as u64
}

/// What is new or different in `now`, and what is in `before` only. Both are sorted by id.
fn changes(before: &[Resource], now: &[Resource]) -> (Vec<Resource>, Vec<ResourceId>) {
    let mut changed = Vec::new();
    let mut gone = Vec::new();
    let mut before = before.iter().peekable();
    for resource in now {
        while let Some(old) = before.next_if(|old| old.id < resource.id) {
            gone.push(old.id);
        }
        if before.next_if(|old| old.id == resource.id) != Some(resource) {
            changed.push(resource.clone());
        }
    }
    gone.extend(before.map(|old| old.id));
    (changed, gone)
}

/// Puts the parts of a stream together to pictures.
#[derive(Debug)]
pub struct Assembler {
    picture: Picture,
    resources: BTreeMap<ResourceId, Resource>,
    /// The parts so far are of a picture that is not complete.
    open: bool,
    /// Roughly the memory that the picture takes.
    weight: usize,
    limit: usize,
}

impl Assembler {
    /// Pictures that take more than about `limit` bytes of memory are refused.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            picture: Picture::default(),
            resources: BTreeMap::new(),
            open: false,
            weight: 0,
            limit,
        }
    }

    /// Takes the next part; gives the picture if it was the last one.
    ///
    /// # Errors
    ///
    /// If the part cannot be from a holdup of this protocol, or makes the picture too large. The stream is
    /// of no use after that.
    pub fn add(&mut self, part: v1::Part) -> Result<Option<Picture>, Error> {
        match (self.open, part.head) {
            (false, Some(head)) => self.begin(head),
            (true, None) => {}
            (false, None) => return Err(Error::new("a picture without a head")),
            (true, Some(_)) => return Err(Error::new("a picture that begins within another")),
        }
        let Picture { snapshot, findings, .. } = &mut self.picture;
        let mut room = Room { weight: &mut self.weight, limit: self.limit };
        for id in part.gone {
            self.resources.remove(&ResourceId(id));
        }
        for resource in part.resources {
            let resource = Resource::try_from(resource)?;
            room.take(weight(&resource))?;
            self.resources.insert(resource.id, resource);
        }
        room.extend(&mut snapshot.sites, part.sites)?;
        room.extend(&mut snapshot.actors, part.actors)?;
        room.extend(&mut snapshot.holds, part.holds)?;
        room.extend(&mut snapshot.waits, part.waits)?;
        room.extend(&mut snapshot.stacks, part.stacks)?;
        room.extend(&mut snapshot.learned, part.learned)?;
        room.extend(&mut snapshot.orders, part.orders)?;
        room.extend(&mut snapshot.runtimes, part.runtimes)?;
        room.extend(findings, part.findings)?;
        if findings.len() > limits::FINDINGS {
            return Err(Error::new("too many findings"));
        }

        self.open = part.more;
        Ok((!self.open).then(|| self.complete()))
    }

    /// The picture as it is now. Records are handed over, the rest stays for the changes to come.
    fn complete(&mut self) -> Picture {
        let all = &mut self.picture.snapshot;
        let mut records = Snapshot {
            resources: self.resources.values().cloned().collect(),
            holds: mem::take(&mut all.holds),
            waits: mem::take(&mut all.waits),
            actors: mem::take(&mut all.actors),
            stacks: mem::take(&mut all.stacks),
            learned: mem::take(&mut all.learned),
            orders: mem::take(&mut all.orders),
            runtimes: mem::take(&mut all.runtimes),
            ..Snapshot::default()
        };
        // The core finds these by bisection.
        records.stacks.sort_by_key(|stack| stack.id);
        records.learned.sort_by_key(|learned| learned.stack);
        let mut picture = self.picture.clone();
        let Snapshot { taken, process, sites, dropped, .. } = mem::take(&mut picture.snapshot);
        picture.snapshot = Snapshot { taken, process, sites, dropped, ..records };
        picture
    }

    fn begin(&mut self, head: v1::Head) {
        let picture = &mut self.picture;
        let sites = picture.snapshot.sites.iter();
        self.weight = sites.map(|it| size_of::<Site>() + it.file.len()).sum::<usize>()
            + self.resources.values().map(weight).sum::<usize>();
        if head.findings_told {
            picture.findings.clear();
            picture.findings_left_out = head.findings_left_out;
        }
        picture.revision = head.revision;
        picture.resources_left_out = head.resources_left_out;
        picture.findings_revision = head.findings_revision;
        picture.snapshot.taken = Moment(head.taken);
        picture.snapshot.dropped = head.dropped.unwrap_or_default().into();
        if let Some(process) = head.process {
            picture.snapshot.process = process.into();
        }
    }
}

/// Roughly the memory that a resource takes.
fn weight(resource: &Resource) -> usize {
    size_of::<Resource>()
        + resource.name.as_deref().map_or(0, str::len)
        + size_of_val(resource.history.flows.as_slice())
        + size_of_val(resource.history.streaks.as_slice())
}

/// The room that is left for a picture.
struct Room<'a> {
    weight: &'a mut usize,
    limit: usize,
}

impl Room<'_> {
    fn take(&mut self, bytes: usize) -> Result<(), Error> {
        *self.weight = self.weight.saturating_add(bytes);
        if *self.weight > self.limit {
            return Err(Error::new("a picture that is too large"));
        }
        Ok(())
    }

    fn extend<W: Message, T: TryFrom<W>>(
        &mut self,
        list: &mut Vec<T>,
        wire: Vec<W>,
    ) -> Result<(), Error>
    where
        Error: From<T::Error>,
    {
        for record in wire {
            self.take(size_of::<T>() + record.encoded_len())?;
            list.push(T::try_from(record)?);
        }
        Ok(())
    }
}

impl From<std::convert::Infallible> for Error {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}
