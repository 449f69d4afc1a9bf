//! What an agent, a connection, a gateway and a CI can do to a run, each through the real binary.
//!
//! The numbers are those of a list of faults that users of such runners met:
//!
//! | case | where |
//! |---|---|
//! | B01 result and no exit | `stream::a_final_result_ends_an_agent_that_stays` |
//! | B03 a grandchild holds the pipe | `stream::a_grandchild_that_holds_a_pipe_delays_nothing` |
//! | B04 huge lines, B05 nobody drains | `stream::huge_and_broken_lines_are_kept_and_the_result_is_found` |
//! | B07 truncated tail | `run_basic::a_stream_without_a_result_is_incomplete` |
//! | B08 UTF-8 | `stream::bytes_that_are_no_text_arrive_as_they_are`; cuts inside a character: tests of `src/agent` |
//! | B11 exit 0 but failed | `run_basic::a_result_event_with_an_error_is_a_failure_whatever_the_status` |
//! | B13 turn limit | `stream::the_turn_limit_is_a_budget_and_the_work_is_kept` |
//! | B15 inherited stdin | `stream::an_agent_that_reads_gets_the_end_of_file` |
//! | B17 exit 0 without an end, B20 every call hangs | `faults` (`half`, `hang`) |
//! | B21 create never returns | `gateway::a_create_that_never_returns_is_used_once_ready` |
//! | B22 phases and flags | `gateway::a_sandbox_that_ends_at_once_says_why` |
//! | B24 a failed create keeps the name | `gateway::a_failed_create_leaves_no_record` |
//! | B26 names | `gateway::odd_agent_names_give_good_sandbox_names` |
//! | B27 cancel everywhere | `faults` (`runner=…`), `cancel::a_cancel_in_a_pause_between_tries_ends_it` |
//! | B28 signals as CIs send them | `cancel::the_sequence_of_…` |
//! | B30 SIGKILL | `run_basic::a_killed_run_leaves_nothing`, `faults` (`runner=KILL`) |
//! | B30 SIGKILL with the work on the host | `killed` |
//! | B31 late results | `stream::results_survive_the_agents_deadline` |
//! | B33 neighbours | `cancel::a_cancel_leaves_the_other_run_alone`, `cancel::twenty_runs_…` |
//! | B34 strays of iteration 1 | `stream::a_stray_process_of_one_iteration_does_not_reach_the_next` |
//! | B36 delete | `gateway::a_delete_that_fails_or_lies_is_repeated` |
//! | B39 lost connections, exit status 255 | `connection::three_lost_connections_cost_no_byte`, `connection::an_agent_that_exits_with_255_is_no_lost_connection` |
//! | B41 long TMPDIR | `connection::a_long_temp_dir_still_has_room_for_a_socket` |
//! | B105 post-script | `run_basic::failing_scripts_fail_the_run`, `stream::a_post_script_killed_by_a_signal_fails_the_run` |
//! | B107 the cause | `stream::the_error_carries_the_api_message_not_the_missing_file` |
//! | B110 disk full | `faults::space` |

mod cancel;
mod connection;
mod deadlines;
mod flood;
mod gateway;
mod host;
mod killed;
mod salvage;
mod stream;

use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::faults::stage::leftovers;
use crate::support::{Done, Run, World, files_below, fullsend};

/// Makes deadlines and graces short.
fn scaled() -> World {
    let mut world = World::new();
    world.env("FULLSEND_TEST_DEADLINE_SCALE", "0.01");
    world
}

/// A run that goes on while the test does something.
pub struct Live {
    child: Child,
    out: PathBuf,
    err: PathBuf,
    begun: Instant,
}

impl Live {
    /// Starts `fullsend run work`; `name` tells runs of one world apart.
    pub fn start(world: &World, name: &str, more: &[&str]) -> Self {
        let args = world.run_args(more);
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        let mut command = world.command(fullsend(), &args, &world.repo());
        let (out, err) = (world.path(format!("{name}.stdout")), world.path(format!("{name}.stderr")));
        command.stdin(Stdio::null());
        command.stdout(std::fs::File::create(&out).unwrap()).stderr(std::fs::File::create(&err).unwrap());
        Self { child: command.spawn().unwrap(), out, err, begun: Instant::now() }
    }

    pub fn signal(&self, name: &str) {
        signal(&self.child.id().to_string(), name);
    }

    pub fn ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for the end, at most for `bound`.
    #[track_caller]
    pub fn wait(mut self, bound: Duration) -> Done {
        let begun = Instant::now();
        while !self.ended() {
            if begun.elapsed() > bound {
                self.child.kill().unwrap();
                panic!("it did not end within {bound:?}: {}", std::fs::read_to_string(&self.out).unwrap());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let status = self.child.wait().unwrap();
        let text = |path: &PathBuf| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
        let code = status.code().unwrap_or_else(|| -status.signal().unwrap_or(0));
        Done { code, stdout: text(&self.out), stderr: text(&self.err) }
    }
}

/// Sends a signal; a process that is gone is fine.
fn signal(pid: &str, name: &str) {
    let _ =
        std::process::Command::new("kill").args([&format!("-{name}"), pid]).stderr(Stdio::null()).status();
}

/// A bound that only a hang reaches.
pub const HANG: Duration = Duration::from_mins(1);

/// Waits until a file of that name appears in the sandboxes of a world.
#[track_caller]
pub fn wait_in_sandbox(world: &World, name: &str) {
    let begun = Instant::now();
    while !files_below(&world.path("state/fullsend/local")).iter().any(|(p, _)| p.ends_with(name)) {
        assert!(begun.elapsed() < HANG, "{name} did not appear");
        std::thread::sleep(Duration::from_millis(30));
    }
}

/// Nothing is left: no process, sandbox, journal entry or temp file.
#[track_caller]
pub fn assert_nothing_left(world: &World) {
    assert_eq!(leftovers(world, HANG), Vec::<String>::new());
}

/// The run directory whose `run.json` names this process' run: the only one of a world.
pub fn run_of(world: &World, done: Done) -> Run {
    world.collect(done)
}
