# SPDX-License-Identifier: Apache-2.0
"""Who a node is: a uuid kept on the host's own disk, made on first use.

A host name can be changed or given twice; the file cannot be in two places unless somebody copies it. A node whose
file is lost is a new node, so it belongs in state_path and into no image of a machine.
"""

from __future__ import annotations

import os
import tempfile
import uuid
from pathlib import Path

FILE_NAME = "node-uuid"


def node_uuid(state_path: Path) -> str:
    """Return the uuid of this host's node.

    :raises ValueError: the file does not hold a uuid; the message says which file.
    """
    path = state_path / FILE_NAME
    try:
        return _read(path)
    except FileNotFoundError:
        _make(path)
        return _read(path)


def derived_uuid(state_path: Path, node: str) -> str:
    """Return the uuid of one of many nodes that this host plays: the same as long as host and node's name are."""
    return str(uuid.uuid5(uuid.UUID(node_uuid(state_path)), node))


def _read(path: Path) -> str:
    text = path.read_text().strip()
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise ValueError(f"{path} does not hold a uuid: {text!r}. Restore it from a backup.") from None


def _make(path: Path) -> None:
    """Make the file whole; of several processes that try at once, one succeeds and the others find its file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=FILE_NAME)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{uuid.uuid4()}\n")
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(temporary)
