//! Which number of the host stands behind user 1000 of a sandbox.

use rustix::process::{Gid, Uid, geteuid};

use super::fail::{Fail, Outcome};

/// The user and group number inside a sandbox. `claude` refuses to work as 0.
pub(super) const INSIDE: u32 = 1000;

/// `nobody` on every common distribution.
const NOBODY: u32 = 65_534;

/// Who runs the processes of a sandbox, seen from the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Identity {
    /// The calling user.
    Own,
    /// Another user, because the caller is root.
    Dropped {
        /// The user number on the host.
        uid: u32,
        /// The group number on the host.
        gid: u32,
    },
}

impl Identity {
    /// The identity for the calling process.
    pub(super) fn detect() -> Outcome<Self> {
        if !geteuid().is_root() {
            return Ok(Identity::Own);
        }
        let number = |key: &str| std::env::var(key).ok().and_then(|v| v.parse::<u32>().ok());
        let sudo = number("SUDO_UID").zip(number("SUDO_GID"));
        let uids = fs_err::read_to_string("/proc/self/uid_map")?;
        let gids = fs_err::read_to_string("/proc/self/gid_map")?;
        choose(sudo, &uids, &gids).ok_or_else(|| {
            Fail::new("running as root, and no unprivileged user number is available for the sandbox")
                .hint("hint: run as an ordinary user")
        })
    }

    /// The owner of a sandbox's files, when it is not the caller.
    pub(super) fn owner(self) -> Option<(Uid, Gid)> {
        match self {
            Identity::Own => None,
            Identity::Dropped { uid, gid } => Some((Uid::from_raw(uid), Gid::from_raw(gid))),
        }
    }

    /// The content of `uid_map` or `gid_map` for a sandbox that root sets up: root's own number so that the
    /// mounts can be made, and the unprivileged one that everything inside then runs as.
    pub(super) fn map(id: u32) -> String {
        format!("0 0 1\n{INSIDE} {id} 1\n")
    }
}

/// The identity for root whose number maps are `uids` and `gids` (`/proc/self/uid_map`).
fn choose(sudo: Option<(u32, u32)>, uids: &str, gids: &str) -> Option<Identity> {
    let candidates = sudo.into_iter().chain([(NOBODY, NOBODY), (INSIDE, INSIDE), (1, 1)]);
    let fit = candidates
        .filter(|&(uid, gid)| uid != 0 && gid != 0)
        .find(|&(uid, gid)| outside(uids, uid).is_some_and(|u| u != 0) && outside(gids, gid).is_some());
    match fit {
        Some((uid, gid)) => Some(Identity::Dropped { uid, gid }),
        // Root of a user namespace that has no other number: not the host's root, and all there is.
        None if outside(uids, 0).is_some_and(|u| u != 0) => Some(Identity::Own),
        None => None,
    }
}

/// What `id` is in the namespace outside, by a map of lines `inside outside count`.
fn outside(map: &str, id: u32) -> Option<u32> {
    map.lines().find_map(|line| {
        let mut numbers = line.split_whitespace().map(str::parse::<u32>);
        let (inside, outside, count) = (numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?);
        let offset = id.checked_sub(inside).filter(|o| *o < count)?;
        outside.checked_add(offset)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "         0          0 4294967295\n";

    #[test]
    fn root_of_the_host_drops_to_the_user_behind_sudo_or_to_nobody() {
        let drop = |uid, gid| Some(Identity::Dropped { uid, gid });
        assert_eq!(choose(None, WHOLE, WHOLE), drop(NOBODY, NOBODY));
        assert_eq!(choose(Some((1001, 100)), WHOLE, WHOLE), drop(1001, 100));
        assert_eq!(choose(Some((0, 0)), WHOLE, WHOLE), drop(NOBODY, NOBODY));
    }

    #[test]
    fn a_number_that_is_not_mapped_is_not_chosen() {
        let small = "0 100000 2000\n";
        assert_eq!(choose(None, small, small), Some(Identity::Dropped { uid: INSIDE, gid: INSIDE }));
        let single = "0 1001 1\n";
        assert_eq!(choose(None, single, single), Some(Identity::Own));
        assert_eq!(choose(None, "0 0 1\n", "0 0 1\n"), None, "the host's root must not be used");
    }
}
