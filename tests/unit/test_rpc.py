# SPDX-License-Identifier: Apache-2.0
"""The process' one bus: shared by all of its services, and by nobody else's configuration."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from oslo_config import cfg

from nova_lite import conf, rpc


@pytest.fixture
def leave_the_bus() -> Iterator[None]:
    yield
    rpc.stop()


def _options() -> cfg.ConfigOpts:
    options = cfg.ConfigOpts()
    conf.register(options)
    rpc.default_to(options, "fake://")
    options([], default_config_files=[], default_config_dirs=[])
    return options


def test_services_of_a_process_share_one_bus(leave_the_bus: None) -> None:
    options = _options()
    rpc.start(options)
    first = rpc.transport()
    rpc.start(options)
    assert rpc.transport() is first


def test_a_second_configuration_does_not_get_the_first_ones_bus(leave_the_bus: None) -> None:
    rpc.start(_options())
    with pytest.raises(RuntimeError, match="another configuration"):
        rpc.start(_options())
    rpc.stop()
    rpc.start(_options())
