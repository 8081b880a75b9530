# SPDX-License-Identifier: Apache-2.0
"""A node's uuid: one per host and for good."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nova_lite.virt.identity import FILE_NAME, derived_uuid, node_uuid


def test_uuid_is_made_once_and_kept(tmp_path: Path) -> None:
    first = node_uuid(tmp_path / "state")

    assert str(uuid.UUID(first)) == first == node_uuid(tmp_path / "state")
    assert node_uuid(tmp_path / "other") != first


def test_many_that_make_it_at_once_agree(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(lambda _: node_uuid(tmp_path), range(32)))) == 1
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_nodes_of_one_host_differ_and_stay(tmp_path: Path) -> None:
    assert derived_uuid(tmp_path, "a") == derived_uuid(tmp_path, "a") != derived_uuid(tmp_path, "b")


def test_file_that_holds_something_else_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text("garbage\n")

    with pytest.raises(ValueError, match=FILE_NAME):
        node_uuid(tmp_path)
    assert (tmp_path / FILE_NAME).read_text() == "garbage\n"
