//! Does what a program says, with real tasks and real semaphores.

use crate::acquire::{
    blocking, blocking_acquire, close, credit, hand_off, hold, hold_static, latch, retry, send,
    spin, try_hold,
};
use crate::fault;
use crate::program::{Block, Entry, Op, Program, Shape, Together};
use futures::future::{self, BoxFuture};
use futures::stream::{self, FuturesUnordered, StreamExt};
use holdup::sync::{Mutex, RwLock, Semaphore, mpsc};
use std::pin::pin;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::{JoinHandle, LocalSet, spawn, spawn_local, yield_now};
use tokio::time::{sleep, timeout};

/// What the tasks of a program share.
pub(crate) struct Env {
    resources: Vec<Resource>,
    /// Tasks belong to the thread's own set.
    local: bool,
    /// Tasks that only the end of the program waits for.
    detached: StdMutex<Vec<JoinHandle<()>>>,
}

pub(crate) enum Resource {
    Semaphore(Arc<Semaphore>),
    Mutex(Arc<Mutex<u32>>),
    RwLock(Arc<RwLock<u32>>),
    Channel(mpsc::Sender<()>, StdMutex<Option<mpsc::Receiver<()>>>),
}

impl Env {
    pub(crate) fn new(program: &Program) -> Arc<Env> {
        let resource = |shape: &Shape| match *shape {
            Shape::Semaphore(permits) => {
                Resource::Semaphore(Arc::new(Semaphore::new(permits as usize)))
            }
            Shape::Mutex => Resource::Mutex(Arc::new(Mutex::new(0))),
            Shape::RwLock => Resource::RwLock(Arc::new(RwLock::new(0))),
            Shape::Channel(room) => {
                let (sender, receiver) = mpsc::channel(room);
                Resource::Channel(sender, StdMutex::new(Some(receiver)))
            }
        };
        let resources = program.shapes.iter().map(resource).collect();
        let local = matches!(program.entry, Entry::Local);
        Arc::new(Env { resources, local, detached: StdMutex::default() })
    }

    pub(crate) fn spawn(&self, body: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        if self.local { spawn_local(body) } else { spawn(body) }
    }

    pub(crate) fn detach(&self, task: JoinHandle<()>) {
        self.detached.lock().unwrap_or_else(PoisonError::into_inner).push(task);
    }
}

/// Runs the program to its end, on this thread and those of a runtime of its own.
pub(crate) fn run(program: &Program, env: &Arc<Env>) {
    let mut builder = match program.threads {
        0 => tokio::runtime::Builder::new_current_thread(),
        threads => {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder.worker_threads(threads);
            builder
        }
    };
    let runtime = builder.enable_all().build().expect("a runtime");
    let whole = whole(Arc::clone(env), Arc::clone(&program.main), program.receivers.clone());
    match program.entry {
        Entry::Root => runtime.block_on(whole),
        Entry::Task => runtime.block_on(async { spawn(whole).await.expect("no panic") }),
        Entry::Local => LocalSet::new().block_on(&runtime, async {
            spawn_local(whole).await.expect("no panic");
        }),
    }
}

async fn whole(env: Arc<Env>, main: Block, receivers: Vec<Block>) {
    let mut receiving = Vec::new();
    for (resource, body) in env.resources.iter().zip(receivers) {
        if let Resource::Channel(_, receiver) = resource {
            let receiver = receiver.lock().unwrap_or_else(PoisonError::into_inner).take();
            let receiver = receiver.expect("nobody else takes it");
            receiving.push(env.spawn(receive(Arc::clone(&env), receiver, body)));
        }
    }
    block(&env, &main).await;
    // Those that are detached may detach others.
    loop {
        let task = env.detached.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Some(task) = task else { break };
        task.await.expect("no panic");
    }
    for task in receiving {
        task.abort();
        let _ = task.await;
    }
}

async fn receive(env: Arc<Env>, mut receiver: mpsc::Receiver<()>, body: Block) {
    while receiver.recv().await.is_some() {
        block(&env, &body).await;
    }
}

/// The block as a future of its own.
fn block(env: &Arc<Env>, ops: &Block) -> BoxFuture<'static, ()> {
    let (env, ops) = (Arc::clone(env), Arc::clone(ops));
    Box::pin(async move {
        for op in ops.iter() {
            step(&env, op).await;
        }
    })
}

async fn step(env: &Arc<Env>, op: &Op) {
    let millis = Duration::from_millis;
    match op {
        Op::Yield => yield_now().await,
        Op::Sleep(time) => sleep(millis(*time)).await,
        Op::Work(micros) => work(*micros),
        Op::Hold(at, how, body) => hold(&env.resources[*at], *how, block(env, body)).await,
        Op::Try(at, body) => try_hold(&env.resources[*at], block(env, body)).await,
        Op::Together(how, bodies) => {
            together(*how, bodies.iter().map(|body| block(env, body)).collect()).await;
        }
        Op::Race(a, b) => race(block(env, a), block(env, b)).await,
        Op::Aside { body, every, pause } => {
            aside(block(env, body), millis(*every), millis(*pause)).await;
        }
        Op::Timeout(time, body) => {
            let _ = timeout(millis(*time), block(env, body)).await;
        }
        Op::Spawn(bodies) => {
            let tasks: Vec<_> = bodies.iter().map(|body| env.spawn(block(env, body))).collect();
            for task in tasks {
                task.await.expect("no panic");
            }
        }
        Op::Abort(after, body) => {
            let task = env.spawn(block(env, body));
            sleep(millis(*after)).await;
            task.abort();
            let _ = task.await;
        }
        Op::Detach(body) => env.detach(env.spawn(block(env, body))),
        Op::HandOff { at, times, body } => {
            for _ in 0..*times {
                hand_off(env, &env.resources[*at], block(env, body)).await;
            }
        }
        Op::Blocking { at, millis: time, awaited } => {
            blocking(env, &env.resources[*at], millis(*time), *awaited).await;
        }
        Op::BlockingAcquire { at, millis: time } => {
            blocking_acquire(&env.resources[*at], millis(*time)).await;
        }
        Op::Latch(body) => latch(env, block(env, body)).await,
        Op::Credit(at, time) => credit(&env.resources[*at], millis(*time)).await,
        Op::Send(at) => send(&env.resources[*at]).await,
        Op::Retry(at, time, body) => {
            retry(&env.resources[*at], millis(*time), block(env, body)).await;
        }
        Op::Spin(at, body) => spin(&env.resources[*at], block(env, body)).await,
        Op::Static(time) => hold_static(millis(*time)).await,
        Op::Close(after) => close(env, millis(*after)).await,
        Op::Fault(fault) => fault::commit(*fault).await,
    }
}

/// Keeps the thread busy, as computing does.
fn work(micros: u64) {
    let end = Instant::now() + Duration::from_micros(micros);
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

async fn together(how: Together, mut bodies: Vec<BoxFuture<'static, ()>>) {
    match how {
        Together::Join => {
            let (first, last) = (bodies.swap_remove(0), bodies.pop().expect("there are two"));
            tokio::join!(first, future::join_all(bodies), last);
        }
        Together::JoinAll => {
            future::join_all(bodies).await;
        }
        Together::Unordered => {
            let mut set: FuturesUnordered<_> = bodies.into_iter().collect();
            while set.next().await.is_some() {}
        }
        Together::UnorderedWithPauses(millis) => {
            let mut set: FuturesUnordered<_> = bodies.into_iter().collect();
            while set.next().await.is_some() {
                sleep(Duration::from_millis(millis)).await;
            }
        }
        Together::Buffered(n) => {
            stream::iter(bodies).buffer_unordered(n).for_each(|()| future::ready(())).await;
        }
        Together::ForEach(n) => stream::iter(bodies).for_each_concurrent(n, |body| body).await,
    }
}

async fn race(a: BoxFuture<'static, ()>, b: BoxFuture<'static, ()>) {
    tokio::select! {
        () = a => {}
        () = b => {}
    }
}

async fn aside(body: BoxFuture<'static, ()>, every: Duration, pause: Duration) {
    let mut body = pin!(body);
    loop {
        tokio::select! {
            () = &mut body => return,
            () = sleep(every) => sleep(pause).await,
        }
    }
}
