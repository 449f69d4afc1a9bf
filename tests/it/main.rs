//! The one integration target: a module per feature, each through the real binary.
