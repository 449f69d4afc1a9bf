//! What the CI systems are told, through the real binary and by readers as strict as theirs.

mod action;
mod action_files;
mod action_gateways;
mod commands;
mod github;
mod gitlab;
mod gitlab_template;

use crate::support::World;

/// Text that tries to be a command, a heading, a table, a variable and XML.
const HOSTILE: &str = "::error file=x::owned ##[error]owned section_end:1:fullsend_1 | <img src=x> \
                       [a](http://evil.example) \"]]> $CI_JOB_TOKEN `x` ]]>&amp;";

/// An agent that says hostile things, and leaves files with hostile names.
fn hostile_agent(world: &World) {
    // The scan of what goes in would find some of it in the script.
    world.harness("agent: agents/work\nruntime: script\nsecurity: {enabled: false}\n");
    world.agent(&format!(
        "cat <<'END'\n{HOSTILE}\n::add-mask::the\n::stop-commands::x\n::endgroup::\n##[endgroup]\nEND\n\
         printf 'section_end:1:fullsend_1\\r\\033[0K\\n\\r::set-output name=verdict::success\\n'\n\
         echo 'x' > '::error::name | <b>.md'\n\
         printf '{{\"text\": \"a\\\\nverdict<<X\\\\nb\"}}' > $FULLSEND_OUTPUT_DIR/agent-result.json\n"
    ));
}
