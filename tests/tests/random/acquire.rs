//! The ways in which a program acquires, and what becomes of the permits.

use crate::program::How;
use crate::run::{Env, Resource};
use futures::future::BoxFuture;
use holdup::sync::{RwLock, Semaphore};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{spawn_blocking, yield_now};
use tokio::time::{sleep, timeout};

const OPEN: &str = "nobody closes it";

pub(crate) async fn hold(resource: &Resource, how: How, body: BoxFuture<'static, ()>) {
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

pub(crate) async fn try_hold(resource: &Resource, body: BoxFuture<'static, ()>) {
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

pub(crate) async fn hand_off(env: &Env, resource: &Resource, body: BoxFuture<'static, ()>) {
    let task = match resource {
        Resource::Semaphore(semaphore) => {
            let permit = Arc::clone(semaphore).acquire_owned().await.expect(OPEN);
            env.spawn(async move {
                body.await;
                drop(permit);
            })
        }
        Resource::Mutex(mutex) => {
            let guard = Arc::clone(mutex).lock_owned().await;
            env.spawn(async move {
                body.await;
                drop(guard);
            })
        }
        Resource::RwLock(lock) => {
            let guard = Arc::clone(lock).read_owned().await;
            env.spawn(async move {
                body.await;
                drop(guard);
            })
        }
        Resource::Channel(sender, _) => {
            let Ok(permit) = sender.clone().reserve_owned().await else { return };
            env.spawn(async move {
                body.await;
                permit.send(());
            })
        }
    };
    env.detach(task);
}

pub(crate) async fn blocking(env: &Env, resource: &Resource, time: Duration, awaited: bool) {
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

pub(crate) async fn blocking_acquire(resource: &Resource, time: Duration) {
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

pub(crate) async fn latch(env: &Env, body: BoxFuture<'static, ()>) {
    let done = Arc::new(Semaphore::new(0));
    let later = AddLater(Arc::clone(&done), 1);
    let task = env.spawn(async move {
        body.await;
        drop(later);
    });
    done.acquire().await.expect(OPEN).forget();
    task.await.expect("no panic");
}

pub(crate) async fn credit(resource: &Resource, time: Duration) {
    let Resource::Semaphore(semaphore) = resource else { return };
    semaphore.acquire().await.expect(OPEN).forget();
    let _later = AddLater(Arc::clone(semaphore), 1);
    sleep(time).await;
}

pub(crate) async fn retry(resource: &Resource, time: Duration, body: BoxFuture<'static, ()>) {
    match resource {
        Resource::Semaphore(semaphore) => {
            let _permit = loop {
                if let Ok(permit) = timeout(time, semaphore.acquire()).await {
                    break permit.expect(OPEN);
                }
            };
            body.await;
        }
        Resource::Mutex(mutex) => {
            let _guard = loop {
                if let Ok(guard) = timeout(time, mutex.lock()).await {
                    break guard;
                }
            };
            body.await;
        }
        _ => {}
    }
}

pub(crate) async fn spin(resource: &Resource, body: BoxFuture<'static, ()>) {
    match resource {
        Resource::Semaphore(semaphore) => {
            let _permit = loop {
                match semaphore.try_acquire() {
                    Ok(permit) => break permit,
                    Err(_) => sleep(Duration::from_millis(2)).await,
                }
            };
            body.await;
        }
        Resource::RwLock(lock) => {
            let _guard = loop {
                match lock.try_read() {
                    Ok(guard) => break guard,
                    Err(_) => sleep(Duration::from_millis(2)).await,
                }
            };
            body.await;
        }
        _ => {}
    }
}

static SHARED: Semaphore = Semaphore::const_new(3);

pub(crate) async fn hold_static(time: Duration) {
    let _permit = SHARED.acquire().await.expect(OPEN);
    sleep(time).await;
}

pub(crate) async fn close(env: &Env, after: Duration) {
    let semaphore = Arc::new(Semaphore::new(1));
    let permit = semaphore.acquire().await.expect(OPEN);
    let tasks = [(); 2].map(|()| {
        let semaphore = Arc::clone(&semaphore);
        env.spawn(async move { drop(semaphore.acquire().await) })
    });
    sleep(after).await;
    semaphore.close();
    drop(permit);
    for task in tasks {
        task.await.expect("no panic");
    }
}

pub(crate) async fn send(resource: &Resource) {
    if let Resource::Channel(sender, _) = resource {
        // At the program's end somebody may be left who sends to nobody.
        let _ = sender.send(()).await;
    }
}
