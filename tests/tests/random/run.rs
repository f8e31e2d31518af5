//! Does what a program says, with real tasks and real semaphores.

use crate::fault;
use crate::program::{Block, Entry, How, Op, Program, Shape, Together};
use futures::future::{self, BoxFuture};
use futures::stream::{self, FuturesUnordered, StreamExt};
use holdup::sync::{Mutex, RwLock, Semaphore, mpsc};
use std::pin::pin;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::{JoinHandle, LocalSet, spawn, spawn_blocking, yield_now};
use tokio::time::{sleep, timeout};

/// What the tasks of a program share.
pub(crate) struct Env {
    resources: Vec<Resource>,
    /// Tasks that only the end of the program waits for.
    detached: StdMutex<Vec<JoinHandle<()>>>,
}

enum Resource {
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
        Arc::new(Env { resources, detached: StdMutex::default() })
    }

    fn detach(&self, task: JoinHandle<()>) {
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
            tokio::task::spawn_local(whole).await.expect("no panic");
        }),
    }
}

async fn whole(env: Arc<Env>, main: Block, receivers: Vec<Block>) {
    let mut receiving = Vec::new();
    for (resource, body) in env.resources.iter().zip(receivers) {
        if let Resource::Channel(_, receiver) = resource {
            let receiver = receiver.lock().unwrap_or_else(PoisonError::into_inner).take();
            let receiver = receiver.expect("nobody else takes it");
            receiving.push(spawn(receive(Arc::clone(&env), receiver, body)));
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
            let tasks: Vec<_> = bodies.iter().map(|body| spawn(block(env, body))).collect();
            for task in tasks {
                task.await.expect("no panic");
            }
        }
        Op::Abort(after, body) => {
            let task = spawn(block(env, body));
            sleep(millis(*after)).await;
            task.abort();
            let _ = task.await;
        }
        Op::Detach(body) => env.detach(spawn(block(env, body))),
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
        Op::Latch(body) => latch(block(env, body)).await,
        Op::Credit(at, time) => credit(&env.resources[*at], millis(*time)).await,
        Op::Send(at) => send(&env.resources[*at]).await,
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

const OPEN: &str = "nobody closes it";

async fn hold(resource: &Resource, how: How, body: BoxFuture<'static, ()>) {
    match resource {
        Resource::Semaphore(semaphore) => hold_permit(semaphore, how, body).await,
        Resource::Mutex(mutex) => match how {
            How::Owned => {
                let mut guard = Arc::clone(mutex).lock_owned().await;
                *guard += 1;
                body.await;
            }
            _ => {
                let mut guard = mutex.lock().await;
                *guard += 1;
                body.await;
            }
        },
        Resource::RwLock(lock) => hold_read_or_write(lock, how, body).await,
        Resource::Channel(..) => unreachable!("nobody holds a channel"),
    }
}

async fn hold_permit(semaphore: &Arc<Semaphore>, how: How, body: BoxFuture<'static, ()>) {
    match how {
        How::Plain => {
            let _permit = semaphore.acquire().await.expect(OPEN);
            body.await;
        }
        How::Owned => {
            let _permit = Arc::clone(semaphore).acquire_owned().await.expect(OPEN);
            body.await;
        }
        How::Many(n) => {
            let _permits = semaphore.acquire_many(n).await.expect(OPEN);
            body.await;
        }
        How::OwnedMany(n) => {
            let _permits = Arc::clone(semaphore).acquire_many_owned(n).await.expect(OPEN);
            body.await;
        }
        How::Less(n) => {
            let mut permits = semaphore.acquire_many(n + 1).await.expect(OPEN);
            yield_now().await;
            drop(permits.split(n as usize));
            body.await;
        }
    }
}

async fn hold_read_or_write(lock: &Arc<RwLock<u32>>, how: How, body: BoxFuture<'static, ()>) {
    match how {
        How::Plain => {
            let _guard = lock.read().await;
            body.await;
        }
        How::Owned => {
            let _guard = Arc::clone(lock).read_owned().await;
            body.await;
        }
        How::Many(_) => {
            let mut guard = lock.write().await;
            *guard += 1;
            body.await;
        }
        How::OwnedMany(_) => {
            let mut guard = Arc::clone(lock).write_owned().await;
            *guard += 1;
            body.await;
        }
        How::Less(_) => {
            let mut guard = lock.write().await;
            *guard += 1;
            let _guard = guard.downgrade();
            body.await;
        }
    }
}

async fn try_hold(resource: &Resource, body: BoxFuture<'static, ()>) {
    match resource {
        Resource::Semaphore(semaphore) => {
            if let Ok(_permit) = semaphore.try_acquire() {
                body.await;
            }
        }
        Resource::Mutex(mutex) => {
            if let Ok(_guard) = mutex.try_lock() {
                body.await;
            }
        }
        Resource::RwLock(lock) => {
            if let Ok(_guard) = lock.try_write() {
                body.await;
            }
        }
        Resource::Channel(sender, _) => {
            let _ = sender.try_send(());
        }
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

async fn hand_off(env: &Env, resource: &Resource, body: BoxFuture<'static, ()>) {
    let task = match resource {
        Resource::Semaphore(semaphore) => {
            let permit = Arc::clone(semaphore).acquire_owned().await.expect(OPEN);
            spawn(async move {
                body.await;
                drop(permit);
            })
        }
        Resource::Mutex(mutex) => {
            let guard = Arc::clone(mutex).lock_owned().await;
            spawn(async move {
                body.await;
                drop(guard);
            })
        }
        Resource::RwLock(lock) => {
            let guard = Arc::clone(lock).read_owned().await;
            spawn(async move {
                body.await;
                drop(guard);
            })
        }
        Resource::Channel(sender, _) => {
            let Ok(permit) = sender.clone().reserve_owned().await else { return };
            spawn(async move {
                body.await;
                permit.send(());
            })
        }
    };
    env.detach(task);
}

async fn blocking(env: &Env, resource: &Resource, time: Duration, awaited: bool) {
    let thread = match resource {
        Resource::Semaphore(semaphore) => {
            let permit = Arc::clone(semaphore).acquire_owned().await.expect(OPEN);
            spawn_blocking(move || {
                std::thread::sleep(time);
                drop(permit);
            })
        }
        Resource::Mutex(mutex) => {
            let guard = Arc::clone(mutex).lock_owned().await;
            spawn_blocking(move || {
                std::thread::sleep(time);
                drop(guard);
            })
        }
        _ => return,
    };
    if awaited {
        thread.await.expect("no panic");
    } else {
        env.detach(thread);
    }
}

async fn blocking_acquire(resource: &Resource, time: Duration) {
    let thread = match resource {
        Resource::Mutex(mutex) => {
            let mutex = Arc::clone(mutex);
            spawn_blocking(move || {
                let _guard = mutex.blocking_lock();
                std::thread::sleep(time);
            })
        }
        Resource::RwLock(lock) => {
            let lock = Arc::clone(lock);
            spawn_blocking(move || {
                let _guard = lock.blocking_write();
                std::thread::sleep(time);
            })
        }
        _ => return,
    };
    thread.await.expect("no panic");
}

/// Adds permits when it is dropped: after the work, or when that is cancelled.
struct AddLater(Arc<Semaphore>, usize);

impl Drop for AddLater {
    fn drop(&mut self) {
        self.0.add_permits(self.1);
    }
}

async fn latch(body: BoxFuture<'static, ()>) {
    let done = Arc::new(Semaphore::new(0));
    let later = AddLater(Arc::clone(&done), 1);
    let task = spawn(async move {
        body.await;
        drop(later);
    });
    done.acquire().await.expect(OPEN).forget();
    task.await.expect("no panic");
}

async fn credit(resource: &Resource, time: Duration) {
    let Resource::Semaphore(semaphore) = resource else { return };
    semaphore.acquire().await.expect(OPEN).forget();
    let _later = AddLater(Arc::clone(semaphore), 1);
    sleep(time).await;
}

async fn send(resource: &Resource) {
    if let Resource::Channel(sender, _) = resource {
        // At the program's end somebody may be left who sends to nobody.
        let _ = sender.send(()).await;
    }
}
