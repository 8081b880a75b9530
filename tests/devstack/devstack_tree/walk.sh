#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Walks the plugin through phases as DevStack does: walk.sh "MODE [PHASE]" ...
#
# The environment has what DevStack knows by then (DEST, HOST_IP, ENABLED_SERVICES, ...), PLUGIN_DIR and CALLS.

set -o errexit
TOP_DIR="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=/dev/null
source "$TOP_DIR/functions.sh"
if [[ -n "${MORE_FUNCTIONS:-}" ]]; then
    # shellcheck source=/dev/null
    source "$MORE_FUNCTIONS"
fi
# shellcheck source=/dev/null
source "$PLUGIN_DIR/devstack/settings"
record services "$ENABLED_SERVICES"

for phase in "$@"; do
    record phase "$phase"
    # shellcheck source=/dev/null disable=SC2086  # mode and phase are two arguments
    source "$PLUGIN_DIR/devstack/plugin.sh" $phase
done
