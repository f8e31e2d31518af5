//! The loop: events in, state on, actions out, a picture on the screen.

use crate::app::{Action, Event, State, update};
use crate::message::{Message, Request};
use crate::program::{self, LOOK, Output, Program, SERVES_WITHIN};
use crate::source::{self, Sink};
use crate::terminal::{self, Guard};
use crate::view;
use holdup_proto::client::{Client, Target};
use ratatui::Terminal;
use ratatui::backend::Backend;
use std::ffi::OsString;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

/// Time passes on the screen in these steps.
const TICK: Duration = Duration::from_millis(250);
/// Events that may wait; whoever sends more waits himself.
const EVENTS: usize = 1_024;
/// Events that are taken together before the screen is drawn.
const BATCH: usize = 256;
/// Requests that may wait.
const REQUESTS: usize = 256;
/// Lines of a failed program that are shown after the app has ended.
const LAST_LINES: usize = 12;

/// An event and when it happened, on the app's clock.
pub type Stamped = (Duration, Event);

/// Runs the app on a terminal until it quits or nobody can send events any more.
///
/// # Errors
///
/// If the terminal cannot be drawn on.
pub fn run<B: Backend>(
    terminal: &mut Terminal<B>,
    state: &mut State,
    events: &Receiver<Stamped>,
    now: impl Fn() -> Duration,
    mut perform: impl FnMut(Request),
) -> Result<(), B::Error> {
    let mut take = |state: &mut State, (at, event): Stamped| {
        for action in update(state, at, event) {
            match action {
                Action::Quit => return false,
                Action::Ask(request) => perform(request),
            }
        }
        true
    };
    loop {
        terminal.draw(|frame| view::draw(state, frame))?;
        let first = match events.recv_timeout(TICK) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) => (now(), Event::Tick),
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        if !take(state, first) {
            return Ok(());
        }
        for _ in 1..BATCH {
            let Ok(event) = events.try_recv() else { break };
            if !take(state, event) {
                return Ok(());
            }
        }
    }
}

/// Stamps events and puts them into the channel.
#[derive(Clone, Debug)]
struct Inbox {
    events: SyncSender<Stamped>,
    epoch: Instant,
}

impl Inbox {
    fn put(&self, event: Event) -> bool {
        self.events.send((self.epoch.elapsed(), event)).is_ok()
    }
}

impl Sink for Inbox {
    fn send(&self, message: Message) -> bool {
        self.put(Event::Source(message))
    }
}

/// What the app begins with.
#[derive(Debug, Default)]
pub struct Start {
    /// Attach to this; without, to the only process that runs.
    pub target: Option<Target>,
    /// Start this and attach to it.
    pub command: Vec<OsString>,
    /// Stop it after that time.
    pub limit: Option<Duration>,
    /// Use colours.
    pub colour: bool,
}

/// Runs the app on this process's terminal; the exit code to end with.
///
/// # Errors
///
/// If there is no terminal, or the program cannot be started.
pub fn app(start: Start) -> io::Result<u8> {
    let (events_in, events) = sync_channel(EVENTS);
    let inbox = Inbox { events: events_in, epoch: Instant::now() };
    let (requests, asked) = mpsc::channel(REQUESTS);
    let (quit, quitting) = oneshot::channel();

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (signals, program) = {
        let _inside = runtime.enter();
        // Before there is anything that a signal would leave behind.
        let signals = [signal(SignalKind::terminate())?, signal(SignalKind::hangup())?];
        let program = if start.command.is_empty() {
            None
        } else {
            Some(Program::start(&start.command, Output::Capture)?)
        };
        (signals, program)
    };
    let size = crossterm::terminal::size().unwrap_or((80, 24));
    let mut state = match &program {
        Some(_) => State::with_program(size, start.colour, program::words(&start.command)),
        None => State::new(size, start.colour),
    };
    if let Some(target) = start.target.or_else(|| only_process(program.is_some())) {
        inbox.send(Message::Connecting(target.to_string()));
        // The channel is empty: there is room.
        let _ = requests.try_send(Request::Attach(address(&target)));
    }

    // The first step asks for what the first screen needs.
    inbox.put(Event::Tick);
    let sink = inbox.clone();
    let attach = requests.clone();
    let thread = thread::Builder::new().name("holdup-source".into()).spawn(move || {
        runtime.block_on(async move {
            let signals = tokio::spawn(hang_up(signals, sink.clone()));
            let (code, ()) = tokio::join!(
                supervise(program, start.limit, sink.clone(), attach, quitting),
                source::serve(asked, sink)
            );
            signals.abort();
            code
        })
    })?;
    let mut outside = Outside(Some(Running { events, requests, quit, thread }));
    show(&mut state, &inbox, &outside)?;
    let code = outside.end();

    if let (Some(code @ 1..), Some(program)) = (code, &state.program) {
        let how = program.ended.as_deref().unwrap_or("stopped");
        let mut words = format!("holdup: `{}` has ended: {how}\n", program.command);
        for line in program.lines.iter().skip(program.lines.len().saturating_sub(LAST_LINES)) {
            words.push_str(&format!("  {line}\n"));
        }
        // Nobody may be there to read it.
        let _ = io::stderr().lock().write_all(words.as_bytes());
        return Ok(code);
    }
    Ok(code.unwrap_or(0))
}

/// Takes the terminal, runs the app on it, gives it back.
fn show(state: &mut State, inbox: &Inbox, outside: &Outside) -> io::Result<()> {
    let Some(running) = &outside.0 else { return Ok(()) };
    let (guard, mut terminal) = Guard::take()?;
    let keys = inbox.clone();
    thread::Builder::new().name("holdup-keys".into()).spawn(move || {
        loop {
            let event = match terminal::next_event() {
                Ok(Some(event)) => event,
                Ok(None) => continue,
                Err(_) => Event::Hangup,
            };
            let over = event == Event::Hangup;
            if !keys.put(event) || over {
                return;
            }
        }
    })?;
    let now = || inbox.epoch.elapsed();
    let result = run(&mut terminal, state, &running.events, now, |request| {
        // A full queue means that the source is stuck in the file system; the state asks again.
        let _ = running.requests.try_send(request);
    });
    drop(guard);
    result
}

/// The thread that speaks with the outside, and all that keeps it going.
struct Running {
    events: Receiver<Stamped>,
    requests: mpsc::Sender<Request>,
    quit: oneshot::Sender<()>,
    thread: thread::JoinHandle<Option<u8>>,
}

/// Ends with the app, however that ends: a program that we started is not left behind. (The terminal library
/// panics when it cannot report that the terminal is gone.)
struct Outside(Option<Running>);

impl Outside {
    /// The code that the program ended with by itself.
    fn end(&mut self) -> Option<u8> {
        let Running { events, requests, quit, thread } = self.0.take()?;
        // The receiver goes first, so that nobody waits for room in it.
        drop((events, requests));
        let _ = quit.send(());
        thread.join().unwrap_or(None)
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        self.end();
    }
}

fn only_process(started: bool) -> Option<Target> {
    if started {
        return None;
    }
    match source::candidates().as_slice() {
        [one] => Some(Target::Pid(one.pid)),
        _ => None,
    }
}

/// The target as it is written on a command line.
fn address(target: &Target) -> String {
    match target {
        Target::Pid(pid) => pid.to_string(),
        other => other.to_string(),
    }
}

/// Tells the app when it shall end.
async fn hang_up([mut terminate, mut hangup]: [tokio::signal::unix::Signal; 2], inbox: Inbox) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
    inbox.put(Event::Hangup);
}

/// Waits for the program to serve, for its end, and for ours; the code it ended with by itself.
async fn supervise(
    program: Option<Program>,
    limit: Option<Duration>,
    inbox: Inbox,
    attach: mpsc::Sender<Request>,
    mut quitting: oneshot::Receiver<()>,
) -> Option<u8> {
    let mut program = program?;
    let lines = inbox.clone();
    program.lines(move |line| {
        lines.send(Message::Line(line));
    });
    let begun = Instant::now();
    let over = async {
        match limit {
            Some(limit) => tokio::time::sleep(limit).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(over);
    let mut look = tokio::time::interval(LOOK);
    let mut found = false;
    let mut told = false;
    loop {
        tokio::select! {
            status = program.wait() => {
                let (how, code) = match status {
                    Ok(status) => (program::ending(status), program::exit_code(status)),
                    Err(error) => (error.to_string(), u8::MAX),
                };
                inbox.send(Message::Ended(how));
                return Some(code);
            }
            _ = &mut quitting => {
                let _ = program.stop().await;
                return None;
            }
            () = &mut over => {
                // How it ends when we end it is nobody's business.
                let _ = program.stop().await;
                inbox.send(Message::Ended("its time was over".into()));
                return None;
            }
            _ = look.tick(), if !found => {
                if let Some(service) = program.service() {
                    // The socket is there a moment before somebody listens.
                    let target = Target::Socket(service.socket);
                    if Client::connect(&target).await.is_ok() || begun.elapsed() > SERVES_WITHIN {
                        found = true;
                        let _ = attach.send(Request::Attach(address(&target))).await;
                    }
                }
                if !found && !told && begun.elapsed() > SERVES_WITHIN {
                    told = true;
                    look = tokio::time::interval(TICK);
                    inbox.send(Message::NotServing);
                }
            }
        }
    }
}
