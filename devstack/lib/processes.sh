#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Processes that outlive the script: starting, finding, awaiting and ending them. To be sourced.
#
# run/NAME.pid holds the process id, the time at which the process started (by the kernel's clock), so that a number that
# belongs to somebody else by now is never taken for ours, and how long the log was then. All processes have NOVA_LITE_DEVSTACK=DEST in their
# environment, by which those that nobody knows any more are found.

readonly MARK=NOVA_LITE_DEVSTACK

# Prints when a process started: started_at PID
started_at() {
    local text fields
    { text="$(< "/proc/$1/stat")"; } 2> /dev/null || return 1
    # The name, which may hold anything, ends with the last bracket; what follows begins with the state.
    read -ra fields <<< "${text##*) }"
    [[ "${fields[0]}" != Z && "${fields[0]}" != X ]] || return 1
    echo "${fields[19]}"
}

# Remembers a process: record_process NAME PID [LENGTH OF ITS LOG]
record_process() {
    local since
    since="$(started_at "$2")" || return 1
    echo "$2 $since ${3:-0}" > "$RUN_DIR/$1.pid"
}

log_length() { # NAME
    stat -c %s "$LOGDIR/$1.log" 2> /dev/null || echo 0
}

# Prints what a process has logged since it was started: log_since_start NAME
log_since_start() {
    local length
    read -r _ _ length < "$RUN_DIR/$1.pid" || return 1
    tail -c "+$((length + 1))" "$LOGDIR/$1.log"
}

# Prints the process id if the process runs: process_pid NAME
process_pid() {
    local pid since
    [[ -e "$RUN_DIR/$1.pid" ]] || return 1
    read -r pid since _ < "$RUN_DIR/$1.pid" || return 1
    [[ "$pid" =~ ^[0-9]+$ && "$(started_at "$pid")" == "$since" ]] || return 1
    echo "$pid"
}

is_running() {
    process_pid "$1" > /dev/null
}

# Starts a program in a session of its own, its output going to logs/NAME.log: launch NAME COMMAND ARGUMENTS...
launch() {
    local name="$1" pid length
    shift
    length="$(log_length "$name")"
    mkdir -p "$(dirname "$LOGDIR/$name.log")" "$(dirname "$RUN_DIR/$name.pid")"
    trace "launch $name: $*"
    env "$MARK=$DEST" setsid "$@" < /dev/null >> "$LOGDIR/$name.log" 2>&1 3>&- 9>&- &
    pid=$!
    record_process "$name" "$pid" "$length" || die "$name ended at once; see $LOGDIR/$name.log"
}

# Waits until a command succeeds: wait_for SECONDS NAME WHAT COMMAND ARGUMENTS...
# NAME is the process that must not end meanwhile, and whose log is shown if it does or is too slow; "" for none.
wait_for() {
    local seconds="$1" name="$2" what="$3" deadline
    shift 3
    deadline=$((SECONDS + seconds))
    until "$@"; do
        if [[ -n "$name" ]] && ! is_running "$name"; then
            show_log "$name"
            die "$name ended instead of $what; see $LOGDIR/$name.log"
        fi
        if ((SECONDS > deadline)); then
            [[ -z "$name" ]] || show_log "$name"
            die "$what: not within $seconds s${name:+; see $LOGDIR/$name.log}"
        fi
        sleep 0.1
    done
}

show_log() {
    echo "--- the end of $LOGDIR/$1.log:"
    tail -n 20 "$LOGDIR/$1.log" 2> /dev/null || true
    if [[ -n "$RUN_LOG" ]]; then
        { printf '\n' && tail -n 8 "$LOGDIR/$1.log" 2> /dev/null | cut -c1-240 | sed 's/^/    /'; } >&3 || true
    fi
}

# True if somebody listens: answers ADDRESS PORT
answers() {
    (exec 4<> "/dev/tcp/$1/$2") 2> /dev/null
}

# True if the URL is answered at all; the status does not matter below 500: answers_http URL
answers_http() {
    python3 - "$1" << 'END'
import sys
import urllib.error
import urllib.request

try:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    opener.open(sys.argv[1], timeout=10).close()
except urllib.error.HTTPError as error:
    sys.exit(error.code >= 500)
except OSError:
    sys.exit(1)
END
}

# Asks a process to end, and insists after so many seconds: end_pid PID SECONDS [SIGNAL]
end_pid() {
    local pid="$1" signal="${3:-TERM}" since deadline
    deadline=$((SECONDS + $2))
    since="$(started_at "$pid")" || return 0
    kill "-$signal" "$pid" 2> /dev/null || return 0
    while [[ "$(started_at "$pid")" == "$since" ]]; do
        if ((SECONDS > deadline)); then
            echo "process $pid did not end in $2 s and is killed"
            kill -KILL "$pid" 2> /dev/null || true
            deadline=$((SECONDS + 30))
        fi
        sleep 0.05
    done
}

# Ends a process by its name: stop_process NAME SECONDS [SIGNAL]
stop_process() {
    local pid
    if pid="$(process_pid "$1")"; then
        trace "stop $1 ($pid)"
        end_pid "$pid" "$2" "${3:-TERM}"
    fi
    rm -f "$RUN_DIR/$1.pid"
}

# Prints the processes that have our mark, whoever started them.
marked_pids() {
    local environment pid
    for environment in /proc/[0-9]*/environ; do
        pid="${environment//[!0-9]/}"
        [[ "$pid" != "$$" && "$pid" != "$BASHPID" ]] || continue
        if grep -qzFx "$MARK=$DEST" "$environment" 2> /dev/null; then
            echo "$pid"
        fi
    done
}

# Kills what has our mark and is still there.
end_marked_processes() {
    local pid left=()
    mapfile -t left < <(marked_pids)
    for pid in "${left[@]}"; do
        echo "left running: $pid $({ tr '\0' ' ' < "/proc/$pid/cmdline"; } 2> /dev/null | cut -c1-120)"
        end_pid "$pid" 0 KILL
    done
}
