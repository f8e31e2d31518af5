//! What crosses packages; see the `tests` folder.
