//! Forgets what is said.

use super::Said;
use crate::sync::mpsc::{Receiver, Sender};
use crate::sync::{Mutex, RwLock, Semaphore};
use std::sync::Arc;

pub trait Described {
    #[doc(hidden)]
    fn describe(&self, said: Said);
}

impl Described for Semaphore {
    fn describe(&self, _: Said) {}
}

impl<T: ?Sized> Described for Mutex<T> {
    fn describe(&self, _: Said) {}
}

impl<T: ?Sized> Described for RwLock<T> {
    fn describe(&self, _: Said) {}
}

impl<T> Described for Sender<T> {
    fn describe(&self, _: Said) {}
}

impl<T> Described for Receiver<T> {
    fn describe(&self, _: Said) {}
}

impl<D: Described + ?Sized> Described for &D {
    fn describe(&self, _: Said) {}
}

impl<D: Described + ?Sized> Described for Arc<D> {
    fn describe(&self, _: Said) {}
}
