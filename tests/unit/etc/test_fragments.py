# SPDX-License-Identifier: Apache-2.0
"""Configuration that is added to nova-lite.conf, and what belongs together in different files."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from nova_lite import conf
from nova_lite.cmd import manage
from nova_lite.conf.service import OPTIONS
from tests.fixtures.production import ETC


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "nova-lite.conf"
    path.write_text(
        f"[DEFAULT]\nstate_path = {tmp_path}\ntransport_url = rabbit://u:p@rabbit.example.org:5671/nova_lite\n"
    )
    yield path
    conf.CONF.reset()


@pytest.mark.parametrize("name", ["tls.conf", "quorum.conf"])
def test_a_fragment_is_what_the_check_accepts(base: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    fragment = ETC / "nova-lite" / name
    status = manage.run(["config", "check", "--config-file", str(base), "--config-file", str(fragment)])
    assert (status, capsys.readouterr().err) == (0, "")


def test_gunicorn_waits_as_long_as_the_services_do() -> None:
    (graceful,) = (option.default for option in OPTIONS if option.dest == "graceful_shutdown_timeout")
    settings = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse((ETC / "nova-lite" / "gunicorn.conf.py").read_text()).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    assert settings["graceful_timeout"] == graceful
    assert settings["header_map"] == "drop"
