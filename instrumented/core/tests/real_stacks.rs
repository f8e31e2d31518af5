//! The relation of paths on stacks as compilers really make them, in whatever profile this test is built with.

use backtrace::Symbol;
use futures::future::{BoxFuture, FutureExt, join_all};
use futures::stream::{FuturesUnordered, StreamExt, iter};
use futures_concurrency::prelude::*;
use holdup_core::path::{Acquired, Relation, relation};
use holdup_core::snapshot::{Frame, Site};
use std::cell::RefCell;
use std::convert::Infallible;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::task::yield_now;
use tower::{ServiceBuilder, ServiceExt, service_fn};

/// A semaphore that has permits enough, and records each acquire as holdup does: at its first poll.
struct Semaphore(tokio::sync::Semaphore);

struct Permit<'a> {
    _inner: tokio::sync::SemaphorePermit<'a>,
    number: usize,
}

#[derive(Clone)]
struct Record {
    stack: Vec<usize>,
    future: usize,
    poller: usize,
}

#[derive(Default)]
struct Books {
    records: Vec<Record>,
    held: Vec<usize>,
    /// Each acquire with each permit that was held when it began.
    pairs: Vec<(usize, usize)>,
}

thread_local!(static BOOKS: RefCell<Books> = RefCell::default());

fn with_books<R>(f: impl FnOnce(&mut Books) -> R) -> R {
    BOOKS.with(|books| f(&mut books.borrow_mut()))
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        with_books(|books| books.held.retain(|held| *held != self.number));
    }
}

struct Acquire<F> {
    inner: F,
    number: Option<usize>,
}

impl<F: Future + Unpin> Future for Acquire<F> {
    type Output = (F::Output, usize);

    #[inline(never)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let future = std::ptr::from_ref(this).addr();
        let poller = cx.waker().data().addr();
        let number = *this.number.get_or_insert_with(|| {
            let mut stack = Vec::new();
            backtrace::trace(|frame| {
                stack.push(frame.ip().addr());
                true
            });
            with_books(|books| {
                let number = books.records.len();
                books.records.push(Record { stack, future, poller });
                books.pairs.extend(books.held.iter().map(|held| (*held, number)));
                number
            })
        });
        Pin::new(&mut this.inner).poll(cx).map(|output| {
            with_books(|books| books.held.push(number));
            (output, number)
        })
    }
}

impl Semaphore {
    async fn acquire(&self) -> Permit<'_> {
        let (inner, number) = Acquire { inner: Box::pin(self.0.acquire()), number: None }.await;
        Permit { _inner: inner.expect("never closed"), number }
    }
}

/// The named frames of a stack without those of this test's own semaphore.
fn frames(stack: &[usize]) -> Vec<Frame> {
    let mut frames = Vec::new();
    for ip in stack {
        let before = frames.len();
        let call = std::ptr::without_provenance_mut(ip.saturating_sub(1));
        backtrace::resolve(call, |symbol: &Symbol| {
            let site = symbol.filename().map(|file| Site {
                file: Arc::from(file.to_string_lossy()),
                line: symbol.lineno().unwrap_or(0),
                column: symbol.colno().unwrap_or(0),
            });
            let function = symbol.name().map(|name| format!("{name:#}")).unwrap_or_default();
            frames.push(Frame {
                function: function.into(),
                site,
                address: *ip as u64,
                inlined: true,
            });
        });
        if let Some(outermost) = frames[before..].last_mut() {
            outermost.inlined = false;
        }
    }
    // holdup's own frames are told by their crate; these are told by what is outside of them.
    let line = |f: &Frame| {
        f.site.as_ref().is_some_and(|s| s.file.ends_with("real_stacks.rs") && s.line < OWN_LINES)
    };
    let own = frames.iter().rposition(line).map_or(0, |at| at + 1);
    frames.drain(..own);
    frames
}

/// Above this line is the semaphore, below it are its users.
const OWN_LINES: u32 = line!();

macro_rules! relations {
    ($shape:ident) => {{
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        BOOKS.with(|books| *books.borrow_mut() = Books::default());
        let semaphore: &'static Semaphore =
            Box::leak(Box::new(Semaphore(tokio::sync::Semaphore::new(50))));
        runtime.block_on(async { tokio::spawn($shape(semaphore)).await }).expect("no panic");
        of_books(stringify!($shape))
    }};
}

fn of_books(shape: &str) -> Vec<Relation> {
    let (records, pairs) = with_books(|books| (books.records.clone(), books.pairs.clone()));
    assert!(!pairs.is_empty(), "{shape} holds and acquires");
    let compare = |(hold, wait): &(usize, usize)| {
        let (h, w) = (&records[*hold], &records[*wait]);
        let (hf, wf) = (frames(&h.stack), frames(&w.stack));
        let acquired = |r: &Record| (r.future as u64, r.poller as u64);
        let found = relation(
            &Acquired { frames: &hf, future: acquired(h).0, poller: acquired(h).1 },
            &Acquired { frames: &wf, future: acquired(w).0, poller: acquired(w).1 },
            !cfg!(debug_assertions),
        );
        (found, hf, wf)
    };
    let compared: Vec<_> = pairs.iter().map(compare).collect();
    for (found, hold, wait) in &compared {
        let short = |frames: &[Frame]| {
            let runtime = |f: &Frame| {
                f.site.as_ref().is_some_and(|s| s.file.contains("src/runtime/task/core.rs"))
            };
            let user = frames.iter().take_while(|f| !runtime(f));
            user.map(|f| {
                format!(
                    "\n    {:x} {} {:?}",
                    f.address,
                    f.function,
                    f.site.as_ref().map(Site::to_string)
                )
            })
            .collect::<String>()
        };
        println!("{shape}: {found:?}\n  hold{}\n  wait{}", short(hold), short(wait));
    }
    compared.into_iter().map(|(found, ..)| found).collect()
}

/// Optimised code without line tables does not tell what was inlined into it, so nothing is said of it.
#[track_caller]
fn all(expected: Relation, found: &[Relation]) {
    let mut lines = false;
    backtrace::trace(|frame| {
        backtrace::resolve_frame(frame, |symbol| {
            lines |= symbol.filename().is_some_and(|f| f.ends_with("real_stacks.rs"));
        });
        !lines
    });
    let expected = if lines || cfg!(debug_assertions) { expected } else { Relation::Unknown };
    assert!(found.iter().all(|relation| *relation == expected), "{found:?}, not all {expected:?}");
}

async fn one_body(s: &Semaphore) {
    let _a = s.acquire().await;
    yield_now().await;
    let _b = s.acquire().await;
}

async fn callee(s: &Semaphore) {
    let _b = s.acquire().await;
    yield_now().await;
}

async fn through_a_callee(s: &Semaphore) {
    let _a = s.acquire().await;
    callee(s).await;
}

async fn get(s: &Semaphore) -> Permit<'_> {
    s.acquire().await
}

async fn returned_guard(s: &Semaphore) {
    let _a = get(s).await;
    callee(s).await;
}

async fn below_a_timeout(s: &Semaphore) {
    let _a = s.acquire().await;
    let _b = tokio::time::timeout(std::time::Duration::from_secs(60), s.acquire()).await;
}

async fn boxed_one_after_the_other(s: &Semaphore) {
    let a: BoxFuture<'_, Permit<'_>> = s.acquire().boxed();
    let _a = a.await;
    let b: BoxFuture<'_, Permit<'_>> = Box::pin(get(s));
    let _b = b.await;
}

async fn handlers_of_select(s: &Semaphore) {
    let _a = tokio::select! { p = s.acquire() => p, () = pending() => unreachable!() };
    tokio::select! { _b = s.acquire() => {}, () = pending() => {} }
}

fn walk(s: &Semaphore, depth: u32) -> BoxFuture<'_, ()> {
    async move {
        let _a = s.acquire().await;
        if depth > 0 {
            walk(s, depth - 1).await;
        }
    }
    .boxed()
}

async fn recursion(s: &Semaphore) {
    walk(s, 2).await;
}

async fn suspended_by_select(s: &Semaphore) {
    let mut w = Box::pin(work(s));
    tokio::select! { () = &mut w => {}, () = yield_now() => { let _p = s.acquire().await; } }
}

#[test]
fn one_thing_after_the_other_is_blocked() {
    all(Relation::Blocked, &relations!(one_body));
    all(Relation::Blocked, &relations!(through_a_callee));
    all(Relation::Blocked, &relations!(returned_guard));
    all(Relation::Blocked, &relations!(below_a_timeout));
    all(Relation::Blocked, &relations!(boxed_one_after_the_other));
    all(Relation::Blocked, &relations!(handlers_of_select));
    all(Relation::Blocked, &relations!(recursion));
    all(Relation::Blocked, &relations!(suspended_by_select));
}

async fn work(s: &Semaphore) {
    let _a = s.acquire().await;
    for _ in 0..5 {
        yield_now().await;
    }
}

async fn joined(s: &Semaphore) {
    tokio::join!(work(s), work(s));
}

async fn joined_blocks(s: &Semaphore) {
    tokio::join!(
        async {
            let _a = s.acquire().await;
            yield_now().await;
            yield_now().await;
        },
        async {
            yield_now().await;
            let _b = s.acquire().await;
        }
    );
}

async fn joined_by_futures(s: &Semaphore) {
    futures::join!(work(s), work(s));
    futures::future::join(work(s), work(s)).await;
}

async fn unordered(s: &Semaphore) {
    let mut set: FuturesUnordered<_> = (0..3).map(|_| work(s)).collect();
    while set.next().await.is_some() {}
}

async fn buffered(s: &Semaphore) {
    iter(0..3).map(|_| work(s)).buffer_unordered(3).collect::<Vec<_>>().await;
}

async fn for_each(s: &Semaphore) {
    iter(0..3).for_each_concurrent(3, |_| work(s)).await;
}

async fn all_joined(s: &Semaphore) {
    join_all((0..3).map(|_| work(s))).await;
}

async fn siblings_of_select(s: &Semaphore) {
    let w = work(s);
    tokio::pin!(w);
    loop {
        tokio::select! {
            () = &mut w => break,
            _p = async { yield_now().await; s.acquire().await } => {}
        }
    }
}

#[test]
fn siblings_are_concurrent() {
    all(Relation::Concurrent, &relations!(joined));
    all(Relation::Concurrent, &relations!(joined_blocks));
    all(Relation::Concurrent, &relations!(joined_by_futures));
    all(Relation::Concurrent, &relations!(unordered));
    all(Relation::Concurrent, &relations!(buffered));
    all(Relation::Concurrent, &relations!(for_each));
    all(Relation::Concurrent, &relations!(all_joined));
    all(Relation::Concurrent, &relations!(siblings_of_select));
}

async fn accumulated(s: &Semaphore) {
    let mut permits = Vec::new();
    for _ in 0..3 {
        permits.push(s.acquire().await);
        yield_now().await;
    }
}

async fn accumulated_by_a_callee(s: &Semaphore) {
    let mut permits = Vec::new();
    for _ in 0..2 {
        permits.push(get(s).await);
    }
}

#[test]
fn a_loop_is_repeated() {
    all(Relation::Repeated, &relations!(accumulated));
    all(Relation::Repeated, &relations!(accumulated_by_a_callee));
}

async fn branches_of_join(s: &Semaphore) {
    tokio::join!(s.acquire(), async {
        yield_now().await;
        callee(s).await;
    });
}

async fn branches_of_join_all(s: &Semaphore) {
    join_all((0..3).map(|_| s.acquire())).await;
}

#[test]
fn a_branch_that_is_the_acquire_keeps_its_guard() {
    all(Relation::Blocked, &relations!(branches_of_join));
    all(Relation::Blocked, &relations!(branches_of_join_all));
}

async fn one_after_the_other_in_a_stream(s: &Semaphore) {
    let _a = s.acquire().await;
    iter(0..2).then(|_| callee(s)).collect::<Vec<_>>().await;
    iter(0..2).for_each(|_| callee(s)).await;
}

async fn a_body_between_the_rounds_of_buffered(s: &Semaphore) {
    let _a = s.acquire().await;
    let mut stream = iter(0..1).map(|_| yield_now()).buffered(2);
    while stream.next().await.is_some() {
        callee(s).await;
    }
}

trait Step {
    fn run<'a>(&'a self, s: &'a Semaphore) -> BoxFuture<'a, ()>;
}

struct First;

impl Step for First {
    fn run<'a>(&'a self, s: &'a Semaphore) -> BoxFuture<'a, ()> {
        Box::pin(callee(s))
    }
}

async fn through_a_dyn_trait(s: &Semaphore) {
    let step: Box<dyn Step + Send + Sync> = Box::new(First);
    let _a = s.acquire().await;
    step.run(s).await;
}

async fn below_one_timeout(s: &Semaphore) {
    let both = async {
        let _a = s.acquire().await;
        callee(s).await;
    };
    let _ = tokio::time::timeout(std::time::Duration::from_secs(60), both).await;
}

#[test]
fn streams_boxes_and_timeouts_are_one_after_the_other() {
    all(Relation::Blocked, &relations!(one_after_the_other_in_a_stream));
    all(Relation::Blocked, &relations!(a_body_between_the_rounds_of_buffered));
    all(Relation::Blocked, &relations!(through_a_dyn_trait));
    all(Relation::Blocked, &relations!(below_one_timeout));
}

async fn in_order(s: &Semaphore) {
    iter(0..3).map(|_| work(s)).buffered(3).collect::<Vec<_>>().await;
}

#[test]
fn children_of_buffered_are_concurrent() {
    all(Relation::Concurrent, &relations!(in_order));
}

#[async_trait::async_trait]
trait Store {
    async fn save(&self, s: &Semaphore);
}

#[async_trait::async_trait]
impl Store for First {
    async fn save(&self, s: &Semaphore) {
        let _b = s.acquire().await;
        yield_now().await;
    }
}

async fn through_async_trait(s: &Semaphore) {
    let store: Box<dyn Store + Send + Sync> = Box::new(First);
    let _a = s.acquire().await;
    store.save(s).await;
}

async fn through_a_tower_stack(s: &'static Semaphore) {
    let handler = service_fn(move |()| async move {
        callee(s).await;
        Ok::<_, Infallible>(())
    });
    let service = ServiceBuilder::new().boxed_clone().concurrency_limit(8).service(handler);
    let _a = s.acquire().await;
    service.oneshot(()).await.expect("infallible");
}

#[test]
fn async_traits_and_tower_stacks_are_one_after_the_other() {
    all(Relation::Blocked, &relations!(through_async_trait));
    all(Relation::Blocked, &relations!(through_a_tower_stack));
}

async fn requests_of_a_tower_stack(s: &'static Semaphore) {
    let handler = service_fn(move |()| async move {
        work(s).await;
        Ok::<_, Infallible>(())
    });
    let service = ServiceBuilder::new().concurrency_limit(8).service(handler);
    let _ = tokio::join!(service.clone().oneshot(()), service.oneshot(()));
}

async fn joined_by_futures_concurrency(s: &Semaphore) {
    (work(s), work(s)).join().await;
}

async fn joined_in_an_array(s: &Semaphore) {
    [work(s), work(s)].join().await;
}

async fn merged_by_futures_concurrency(s: &Semaphore) {
    let streams = [0, 1].map(|n| Box::pin(iter(n..n + 1).then(|_| work(s))));
    let mut merged = streams.merge();
    while merged.next().await.is_some() {}
}

#[test]
fn requests_and_futures_concurrency_are_concurrent() {
    all(Relation::Concurrent, &relations!(requests_of_a_tower_stack));
    all(Relation::Concurrent, &relations!(joined_by_futures_concurrency));
    all(Relation::Concurrent, &relations!(merged_by_futures_concurrency));
    // Two children of one type, with wakers that optimised code makes in the same place: then it is not known.
    let array = relations!(joined_in_an_array);
    let known = |relation| match relation {
        Relation::Concurrent => true,
        relation => relation == Relation::Unknown && !cfg!(debug_assertions),
    };
    assert!(array.iter().all(|relation| known(*relation)), "{array:?}");
}

async fn rounds_of_select(s: &Semaphore) {
    let _a = s.acquire().await;
    for _ in 0..2 {
        tokio::select! {
            _b = s.acquire() => {}
            () = pending() => {}
        }
    }
}

#[test]
fn the_rounds_of_a_select_loop_come_after_what_was_taken_before() {
    all(Relation::Blocked, &relations!(rounds_of_select));
}

/// In a `LocalSet`, on the task and on the root future.
fn of_local_set(
    body: impl AsyncFnOnce(&'static Semaphore) + 'static,
    spawned: bool,
) -> Vec<Relation> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    BOOKS.with(|books| *books.borrow_mut() = Books::default());
    let semaphore: &'static Semaphore =
        Box::leak(Box::new(Semaphore(tokio::sync::Semaphore::new(50))));
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async move {
        if spawned {
            tokio::task::spawn_local(async move { body(semaphore).await }).await.expect("no panic");
        } else {
            body(semaphore).await;
        }
    });
    of_books("of_local_set")
}

#[test]
fn a_local_set_changes_nothing() {
    for spawned in [true, false] {
        all(Relation::Blocked, &of_local_set(async |s| through_a_callee(s).await, spawned));
        all(Relation::Concurrent, &of_local_set(async |s| joined(s).await, spawned));
    }
}
