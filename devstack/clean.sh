#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Ends the cloud as unstack.sh does, and removes DEST with everything in it. Debian packages stay.

set -euo pipefail
TOP="$(dirname "$(dirname "$(readlink -f "$0")")")"
# shellcheck source=/dev/null
source "$TOP/devstack/lib/parts.sh"

[[ $# -eq 0 ]] || { echo "Usage: devstack/clean.sh" >&2; exit 2; }
must_be_root
read_settings
"$TOP/devstack/unstack.sh"
check_dest
rm -rf "${DEST:?}"
echo "Removed $DEST."
