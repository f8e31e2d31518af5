//! The shape of the document.

#![expect(missing_docs, reason = "the fields are named as in the domain types, which explain them")]

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    pub format: String,
    pub version: u32,
    /// Since holdup was first used in the process; every `…_ns` that is a moment counts from there.
    pub taken_ns: u64,
    pub process: Process,
    pub resources: Vec<Resource>,
    pub holds: Vec<Hold>,
    pub waits: Vec<Wait>,
    #[serde(default)]
    pub actors: Vec<Actor>,
    #[serde(default)]
    pub stacks: Vec<Stack>,
    #[serde(default)]
    pub learned: Vec<Learned>,
    #[serde(default)]
    pub orders: Vec<Order>,
    #[serde(default)]
    pub runtimes: Vec<Runtime>,
    #[serde(default)]
    pub findings: Vec<Finding>,
    #[serde(default)]
    pub dropped: Dropped,
}

impl Document {
    /// The document as text, indented.
    ///
    /// # Panics
    ///
    /// Never: no part of a document can fail to be written.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self)
            .expect("a document has string keys only and nothing that can fail")
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Process {
    pub pid: u32,
    pub name: String,
    pub executable: String,
    pub version: String,
    pub debug: bool,
    pub stacks: String,
    pub working_directory: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    pub id: u64,
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub created: String,
    pub created_ns: u64,
    #[serde(default)]
    pub scope: u64,
    #[serde(default)]
    pub is_static: bool,
    pub capacity: u64,
    pub available: u64,
    pub held: u64,
    /// Handed to waits that have not been polled since.
    pub granted: u64,
    pub holders: u64,
    pub waiting: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_hold_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_wait_ns: Option<u64>,
    pub initial: u64,
    pub added: u64,
    pub forgotten: u64,
    #[serde(default)]
    pub closed: bool,
    pub settled: bool,
    #[serde(default)]
    pub counters: Counters,
    #[serde(default)]
    pub settings: Settings,
    #[serde(default)]
    pub history: History,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    pub acquired: u64,
    pub waited: u64,
    pub released: u64,
    pub rejected: u64,
    pub cancelled: u64,
    pub wait_ns: u64,
    pub cancelled_ns: u64,
    pub held_ns: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_hold_ns: Option<u64>,
    pub long_held: bool,
    pub grows: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct History {
    pub moved_ns: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<Flow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub streaks: Vec<Streak>,
}

/// `direction` is `added`, `forgotten` or `withdrawn`. A flow of a direction that a reader does not know is skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    pub direction: String,
    pub site: String,
    pub stack: u32,
    pub calls: u64,
    pub units: u64,
    pub most: u64,
    pub first_ns: u64,
    pub last_ns: u64,
    pub actor: Actor,
    pub several: bool,
    pub holding: u64,
    pub then_released: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streak {
    pub actor: Actor,
    pub site: String,
    pub stack: u32,
    pub count: u64,
    pub since_ns: u64,
    pub last_ns: u64,
    pub others: u64,
}

/// Who acts; `kind` is `task`, `root` or `thread`. An actor of a kind that a reader does not know is skipped
/// with its holds and waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    pub kind: String,
    pub id: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    pub id: u64,
    pub resource: u64,
    /// The resource's name, for readers that do not join.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub units: u64,
    pub actor: Actor,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<Actor>,
    #[serde(default)]
    pub scope: u64,
    pub site: String,
    pub since_ns: u64,
    pub age_ns: u64,
    pub call: String,
    pub owned: bool,
    pub stack: u32,
    pub future: String,
    pub poller: String,
    #[serde(default)]
    pub thread: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    pub id: u64,
    pub resource: u64,
    /// The resource's name, for readers that do not join.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub units: u64,
    pub actor: Actor,
    #[serde(default)]
    pub scope: u64,
    pub site: String,
    pub since_ns: u64,
    pub age_ns: u64,
    pub last_poll_ns: u64,
    pub call: String,
    pub owned: bool,
    pub stack: u32,
    pub future: String,
    pub poller: String,
    #[serde(default)]
    pub thread: u64,
    /// 0 outside any.
    #[serde(default)]
    pub runtime: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted_since_ns: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    pub id: u32,
    pub addresses: Vec<String>,
    /// Innermost first; absent until somebody has resolved the names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<Vec<Frame>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    pub function: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    pub address: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inlined: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Learned {
    pub stack: u32,
    pub site: String,
    pub acquired: u64,
    pub released: u64,
    pub elsewhere: u64,
    pub forgotten: u64,
    pub brief: u64,
    pub usual_ns: u64,
    pub longest_ns: u64,
    #[serde(default)]
    pub resource: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub discarded: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runtime {
    pub id: u64,
    /// `current-thread` or `multi-thread`; anything else is not known.
    pub flavor: String,
    pub workers: u64,
    pub alive_tasks: u64,
    pub rested_ns: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    pub outer: Side,
    pub inner: Side,
    pub held: u64,
    pub count: u64,
    pub released: u64,
    pub elsewhere: u64,
    pub first_ns: u64,
    pub last_ns: u64,
    /// Those whom a reader does not know are skipped.
    pub seen: Vec<Seen>,
    pub gates: Vec<Gate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest: Option<Largest>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Largest {
    pub units: u64,
    pub site: String,
    pub stack: u32,
    pub seen: Vec<Seen>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    pub resource: u64,
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub created: String,
    pub capacity: u64,
    pub units: u64,
    pub site: String,
    pub stack: u32,
    pub owned: bool,
    pub is_static: bool,
    pub future: String,
    pub poller: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    pub actor: Actor,
    pub at_ns: u64,
    #[serde(default)]
    pub last_ns: u64,
    /// 0 if not known.
    pub alive_tasks: u64,
    /// 0 if not known.
    #[serde(default)]
    pub newest: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    pub resource: u64,
    pub capacity: u64,
    pub units: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub id: String,
    pub code: String,
    pub verdict: String,
    pub title: String,
    /// The places of `marks`, each once.
    pub sites: Vec<String>,
    pub marks: Vec<Mark>,
    pub notes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    pub since_ns: u64,
    pub resources: Vec<u64>,
    pub actors: Vec<Actor>,
    pub holds: Vec<u64>,
    pub waits: Vec<u64>,
    /// The whole finding as people read it, without source lines.
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    pub site: String,
    pub label: String,
    pub primary: bool,
    #[serde(default)]
    pub stack: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dropped {
    pub stacks: u64,
    pub holds: u64,
    pub waits: u64,
    pub resources: u64,
    pub orders: u64,
}
