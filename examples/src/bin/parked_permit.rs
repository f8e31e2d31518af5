//! A server that admits eight sessions. A session keeps its permit in a map until the user logs out, and every third
//! user just closes the lid. Their permits stay parked in the map for ever, and soon nobody can log in.
//!
//! holdup shows the oldest holds with the line that took them. It reports nothing: nobody waits in a circle.

use holdup::ResourceExt as _;
use holdup::sync::{OwnedSemaphorePermit, Semaphore};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How long a user waits at the login page.
const PATIENCE: Duration = Duration::from_millis(200);

#[tokio::main]
async fn main() {
    let mut server = Server::new(8);
    let mut user = 0;
    loop {
        user += 1;
        if !server.log_in(user).await {
            println!("user {user} gave up: the server is full");
            continue;
        }
        sleep(Duration::from_millis(10)).await;
        let closes_the_lid = user % 3 == 0;
        if !closes_the_lid {
            server.log_out(user);
        }
    }
}

struct Server {
    admission: Arc<Semaphore>,
    sessions: HashMap<u64, Session>,
}

struct Session {
    _admitted: OwnedSemaphorePermit,
}

impl Server {
    fn new(most_sessions: usize) -> Self {
        Server {
            admission: Arc::new(Semaphore::new(most_sessions).named("sessions")),
            sessions: HashMap::new(),
        }
    }

    /// False if the server stays full for too long.
    async fn log_in(&mut self, user: u64) -> bool {
        let admission = Arc::clone(&self.admission);
        // MARK: login
        let Ok(Ok(permit)) = timeout(PATIENCE, admission.acquire_owned()).await else {
            return false;
        };
        self.sessions.insert(user, Session { _admitted: permit });
        true
    }

    fn log_out(&mut self, user: u64) {
        self.sessions.remove(&user);
    }
}
