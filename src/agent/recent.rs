//! A bounded memory of ids, so that nothing is counted twice and a hostile stream cannot fill the memory.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

/// How many ids are remembered. Messages and tool uses repeat within a few lines of each other.
const CAPACITY: usize = 4096;

/// Values by id, for the most recent ids. Ids are kept as hashes, whatever their length.
#[derive(Debug)]
pub(super) struct Recent<V> {
    hasher: RandomState,
    values: HashMap<u64, V, BuildHasherDefault<Same>>,
    order: VecDeque<u64>,
}

/// The hash of what is a hash already.
#[derive(Debug, Default)]
struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

impl<V: Default> Recent<V> {
    pub(super) fn new() -> Self {
        Self { hasher: RandomState::new(), values: HashMap::default(), order: VecDeque::new() }
    }

    /// The value of `id`, and whether the id is new.
    pub(super) fn entry(&mut self, id: &str) -> (&mut V, bool) {
        let key = self.hasher.hash_one(id);
        let new = !self.values.contains_key(&key);
        if new {
            if self.order.len() == CAPACITY
                && let Some(oldest) = self.order.pop_front()
            {
                self.values.remove(&oldest);
            }
            self.order.push_back(key);
        }
        (self.values.entry(key).or_default(), new)
    }

    /// Whether `id` was not met before; it is from now on.
    pub(super) fn is_new(&mut self, id: &str) -> bool {
        self.entry(id).1
    }

    /// Whether `id` was met.
    pub(super) fn contains(&self, id: &str) -> bool {
        self.values.contains_key(&self.hasher.hash_one(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_ids_are_forgotten_and_new_ones_kept() {
        let mut recent = Recent::<()>::new();
        for i in 0..2 * CAPACITY {
            assert!(recent.is_new(&i.to_string()));
            assert!(!recent.is_new(&i.to_string()));
        }
        assert_eq!(recent.values.len(), CAPACITY);
        assert!(!recent.contains("0") && recent.contains(&(2 * CAPACITY - 1).to_string()));
    }
}
