//! Limits: what a sandbox may use, how long, how many at once, and how much may come back.

use super::sections::ENV_MAP;
use super::{Field, Merge, Type, field};

/// A quantity as Kubernetes writes it.
const SIZE: Type = Type::Form("([0-9]+(\\.[0-9]+)?)([KMGTPE]i?|k)?", "size");

pub(super) const RESOURCES: &[Field] = &[
    field(
        "cpu",
        Type::Form("[0-9]+(\\.[0-9]+)?|[0-9]+m", "number of processors"),
        "Processors: `2`, `0.5`, `500m`.",
    )
    .example("500m"),
    field("memory", SIZE, "Memory: `512Mi`, `4Gi`, `2G`.").example("4Gi"),
    field("disk", SIZE, "Disk space. No release of OpenShell up to 0.1.10 can limit it.").example("20Gi"),
    field("gpu", Type::Either(&[Type::Bool, Type::Int(0, 64)]), "Graphics processors: `true`, or how many.")
        .example("true"),
];

pub(super) const LIMITS: &[Field] = &[
    field(
        "max_changed_files",
        Type::Int(0, i64::MAX),
        "How many files may be added, changed or deleted. Files that only a commit or the index changes count too.",
    )
    .example("50"),
    field("max_patch_bytes", Type::Int(0, i64::MAX), "How large `changes.patch` may be.").example("1000000"),
    field("max_file_bytes", Type::Int(0, i64::MAX), "How large a new or changed file may be.").example("500000"),
    field(
        "protected_paths",
        Type::List(&Type::Text),
        "What must not change, as in `.gitignore`, without regard to case; in commits of any branch too.",
    )
    .default("`[]`")
    .merge(Merge::Append)
    .example("[.github/workflows/]"),
];

/// What every sandbox may say of itself.
pub(super) const LABELS: Type = ENV_MAP;
