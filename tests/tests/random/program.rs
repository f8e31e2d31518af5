//! What a random program consists of.

use crate::fault::Fault;
use std::sync::Arc;

/// A few steps, one after the other.
pub(crate) type Block = Arc<[Op]>;

/// What the tasks compete for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    Semaphore(u32),
    Mutex,
    RwLock,
    /// The task that receives from it does this with each message, waiting only for what has a higher number.
    Channel(usize),
}

/// How something is acquired.
#[derive(Clone, Copy, Debug)]
pub(crate) enum How {
    Plain,
    Owned,
    /// So many at once; of a lock for reading and writing, all.
    Many(u32),
    OwnedMany(u32),
    /// Some are given back before the rest; a write lock becomes a read lock.
    Less(u32),
}

/// How futures are polled side by side.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Together {
    Join,
    JoinAll,
    Unordered,
    /// The set is left alone for so many milliseconds after each that ends.
    UnorderedWithPauses(u64),
    Buffered(usize),
    ForEach(usize),
}

/// A step.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Yield,
    /// Milliseconds.
    Sleep(u64),
    /// Keeps the thread for so many microseconds.
    Work(u64),
    /// Holds it while the block runs.
    Hold(usize, How, Block),
    /// The same if it is free.
    Try(usize, Block),
    Together(Together, Vec<Block>),
    /// The one that ends first drops the other.
    Race(Block, Block),
    /// Polled by reference, looked away from every so many milliseconds to do something for so many.
    Aside {
        body: Block,
        every: u64,
        pause: u64,
    },
    /// Given up after so many milliseconds.
    Timeout(u64, Block),
    /// Tasks that are waited for.
    Spawn(Vec<Block>),
    /// A task that is aborted after so many milliseconds.
    Abort(u64, Block),
    /// A task that nobody waits for until the program ends.
    Detach(Block),
    /// Acquires, again and again, and gives each permit to a task of its own.
    HandOff {
        at: usize,
        times: u64,
        body: Block,
    },
    /// A permit goes to a blocking thread for so many milliseconds.
    Blocking {
        at: usize,
        millis: u64,
        awaited: bool,
    },
    /// A blocking thread acquires itself.
    BlockingAcquire {
        at: usize,
        millis: u64,
    },
    /// Waits on a semaphore of none until a task, having run the block, adds one.
    Latch(Block),
    /// Forgets a permit, and adds it back after so many milliseconds, come what may.
    Credit(usize, u64),
    /// Into the channel.
    Send(usize),
    /// Holds what it asks for again and again, for so many milliseconds each time, until it gets it.
    Retry(usize, u64, Block),
    /// Looks again and again whether it is free.
    Spin(usize, Block),
    /// A semaphore that all programs share, for so many milliseconds, with nothing else to be waited for.
    Static(u64),
    /// Tasks wait in vain, because the semaphore is closed after so many milliseconds.
    Close(u64),
    Fault(Fault),
}

/// What runs the main block.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entry {
    Root,
    Task,
    Local,
}

/// All of a program.
#[derive(Debug)]
pub(crate) struct Program {
    /// 0 runs all on the thread that started it.
    pub(crate) threads: usize,
    pub(crate) entry: Entry,
    pub(crate) shapes: Vec<Shape>,
    /// What the receiver of each channel does with each message.
    pub(crate) receivers: Vec<Block>,
    pub(crate) main: Block,
}
