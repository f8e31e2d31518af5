//! Records in the order of their arrival, with removal anywhere, in constant time.

/// Names a record in a [`Queue`]; valid until that record is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key(u32);

const NIL: u32 = u32::MAX;

#[derive(Debug)]
struct Node<T> {
    /// The neighbours in order of arrival; `next` links the free list while `value` is `None`.
    prev: u32,
    next: u32,
    value: Option<T>,
}

/// A doubly linked list in one growing allocation, whose places are used again.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    nodes: Vec<Node<T>>,
    free: u32,
    head: u32,
    tail: u32,
    len: usize,
}

impl<T> Queue<T> {
    pub(crate) const fn new() -> Self {
        Queue { nodes: Vec::new(), free: NIL, head: NIL, tail: NIL, len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn push(&mut self, value: T) -> Option<Key> {
        self.insert(self.tail, value)
    }

    /// Inserts behind `key`, or last if that record is gone.
    pub(crate) fn push_behind(&mut self, key: Key, value: T) -> Option<Key> {
        let at = if self.get(key).is_some() { key.0 } else { self.tail };
        self.insert(at, value)
    }

    /// `None` if no further record can be numbered.
    fn insert(&mut self, prev: u32, value: T) -> Option<Key> {
        let next = if prev == NIL { self.head } else { self.nodes[prev as usize].next };
        let node = Node { prev, next, value: Some(value) };
        let at = if self.free == NIL {
            let at = u32::try_from(self.nodes.len()).ok().filter(|at| *at != NIL)?;
            self.nodes.push(node);
            at
        } else {
            let at = self.free;
            self.free = self.nodes[at as usize].next;
            self.nodes[at as usize] = node;
            at
        };
        self.link(prev, at);
        self.link(at, next);
        self.len += 1;
        Some(Key(at))
    }

    /// Makes two records neighbours; [`NIL`] stands for the ends.
    fn link(&mut self, prev: u32, next: u32) {
        match self.nodes.get_mut(prev as usize) {
            Some(node) => node.next = next,
            None => self.head = next,
        }
        match self.nodes.get_mut(next as usize) {
            Some(node) => node.prev = prev,
            None => self.tail = prev,
        }
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        let node = self.nodes.get_mut(key.0 as usize)?;
        let value = node.value.take()?;
        let (prev, next) = (node.prev, node.next);
        node.next = self.free;
        self.free = key.0;
        self.link(prev, next);
        self.len -= 1;
        Some(value)
    }

    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        self.nodes.get(key.0 as usize)?.value.as_ref()
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.nodes.get_mut(key.0 as usize)?.value.as_mut()
    }

    /// Calls `visit` with the records in order of arrival, until it says no.
    pub(crate) fn each_mut(&mut self, mut visit: impl FnMut(&mut T) -> bool) {
        let mut at = self.head;
        while let Some(node) = self.nodes.get_mut(at as usize) {
            at = node.next;
            if !node.value.as_mut().is_some_and(&mut visit) {
                return;
            }
        }
    }

    /// Calls `visit` with the records, the last one first, until it says no.
    pub(crate) fn each_back_mut(&mut self, mut visit: impl FnMut(&mut T) -> bool) {
        let mut at = self.tail;
        while let Some(node) = self.nodes.get_mut(at as usize) {
            at = node.prev;
            if !node.value.as_mut().is_some_and(&mut visit) {
                return;
            }
        }
    }

    pub(crate) fn first(&self) -> Option<&T> {
        self.nodes.get(self.head as usize)?.value.as_ref()
    }

    /// The records from `from` on (from the first one if `None`), in order of arrival.
    pub(crate) fn iter_from(&self, from: Option<Key>) -> impl Iterator<Item = (Key, &T)> {
        let mut at = from.map_or(self.head, |key| key.0);
        std::iter::from_fn(move || {
            let node = self.nodes.get(at as usize)?;
            let key = Key(at);
            at = node.next;
            Some((key, node.value.as_ref()?))
        })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.iter_from(None).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(queue: &Queue<u32>) -> Vec<u32> {
        queue.iter().copied().collect()
    }

    #[test]
    fn keeps_the_order_of_arrival_and_uses_places_again() {
        let mut queue = Queue::new();
        let keys: Vec<_> = (0..5).map(|n| queue.push(n).expect("room")).collect();
        assert_eq!(queue.remove(keys[0]), Some(0));
        assert_eq!(queue.remove(keys[2]), Some(2));
        assert_eq!(queue.remove(keys[4]), Some(4));
        assert_eq!(queue.remove(keys[4]), None, "twice");
        assert_eq!(values(&queue), [1, 3]);
        queue.push(5);
        queue.push_behind(keys[1], 6);
        queue.push_behind(keys[1], 7);
        assert_eq!(values(&queue), [1, 7, 6, 3, 5]);
        assert_eq!(queue.nodes.len(), 5, "no place was wasted");
        assert_eq!(queue.first(), Some(&1));
        assert_eq!(queue.len(), 5);
        let tail: Vec<_> = queue.iter_from(Some(keys[3])).map(|(_, value)| *value).collect();
        assert_eq!(tail, [3, 5]);
    }

    #[test]
    fn empties_and_fills_again() {
        let mut queue = Queue::new();
        for round in 0..3 {
            let keys: Vec<_> = (0..4).map(|n| queue.push(n + round).expect("room")).collect();
            for key in keys.into_iter().rev() {
                queue.remove(key);
            }
            assert!(values(&queue).is_empty());
            assert_eq!(queue.first(), None);
        }
        assert_eq!(queue.nodes.len(), 4);
    }
}
