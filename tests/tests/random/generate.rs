//! Programs made from a number: what they do is random, that they end is not.
//!
//! The resources of a program are numbered, and whoever holds one waits only for those with higher numbers, also
//! through others: a task that is waited for, a branch of a join, the receiver of a channel. What nobody waits for
//! may begin anew. Every future is polled to its end or dropped, and every permit comes back. So nothing can get
//! stuck, whatever the schedule, and no order is ever taken both ways.

use crate::fault::Fault;
use crate::program::{Block, Entry, How, Op, Program, Shape, Together};
use std::sync::Arc;

/// Where the numbers come from: splitmix64, so that a seed means the same everywhere.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From `from` up to, and without, `to`.
    fn within(&mut self, from: u64, to: u64) -> u64 {
        from + self.next() % (to - from).max(1)
    }

    fn index(&mut self, from: usize, to: usize) -> usize {
        self.within(from as u64, to as u64) as usize
    }

    fn percent(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }
}

/// Where in the program the generator is.
#[derive(Clone, Copy)]
struct Place {
    /// The lowest number that may be waited for.
    floor: usize,
    depth: u32,
    /// It may never be reached, or be dropped before its end, or nobody waits for its end.
    sheltered: bool,
}

impl Place {
    fn deeper(self) -> Place {
        Place { depth: self.depth + 1, ..self }
    }

    fn above(self, at: usize) -> Place {
        Place { floor: self.floor.max(at + 1), ..self.deeper() }
    }

    fn sheltered(self) -> Place {
        Place { sheltered: true, ..self.deeper() }
    }

    /// Nobody waits for it, and it holds nothing.
    fn alone(self) -> Place {
        Place { floor: 0, sheltered: true, ..self.deeper() }
    }
}

struct Generator {
    random: Random,
    shapes: Vec<Shape>,
    /// Steps that are left to the task.
    budget: u32,
    /// One hold of a program may be long.
    long: bool,
    fault: Option<Fault>,
}

impl Program {
    /// The program of this number, with a fault somewhere if one is given.
    pub(crate) fn new(seed: u64, fault: Option<Fault>) -> Program {
        let mut random = Random::new(seed);
        let count = random.index(2, 7);
        let shapes = (0..count).map(|_| shape(&mut random)).collect();
        let long = random.percent(40);
        let threads = if random.percent(40) { 0 } else { random.index(1, 4) };
        let entry = match random.within(0, 4) {
            0 => Entry::Root,
            1 if threads == 0 => Entry::Local,
            _ => Entry::Task,
        };
        let mut generator = Generator { random, shapes, budget: 0, long, fault };
        let receivers = (0..count).map(|at| generator.receiver(at)).collect();
        let place = Place { floor: 0, depth: 0, sheltered: false };
        let tasks = generator.random.index(3, 9);
        let tasks = (0..tasks).map(|_| generator.task(place.deeper())).collect();
        let mut main = vec![Op::Spawn(tasks)];
        // Whatever else the program did: the fault is in it.
        if let Some(fault) = generator.fault.take() {
            main.push(Op::Fault(fault));
        }
        Program { threads, entry, shapes: generator.shapes, receivers, main: main.into() }
    }
}

fn shape(random: &mut Random) -> Shape {
    match random.within(0, 10) {
        0..5 => Shape::Semaphore(random.within(1, 4) as u32),
        5..7 => Shape::Mutex,
        7..9 => Shape::RwLock,
        _ => Shape::Channel(random.index(1, 4)),
    }
}

impl Generator {
    fn task(&mut self, place: Place) -> Block {
        self.budget = self.random.within(8, 50) as u32;
        let mut ops = Vec::new();
        while self.budget > 0 {
            ops.push(self.op(place));
        }
        ops.into()
    }

    fn block(&mut self, place: Place) -> Block {
        let steps = self.random.within(1, 5);
        (0..steps).map(|_| self.op(place)).collect()
    }

    fn blocks(&mut self, place: Place) -> Vec<Block> {
        let count = self.random.within(2, 5);
        (0..count).map(|_| self.block(place)).collect()
    }

    /// Takes a message, and sometimes holds something for a moment.
    fn receiver(&mut self, at: usize) -> Block {
        let mut ops = vec![Op::Yield];
        let next = at + 1;
        if next < self.shapes.len() && self.random.percent(50) {
            let body = Arc::from([self.pause()]);
            ops.extend(self.hold(next, body));
        }
        ops.into()
    }

    fn pause(&mut self) -> Op {
        match self.random.within(0, 10) {
            0..3 => Op::Yield,
            3..5 => Op::Work(self.random.within(50, 400)),
            9 if self.long => {
                self.long = false;
                Op::Sleep(self.random.within(200, 800))
            }
            _ => Op::Sleep(self.random.within(1, 20)),
        }
    }

    fn hold(&mut self, at: usize, body: Block) -> Option<Op> {
        let random = &mut self.random;
        Some(match self.shapes[at] {
            Shape::Channel(_) => return None,
            Shape::Semaphore(permits) => {
                let many = random.within(1, u64::from(permits) + 1) as u32;
                let how = match random.within(0, 5) {
                    0 => How::Many(many),
                    1 => How::Owned,
                    2 => How::OwnedMany(many),
                    3 if permits > 1 => How::Less(random.within(1, u64::from(permits)) as u32),
                    _ => How::Plain,
                };
                Op::Hold(at, how, body)
            }
            Shape::Mutex => {
                Op::Hold(at, if random.percent(30) { How::Owned } else { How::Plain }, body)
            }
            Shape::RwLock => {
                let how = match random.within(0, 6) {
                    0 => How::Many(0),
                    1 => How::OwnedMany(0),
                    2 => How::Owned,
                    3 => How::Less(0),
                    _ => How::Plain,
                };
                Op::Hold(at, how, body)
            }
        })
    }

    fn op(&mut self, place: Place) -> Op {
        if self.budget == 0 || place.depth > 6 {
            return self.pause();
        }
        self.budget -= 1;
        if !place.sheltered
            && self.random.percent(10)
            && let Some(fault) = self.fault.take()
        {
            return Op::Fault(fault);
        }
        let free = place.floor < self.shapes.len();
        let at = self.random.index(place.floor, self.shapes.len());
        match self.random.within(0, 44) {
            0..12 if free => match self.shapes[at] {
                Shape::Channel(_) => Op::Send(at),
                _ => {
                    let body = self.block(place.above(at));
                    self.hold(at, body).unwrap_or(Op::Yield)
                }
            },
            12..15 => {
                // Any number: nobody waits here. What is done with it must not wait for less.
                let any = self.random.index(0, self.shapes.len());
                Op::Try(any, self.block(place.above(any).sheltered()))
            }
            15..19 => {
                let together = match self.random.within(0, 6) {
                    0 => Together::Join,
                    1 => Together::JoinAll,
                    2 => Together::Unordered,
                    3 => Together::UnorderedWithPauses(self.random.within(1, 10)),
                    4 => Together::Buffered(self.random.index(1, 4)),
                    _ => Together::ForEach(self.random.index(1, 4)),
                };
                Op::Together(together, self.blocks(place.deeper()))
            }
            19..21 => Op::Race(self.block(place.sheltered()), self.block(place.sheltered())),
            21..23 => Op::Aside {
                body: self.block(place.deeper()),
                every: self.random.within(5, 40),
                pause: self.random.within(0, 20),
            },
            23..25 => Op::Timeout(self.random.within(1, 60), self.block(place.sheltered())),
            25..27 => Op::Spawn(self.blocks(place.deeper())),
            27..29 => Op::Abort(self.random.within(0, 30), self.block(place.sheltered())),
            29 => Op::Detach(self.block(place.alone())),
            30..32 if free => {
                let times = self.random.within(1, 5);
                Op::HandOff { at, times, body: self.block(place.above(at).sheltered()) }
            }
            32 if free => Op::Blocking {
                at,
                millis: self.random.within(0, 20),
                awaited: self.random.percent(50),
            },
            33 if free => Op::BlockingAcquire { at, millis: self.random.within(0, 10) },
            34 => Op::Latch(self.block(place.sheltered())),
            35 if free => Op::Credit(at, self.random.within(1, 15)),
            36 if free => {
                let millis = self.random.within(10, 30);
                Op::Retry(at, millis, self.block(place.above(at).sheltered()))
            }
            37 if free => Op::Spin(at, self.block(place.above(at).sheltered())),
            38 => Op::Static(self.random.within(0, 10)),
            39 => Op::Close(self.random.within(1, 10)),
            _ => self.pause(),
        }
    }
}
