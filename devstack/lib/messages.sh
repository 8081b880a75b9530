#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What a person sees: numbered steps with their times, and an error that says what to do. To be sourced.
#
# While steps run, file descriptor 3 is the terminal, and standard output and error go to the log of the run.

STEP_NUMBER=0
STEP_NAME=
STEP_NOTE=
STEPS=0
RUN_LOG=

# Makes the log of this run and lets all further output go there: begin_steps COUNT LOG
begin_steps() {
    STEPS="$1" RUN_LOG="$2"
    exec 3>&1
    mkdir -p "$(dirname "$RUN_LOG")"
    exec >> "$RUN_LOG" 2>&1
    printf '\n### %s %s\n' "$(date '+%F %T')" "$0"
    trap end_steps EXIT
}

# Runs a step: step "What it is" COMMAND ARGUMENTS...
step() {
    local began ended
    STEP_NUMBER=$((STEP_NUMBER + 1)) STEP_NAME="$1" STEP_NOTE=
    shift
    printf '[%2d/%d] %-40s' "$STEP_NUMBER" "$STEPS" "$STEP_NAME" >&3
    printf '\n### %s\n' "$STEP_NAME"
    began="$(date +%s%N)"
    # Whatever is started does not hold the lock on DEST (settings.sh).
    "$@" 9>&-
    ended="$(date +%s%N)"
    printf ' %6.1f s%s\n' "$(((ended - began) / 10000000))e-2" "${STEP_NOTE:+  $STEP_NOTE}" >&3
    STEP_NAME=
}

# Adds to the line of the step that runs.
note() {
    STEP_NOTE="${STEP_NOTE:+$STEP_NOTE; }$*"
    echo "note: $*"
}

# Says what is done, in the log; without one it is nobody's business.
trace() {
    [[ -z "$RUN_LOG" ]] || printf '%s\n' "$*"
}

# Tells the person, whether output goes to a log or not.
say() {
    if [[ -n "$RUN_LOG" ]]; then
        printf '%s\n' "$*" >&3
    else
        printf '%s\n' "$*"
    fi
}

# Ends the program with an error that says what to do.
die() {
    if [[ -n "$RUN_LOG" ]]; then
        [[ -z "$STEP_NAME" ]] || printf ' FAILED\n' >&3
        STEP_NAME=
        printf '\nerror: %s\n' "$*" >&3
        printf 'error: %s\n' "$*"
    else
        printf '%s: error: %s\n' "$(basename "$0")" "$*" >&2
    fi
    exit 1
}

# On the way out: if a step was cut short, says which one, what it printed last, and where the rest is.
end_steps() {
    local status=$?
    if [[ -n "$STEP_NAME" ]]; then
        printf ' FAILED\n\nThe last lines of %s:\n' "$RUN_LOG" >&3
        tail -n 12 "$RUN_LOG" | sed 's/^/    /' >&3
        printf '\nerror: step %d (%s) failed. Mend what the lines above name, and run %s again: it goes on from there.\n' \
            "$STEP_NUMBER" "$STEP_NAME" "$0" >&3
    fi
    return "$status"
}
