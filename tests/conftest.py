# SPDX-License-Identifier: Apache-2.0
"""Real services for whoever asks: each is started at the first use, and once per run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from tests.fixtures import openstack, programs
from tests.fixtures.galera import GaleraNode
from tests.fixtures.mariadb import MariaDB
from tests.fixtures.postgresql import PostgreSQL
from tests.fixtures.rabbitmq import RabbitMQ


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDB]:
    """A running MariaDB; a test that stops it starts it again."""
    try:
        server = MariaDB()
    except programs.ProgramMissingError as missing:
        _do_without(missing)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """A running PostgreSQL; a test that stops it starts it again."""
    try:
        server = PostgreSQL()
    except programs.ProgramMissingError as missing:
        _do_without(missing)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="session")
def galera() -> Iterator[GaleraNode]:
    """A running Galera cluster of one node."""
    try:
        node = GaleraNode()
    except programs.ProgramMissingError as missing:
        _do_without(missing)
    try:
        node.start()
        yield node
    finally:
        node.remove()


@pytest.fixture(scope="session")
def rabbitmq() -> Iterator[RabbitMQ]:
    """A running RabbitMQ; a test that stops it starts it again."""
    try:
        broker = RabbitMQ()
    except programs.ProgramMissingError as missing:
        _do_without(missing)
    try:
        broker.start()
        yield broker
    finally:
        broker.remove()


@pytest.fixture(scope="session")
def openstack_home() -> Path:
    """The virtual environment of Keystone and Glance."""
    try:
        return openstack.environment()
    except programs.ProgramMissingError as missing:
        _do_without(missing)


@pytest.fixture(scope="session")
def keystone(openstack_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[openstack.Keystone]:
    """A running Keystone with nobody in it but its administrator."""
    service = openstack.Keystone(openstack_home, tmp_path_factory.mktemp("identity"))
    try:
        service.start()
        yield service
    finally:
        service.stop()


@pytest.fixture(scope="session")
def glance(keystone: openstack.Keystone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[openstack.Glance]:
    """A running Glance; whoever stops it starts it again."""
    service = openstack.Glance(keystone.home, tmp_path_factory.mktemp("image"), keystone)
    try:
        service.start()
        yield service
    finally:
        service.stop()


def _do_without(missing: programs.ProgramMissingError) -> NoReturn:
    """Skip, unless the run has promised that every service is there."""
    if os.environ.get("NOVA_LITE_REQUIRE_SERVICES") == "1":
        pytest.fail(str(missing))
    pytest.skip(str(missing))
