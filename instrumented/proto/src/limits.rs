//! How large things may be on the wire.
//!
//! Every string and list of a record is cut to one of these limits when it is sent. The largest record then
//! is a stack, of about half a MiB, and a message is closed when the next record would not fit into
//! [`PART`]: so no message reaches [`MESSAGE`], however many records there are and whatever their names are.

use std::time::Duration;

/// The largest message that is sent, in bytes. Clients refuse larger ones.
pub const MESSAGE: usize = 1024 * 1024;
/// The largest request that the service reads, in bytes.
pub const REQUEST: usize = 64 * 1024;
/// A part or page is closed before it grows larger than this many bytes, unless one record alone does.
pub const PART: usize = 256 * 1024;

/// Bytes of a resource's name.
pub const NAME: usize = 512;
/// Bytes of an actor's name.
pub const ACTOR_NAME: usize = 256;
/// Bytes of a file's path.
pub const FILE: usize = 1024;
/// Bytes of a function's name.
pub const FUNCTION: usize = 1024;
/// Bytes of a sentence: a finding's title, label, note or help.
pub const SENTENCE: usize = 2048;
/// Bytes of a string about the process.
pub const PROCESS: usize = 4096;

/// Frames of a stack, and its addresses.
pub const FRAMES: usize = 256;
/// Marks of a finding, and its notes.
pub const MARKS: usize = 64;
/// Resources, actors, holds or waits that one finding lists.
pub const PARTIES: usize = 256;
/// Flows of a resource, and its streaks.
pub const FLOWS: usize = 64;
/// Actors that an order names, and its gates.
pub const SEEN: usize = 64;

/// Records on a page of holds or waits.
pub const PAGE: usize = 1000;
/// Stacks asked for in one call.
pub const STACKS: usize = 256;
/// Resources in a watch; of more, those with waits and holds are preferred.
pub const WATCHED: usize = 20_000;
/// Findings in a picture.
pub const FINDINGS: usize = 100;

/// The time between two pictures of a watch, unless the client asks for another.
pub const INTERVAL: Duration = Duration::from_millis(250);
/// The shortest time between two pictures of a watch.
pub const INTERVAL_MIN: Duration = Duration::from_millis(50);
/// The longest time between two pictures of a watch.
pub const INTERVAL_MAX: Duration = Duration::from_secs(10);
