//! `fullsend completions`.

use clap_complete::Shell;

use crate::report::Printer;

/// Print a completion script for a shell.
///
/// For example: `fullsend completions bash > ~/.local/share/bash-completion/completions/fullsend`. In bash, zsh and fish
/// the names of agents are completed as well.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The shell.
    shell: Shell,
}

pub(super) fn main(args: &Args, ui: &Printer) {
    let mut out = Vec::new();
    clap_complete::generate(args.shell, &mut super::visible_command(), "fullsend", &mut out);
    ui.data(&with_agents(args.shell, &String::from_utf8_lossy(&out)));
}

/// The script with the names of agents, for the commands that take one: `fullsend list` has them.
fn with_agents(shell: Shell, script: &str) -> String {
    match shell {
        // What takes the value of an option does not offer `--help`: an agent can stand only where that is offered.
        Shell::Bash => script.replace("complete -F _fullsend ", "complete -F _fullsend_agents ") + BASH,
        Shell::Zsh => {
            let (arguments, end) =
                script.split_at(script.rfind("\nif [ \"$funcstack").unwrap_or(script.len()));
            let mut out = String::new();
            for line in arguments.split_inclusive('\n') {
                let agent = line.starts_with("':agent -- ") || line.starts_with("'*::agent -- ");
                out.push_str(&if agent {
                    line.replace(":_default'", ":_fullsend_agents'")
                } else {
                    line.into()
                });
            }
            out + ZSH + end
        }
        Shell::Fish => script.to_owned() + FISH,
        _ => script.to_owned(),
    }
}

const BASH: &str = r#"
_fullsend_agents() {
    _fullsend "$@"
    local offered=("${COMPREPLY[@]}") names name rest at dir=()
    case "${COMP_WORDS[1]}" in
        run|show|validate|lock) ;;
        *) return 0 ;;
    esac
    [[ "$2" == -* ]] && return 0
    _fullsend "$1" "" "$3"
    if [[ " ${COMPREPLY[*]} " == *" --help "* ]]; then
        for ((at = 2; at < COMP_CWORD; at++)); do
            [[ "${COMP_WORDS[at]}" == --fullsend-dir ]] && dir=(--fullsend-dir "${COMP_WORDS[at + 1]}")
        done
        while read -r name rest; do names+="$name "; done < <("$1" list "${dir[@]}" 2>/dev/null)
        COMPREPLY=($(compgen -W "$names" -- "$2"))
        [[ ${#COMPREPLY[@]} -gt 0 ]] && return 0
    fi
    COMPREPLY=("${offered[@]}")
}
"#;

const ZSH: &str = r#"
_fullsend_agents() {
    local -a agents
    local dir=${(Q)opt_args[--fullsend-dir]}
    agents=(${${(f)"$(_call_program agents fullsend list ${dir:+--fullsend-dir ${(q)dir}} 2>/dev/null)"}%% *})
    _describe -t agents agent agents
}
"#;

const FISH: &str = r"
complete -c fullsend -n '__fish_fullsend_using_subcommand run show validate lock' -f -a '(fullsend list 2>/dev/null | string replace -r \'  +\' \t)'
";
