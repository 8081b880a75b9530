# SPDX-License-Identifier: Apache-2.0
"""The samples of etc/nova-lite are what the generators give: an option that is added is in them, or this fails."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg, generator
from oslo_policy import generator as policy_generator

ETC = Path(__file__).parents[2] / "etc" / "nova-lite"


def _generate_policy(arguments: list[str]) -> None:
    policy_generator.generate_sample(arguments, conf=cfg.ConfigOpts())


@pytest.mark.parametrize(
    ("generate", "configuration", "sample"),
    [
        (generator.main, "config-generator.conf", "nova-lite.conf.sample"),
        (_generate_policy, "policy-generator.conf", "policy.yaml.sample"),
    ],
)
def test_the_sample_is_current(generate: Callable[..., Any], configuration: str, sample: str, tmp_path: Path) -> None:
    fresh = tmp_path / sample
    generate(["--config-file", str(ETC / configuration), "--output-file", str(fresh)])
    assert (ETC / sample).read_text() == fresh.read_text(), "run tools/generate-samples"


@pytest.mark.parametrize("sample", sorted(ETC.glob("*.sample")), ids=lambda path: path.name)
def test_a_sample_tells_nothing_of_the_machine_that_made_it(sample: Path) -> None:
    words = set(sample.read_text().replace("=", " ").split())
    assert not words & {socket.gethostname(), socket.getfqdn(), str(Path.home())} - {"localhost"}
