#!/bin/sh
# Runs one agent apart from the connection that asked for it, and shows its output to whoever connects.
# POSIX sh; works under dash, busybox ash and bash.
#
#   run    DIR DEADLINE MARKER GRACE MOST OFFSET LIFE REST   start unless started, then follow
#   start  DIR DEADLINE MARKER GRACE MOST   start DIR/command in a group of its own; more than MOST bytes end it
#   follow DIR OFFSET LIFE REST             copy DIR/stream.jsonl from OFFSET to stdout, until the end
#   stop   DIR GRACE                        TERM, GRACE seconds, KILL; then sweep
#   sweep  MARKER                           end what carries FULLSEND_RUN_MARKER=MARKER
#   settle DIR                              what `watch` does at the end, in case that it was killed
#
# Files in DIR: command (given), stream.jsonl and stderr.log (the agent's), started/ watch agent marker stream.id
# login/ (ours), notice (at 80 % of the deadline; its path is FULLSEND_NOTICE_FILE), stop (asked to), exit (written
# last: `v1 exit|signal|deadline|flood|stopped NUMBER`).
# Statuses of follow: 0 ended, 65 the stream was shortened or replaced, 66 the supervisor is gone, 67 could not
# start, 74 nobody reads, 75 LIFE is over and somebody may follow again, 76 the agent was ended and more than REST
# bytes are left.
set -u
me=$0

die() {
    status=$1
    shift
    printf 'fullsend-supervise: %s\n' "$*" >&2
    exit "$status"
}

is_number() {
    case $1 in '' | *[!0-9]*) return 1 ;; esac
}

# Sleeps for $1 seconds (default 0.05), or a whole one where fractions are not understood. Sets `step`: how many
# twentieths of a second a default nap takes.
step=0
nap() {
    case $step in
    0) if sleep "${1:-0.05}" 2>/dev/null; then step=1; else step=20 && sleep 1; fi ;;
    1) sleep "${1:-0.05}" ;;
    *) sleep 1 ;;
    esac
}

find_setsid() {
    setsid=
    if command -v setsid >/dev/null 2>&1; then
        setsid=setsid
    elif busybox setsid true >/dev/null 2>&1; then
        setsid='busybox setsid'
    fi
}

# Sets inode and size of a file.
look() {
    inode='' size=''
    # shellcheck disable=SC2046,SC2012
    set -- $(ls -lni -- "$1" 2>/dev/null)
    [ $# -ge 6 ] || return 1
    inode=$1 size=$6
    is_number "$inode" && is_number "$size"
}

# The files that a login shell reads. The agent may write them, and whatever the host asks for later runs in a login
# shell: a word printed there breaks rsync, an `exit` everything. So they are put back when the agent has ended.
logins='.profile .bash_profile .bash_login .bashrc .bash_logout'

save_login() {
    [ -n "${HOME-}" ] && mkdir -p "$1/login" || return 0
    for file in $logins; do
        [ ! -f "$HOME/$file" ] || cp -p "$HOME/$file" "$1/login/$file" || return 0
    done
    : >"$1/login/whole"
} 2>/dev/null

restore_login() {
    [ -n "${HOME-}" ] && [ -f "$1/login/whole" ] || return 0
    for file in $logins; do
        if [ -f "$1/login/$file" ]; then
            cmp -s "$1/login/$file" "$HOME/$file" || { rm -rf "${HOME:?}/$file" && cp -p "$1/login/$file" "$HOME/$file"; }
        elif [ -e "$HOME/$file" ] || [ -L "$HOME/$file" ]; then
            rm -rf "${HOME:?}/$file"
        fi
    done
} 2>/dev/null

start() {
    dir=$1 deadline=$2 marker=$3 grace=$4 most=$5
    [ -r "$dir/command" ] || die 67 "there is no $dir/command"
    # A second start, after a connection that dropped, finds the first one.
    if ! mkdir "$dir/started" 2>/dev/null; then
        [ -d "$dir/started" ] || die 67 "cannot write to $dir"
        return 0
    fi
    { : >"$dir/stream.jsonl" && : >"$dir/stderr.log" && printf '%s\n' "$marker" >"$dir/marker"; } ||
        die 67 "cannot write to $dir"
    look "$dir/stream.jsonl" || die 67 "cannot list $dir/stream.jsonl"
    { printf '%s\n' "$inode" >"$dir/stream.id.new" && mv -f "$dir/stream.id.new" "$dir/stream.id"; } ||
        die 67 "cannot write to $dir"
    save_login "$dir"
    find_setsid
    shell='sh'
    # Without setsid only bash can give the agent a group (set -m wants a terminal elsewhere).
    [ -n "$setsid" ] || ! command -v bash >/dev/null 2>&1 || shell='bash'
    # shellcheck disable=SC2086
    $setsid $shell "$me" watch "$dir" "$deadline" "$marker" "$grace" "$most" </dev/null >/dev/null 2>&1 &
}

signal() {
    if [ "$mode" = group ]; then
        # Until setsid has run there is no group yet.
        kill "-$1" "-$pid" 2>/dev/null || kill "-$1" "$pid" 2>/dev/null
    else
        kill "-$1" "$pid" 2>/dev/null
    fi
}

alive() {
    if [ "$mode" = group ]; then kill -0 "-$pid" 2>/dev/null; else kill -0 "$pid" 2>/dev/null; fi
}

# Waits until the agent's group is gone, at most $1 seconds.
gone_within() {
    left=$(($1 * 20))
    while alive; do
        [ "$left" -gt 0 ] || return 1
        nap
        left=$((left - step))
    done
}

# Tells the agent that $1 seconds are left; whole or not at all. The words need no quoting in JSON.
notice() {
    printf 'Time is running out: %s seconds are left before this run is ended%s. Wrap up now: finish or undo what is half done, write the results to the output directory, and end.\n' \
        "$1" "${ends:+ (at $ends)}" >"$dir/notice.new" &&
        rm -rf "$dir/notice.shown" && mv -f "$dir/notice.new" "$dir/notice"
}

timer() {
    rest=
    trap '[ -z "$rest" ] || kill "$rest" 2>/dev/null; exit 0' TERM
    early=$((deadline * 4 / 5))
    # With the marker, so that the sweep finds it when the signal comes before the next line.
    FULLSEND_RUN_MARKER=$marker sleep "$early" &
    rest=$!
    wait "$rest"
    notice $((deadline - early))
    FULLSEND_RUN_MARKER=$marker sleep $((deadline - early)) &
    rest=$!
    wait "$rest"
    trap '' TERM
    signal TERM
    gone_within "$grace" || signal KILL
    exit 9
}

# Ends an agent that writes without end, before it fills the disk.
weigh() {
    while sleep 1; do
        look "$dir/stream.jsonl" || continue
        sum=$size
        look "$dir/stderr.log" || size=0
        [ $((sum + size)) -le "$most" ] || break
    done
    trap '' TERM
    signal TERM
    gone_within "$grace" || signal KILL
    exit 9
}

# Leaves the end of a standard error that nobody can want to read whole.
shorten() {
    look "$1" && [ "$size" -gt $((most / 8)) ] || return 0
    { printf '[%s bytes before this are left out]\n' $((size - most / 64)) && tail -c $((most / 64)) "$1"; } >"$1.new" &&
        mv -f "$1.new" "$1"
} 2>/dev/null

# The supervisor itself: starts the agent, waits, writes the exit file.
watch() {
    dir=$1 deadline=$2 marker=$3 grace=$4 most=$5
    trap : HUP
    printf '%s\n' "$$" >"$dir/watch.new" && mv -f "$dir/watch.new" "$dir/watch"
    find_setsid
    login=$(command -v bash) || login=$(command -v sh)
    mode=group
    if [ -z "$setsid" ]; then
        if [ -n "${BASH_VERSION-}" ]; then set -m; else mode=single; fi
    fi
    # Busybox and GNU know this form of a time; elsewhere the agent is not told.
    ends=$(date -u -d "@$(($(date +%s) + deadline))" +%Y-%m-%dT%H:%M:%SZ 2>/dev/null) || ends=
    [ -z "$ends" ] || export FULLSEND_DEADLINE="$ends"
    export FULLSEND_NOTICE_FILE="$dir/notice"
    # shellcheck disable=SC2086
    FULLSEND_RUN_MARKER=$marker $setsid "$login" -l "$dir/command" \
        </dev/null >>"$dir/stream.jsonl" 2>>"$dir/stderr.log" &
    pid=$!
    [ -n "$setsid" ] || [ "$mode" = single ] || set +m
    printf '%s %s\n' "$mode" "$pid" >"$dir/agent.new" && mv -f "$dir/agent.new" "$dir/agent"
    timer &
    timer=$!
    weigh &
    weigher=$!
    # A trapped signal ends a wait early; a process that was waited for is no more.
    while :; do
        wait "$pid"
        code=$?
        kill -0 "$pid" 2>/dev/null || break
    done
    kill "$timer" 2>/dev/null
    wait "$timer"
    fired=$?
    kill "$weigher" 2>/dev/null
    wait "$weigher"
    heavy=$?
    # What the agent left running must not write after the exit file.
    if alive; then
        signal TERM
        gone_within 2 || signal KILL
    fi
    # Also what left the group. This process can see it; a later connection cannot where each is confined by
    # Landlock on its own (OpenShell), as reading the environment of a process counts as tracing it.
    sweep "$marker"
    restore_login "$dir"
    shorten "$dir/stderr.log"
    if [ "$fired" = 9 ]; then
        end="deadline $deadline"
    elif [ "$heavy" = 9 ]; then
        end="flood $((most / 1000000))"
    elif [ -e "$dir/stop" ]; then
        end="stopped $code"
    elif [ "$code" -gt 128 ] && [ "$code" -le 192 ]; then
        end="signal $((code - 128))"
    else
        end="exit $code"
    fi
    printf 'v1 %s\n' "$end" >"$dir/exit.new" && mv -f "$dir/exit.new" "$dir/exit"
}

# Whether the supervisor of $dir still lives; a dead one that nobody reaped does not.
watched() {
    [ -r "$dir/watch" ] && read -r watcher <"$dir/watch" && is_number "$watcher" || return 1
    kill -0 "$watcher" 2>/dev/null || return 1
    ! grep -q '^State:[[:space:]]*Z' "/proc/$watcher/status" 2>/dev/null
}

# Copies the next $1 bytes of the open stream.
copy() {
    full=$(($1 / 65536)) rest=$(($1 % 65536))
    [ "$full" -eq 0 ] || dd bs=65536 count="$full" <&3 2>/dev/null || return 1
    [ "$rest" -eq 0 ] || dd bs="$rest" count=1 <&3 2>/dev/null || return 1
}

# Passes over the next $1 bytes of the open stream. dd moves in the file, or reads where it cannot.
pass() {
    full=$(($1 / 65536)) rest=$(($1 % 65536))
    [ "$full" -eq 0 ] || dd bs=65536 skip="$full" count=0 <&3 >/dev/null 2>&1 || return 1
    [ "$rest" -eq 0 ] || dd bs="$rest" count=1 <&3 >/dev/null 2>&1 || return 1
}

# Whether the agent was ended before it was done; sets `end`.
was_ended() {
    read -r end <"$dir/exit" || end='v1 unknown 0'
    case $end in 'v1 exit '* | 'v1 signal '*) return 1 ;; esac
}

# Whether the stream is the file it was, and no shorter.
unchanged() {
    look "$stream" && [ "$inode" = "$id" ] && [ "$size" -ge "$offset" ]
}

# Ends when standard input does. A word there is the quickest way to the agent: no new process, no login shell.
listen() {
    while read -r word; do
        [ "$word" != term ] || term
    done
}

# Asks the agent to end, once; `stop` has the rest.
term() {
    [ ! -e "$dir/stop" ] && [ ! -f "$dir/exit" ] && read -r mode pid <"$dir/agent" && is_number "$pid" &&
        [ "$pid" -gt 1 ] || return 0
    : >"$dir/stop"
    signal TERM
}

follow() {
    dir=$1 offset=$2 life=$3 last=$4
    stream=$dir/stream.jsonl
    # Another call may have begun to start it just now.
    left=60
    while [ ! -f "$dir/stream.id" ]; do
        if [ ! -d "$dir/started" ] || [ "$left" -le 0 ]; then die 66 "nothing was started in $dir"; fi
        nap
        left=$((left - step))
    done
    read -r id <"$dir/stream.id" || die 65 "$dir/stream.id cannot be read"
    [ -r "$stream" ] || die 65 "$stream cannot be read"
    exec 3<"$stream"
    unchanged || die 65 "$stream was shortened or replaced"
    pass "$offset" || die 65 "$stream cannot be read"
    # Standard input ends with the connection. Writing would show it only when there is something to write.
    exec 4<&0
    listen <&4 >/dev/null 2>&1 3<&- &
    tie=$!
    trap 'kill "$tie" 2>/dev/null' EXIT
    began=$(date +%s) idle=0
    while :; do
        # The exit file is looked for first: all that was written before it is in the size below.
        ended=
        [ ! -f "$dir/exit" ] || ended=1
        unchanged || die 65 "$stream was shortened or replaced"
        more=$((size - offset))
        if [ -n "$ended" ] && [ "$more" -gt "$last" ] && was_ended; then
            printf 'fullsend-supervise %s %s\n' "$end" "$size" >&2
            exit 76
        elif [ "$more" -gt 0 ]; then
            # In portions: an end is seen soon, however much is behind.
            [ "$more" -le 4194304 ] || more=4194304
            copy "$more" || exit 74
            offset=$((offset + more)) idle=0
        elif [ -n "$ended" ]; then
            was_ended
            printf 'fullsend-supervise %s %s\n' "$end" "$offset" >&2
            exit 0
        fi
        kill -0 "$tie" 2>/dev/null || exit 74
        [ "$size" -ne "$offset" ] || pause
    done
}

# Waits for more: shortly at first, then longer; looks now and then whether waiting has a point.
pause() {
    idle=$((idle + 1))
    if [ $((idle % 20)) -eq 0 ]; then
        # At the start it may not have written its number yet.
        if [ "$idle" -ge 40 ] && ! watched && [ ! -f "$dir/exit" ]; then die 66 "the supervisor is gone"; fi
        [ $(($(date +%s) - began)) -lt "$life" ] || exit 75
    fi
    if [ "$idle" -le 50 ]; then nap 0.02; elif [ "$idle" -le 100 ]; then nap 0.1; else nap 0.25; fi
}

stop() {
    dir=$1 grace=$2 asked=
    # A second TERM makes some programs drop what they do.
    [ ! -e "$dir/stop" ] || asked=1
    : >"$dir/stop"
    left=20
    while [ -d "$dir/started" ] && [ ! -f "$dir/agent" ] && [ "$left" -gt 0 ]; do
        nap
        left=$((left - step))
    done
    if [ -f "$dir/agent" ] && [ ! -f "$dir/exit" ] && read -r mode pid <"$dir/agent" &&
        is_number "$pid" && [ "$pid" -gt 1 ]; then
        [ -n "$asked" ] || signal TERM
        gone_within "$grace" || signal KILL
        left=60
        while [ ! -f "$dir/exit" ] && watched && [ "$left" -gt 0 ]; do
            nap
            left=$((left - step))
        done
    fi
    if [ -r "$dir/marker" ] && read -r marker <"$dir/marker" && [ -n "$marker" ]; then sweep "$marker"; fi
    [ ! -f "$dir/exit" ] || cat "$dir/exit"
}

# Whether process $1 is never ended: process 1, this one and those above it, the main process of the sandbox.
protected() {
    case " 1 $$ $above " in *" $1 "*) return 0 ;; esac
    [ "$( (tr '\000' ' ' <"/proc/$1/cmdline") 2>/dev/null)" = 'sleep infinity ' ]
}

# Sets `above` to the processes above this one.
ancestors() {
    above='' up=$$
    while [ "$up" -gt 1 ]; do
        next=
        while read -r key value _; do
            [ "$key" != PPid: ] || next=$value
        done <"/proc/$up/status"
        is_number "$next" || break
        up=$next above="$above $up"
    done 2>/dev/null
}

# Sets `found` to the processes that carry marker $1.
carriers() {
    found=
    for process in /proc/[0-9]*; do
        process=${process#/proc/}
        [ -r "/proc/$process/environ" ] || continue
        # Without another program first: `read` drops the NULs between variables.
        carries "$1" "$process" || continue
        { tr '\000' '\n' <"/proc/$process/environ" | grep -qxF "FULLSEND_RUN_MARKER=$1"; } 2>/dev/null || continue
        protected "$process" || found="$found $process"
    done
    [ -n "$found" ]
}

carries() {
    while IFS= read -r line || [ -n "$line" ]; do
        case $line in *"FULLSEND_RUN_MARKER=$1"*) return 0 ;; esac
    done <"/proc/$2/environ"
    return 1
} 2>/dev/null

sweep() {
    ancestors
    for with in TERM KILL KILL KILL; do
        carriers "$1" || return 0
        # shellcheck disable=SC2086
        kill "-$with" $found 2>/dev/null
        left=20
        while [ "$left" -gt 0 ] && carriers "$1"; do
            nap
            left=$((left - step))
        done
    done
    ! carriers "$1"
}

settle() {
    if [ ! -f "$1/exit" ] && read -r marker <"$1/marker" && [ -n "$marker" ]; then sweep "$marker"; fi
    restore_login "$1"
} 2>/dev/null

verb=${1-}
[ $# -eq 0 ] || shift
case $verb:$# in
run:8)
    for number in "$2" "$4" "$5" "$6" "$7" "$8"; do is_number "$number" || die 67 "not a number: $number"; done
    start "$1" "$2" "$3" "$4" "$5"
    follow "$1" "$6" "$7" "$8"
    ;;
start:5) is_number "$2" && is_number "$4" && is_number "$5" && start "$@" ;;
watch:5) watch "$@" ;;
follow:4) is_number "$2" && is_number "$3" && is_number "$4" && follow "$@" ;;
stop:2) is_number "$2" && stop "$@" ;;
settle:1) settle "$1" ;;
sweep:1) [ -n "$1" ] && sweep "$1" ;;
*) die 67 "unknown call: $verb with $# arguments" ;;
esac
