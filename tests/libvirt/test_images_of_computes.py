# SPDX-License-Identifier: Apache-2.0
"""What a compute does to real guests with images: rebuild, make an image and boot from it, shelve and unshelve."""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from oslo_config import cfg

from nova_lite.compute.rebuilder import Rebuilder
from nova_lite.compute.rescuer import Rescuer
from nova_lite.compute.shelver import Shelver
from nova_lite.compute.snapshots import Snapshots
from nova_lite.compute.spawner import Spawner
from nova_lite.compute.work import Work
from nova_lite.image.cache import ImageCache
from nova_lite.image.directory import DirectoryImages
from nova_lite.network.none import NoNetwork
from nova_lite.objects import instance as states
from nova_lite.objects.action import ActionRequest
from nova_lite.objects.image import Image
from nova_lite.objects.instance import Instance
from tests.fixtures import guest as nano
from tests.libvirt.conftest import make_instance, wait_for_console


def _request(instance: Instance, kind: str, **arguments: Any) -> ActionRequest:
    return ActionRequest("operation", kind, instance, arguments)


@pytest.fixture
def parts(configure: Callable[..., cfg.ConfigOpts], make_driver: Callable[..., Any], image: Path) -> Any:
    """The parts of a compute on the real driver, with the nano guest in the directory of images."""
    conf, driver, steps = configure(), make_driver(), list[str]()
    source, network = DirectoryImages(conf), NoNetwork(conf)
    directory = Path(conf.image.path)
    directory.mkdir(parents=True)
    base = Image(str(uuid.uuid4()), disk_format="qcow2", checksum=hashlib.md5(image.read_bytes()).hexdigest())
    shutil.copy(image, directory / base.id)
    spawner = Spawner(conf, driver, network, ImageCache(conf, source))
    snapshots = Snapshots(conf, driver, source, Work(), lambda _operation, step, _saving: steps.append(step))
    return SimpleNamespace(
        driver=driver,
        base=base,
        steps=steps,
        directory=directory,
        spawner=spawner,
        snapshots=snapshots,
        rebuilder=Rebuilder(driver, spawner, lambda _operation, step: steps.append(step)),
        rescuer=Rescuer(conf, driver, spawner),
        shelver=Shelver(conf, driver, network, snapshots),
    )


def test_a_rebuilt_guest_boots_from_its_new_image(parts: Any) -> None:
    empty = Image(str(uuid.uuid4()), disk_format="raw")
    (parts.directory / empty.id).write_bytes(bytes(1 << 20))
    instance = make_instance(image=empty)
    parts.spawner.spawn(instance)

    parts.rebuilder.rebuild(_request(dataclasses.replace(instance, image=parts.base), "rebuild"))

    wait_for_console(parts.driver, instance, nano.READY)
    assert parts.steps == [states.REBUILD_SPAWNING]


def test_a_rebuilt_guest_that_was_off_is_off(parts: Any) -> None:
    instance = make_instance(image=parts.base)
    parts.spawner.spawn(instance)
    parts.driver.power_off(instance, 0)

    parts.rebuilder.rebuild(_request(instance, "rebuild", stopped=True))

    assert parts.driver.power_state(instance) == states.SHUTDOWN


def test_an_image_of_a_guest_boots(parts: Any) -> None:
    instance, image_id = make_instance(image=parts.base), str(uuid.uuid4())
    parts.spawner.spawn(instance)
    wait_for_console(parts.driver, instance, nano.READY)

    content = parts.snapshots.create_image(_request(instance, "createImage", image_id=image_id))["content"]

    assert (content["virtual_size"], parts.steps) == (1 << 30, [states.IMAGE_UPLOADING])
    made = Image(image_id, disk_format="qcow2", size=content["size"], checksum=content["checksum"])
    other = make_instance(image=made)
    parts.spawner.spawn(other)
    wait_for_console(parts.driver, other, nano.READY)


@pytest.mark.parametrize("was", [states.ACTIVE, states.PAUSED])
def test_a_shelved_guest_comes_back_from_its_image(parts: Any, was: str) -> None:
    instance, image_id = make_instance(image=parts.base), str(uuid.uuid4())
    parts.spawner.spawn(instance)
    wait_for_console(parts.driver, instance, nano.READY)
    if was == states.PAUSED:
        parts.driver.pause(instance)

    content = parts.shelver.shelve(_request(instance, "shelve", image_id=image_id, was=was))["content"]

    assert parts.driver.power_state(instance) == states.SHUTDOWN
    assert parts.steps == [states.SHELVING_IMAGE_UPLOADING]
    parts.shelver.offload(_request(instance, "shelveOffload"))
    assert parts.driver.power_state(instance) == states.NOSTATE
    parts.shelver.offload(_request(instance, "shelveOffload"))  # once more is no error
    kept = Image(image_id, disk_format="qcow2", size=content["size"], checksum=content["checksum"])
    parts.spawner.spawn(dataclasses.replace(instance, image=kept))
    wait_for_console(parts.driver, instance, nano.READY)


def test_a_shelved_guest_that_kept_its_place_is_started(parts: Any) -> None:
    instance = make_instance(image=parts.base)
    parts.spawner.spawn(instance)
    wait_for_console(parts.driver, instance, nano.READY)
    parts.shelver.shelve(_request(instance, "shelve", image_id=str(uuid.uuid4()), was=states.ACTIVE))

    parts.shelver.unshelve(_request(instance, "unshelve"))

    wait_for_console(parts.driver, instance, nano.READY, count=2)


def test_a_guest_is_rescued_from_a_fetched_image(parts: Any) -> None:
    instance = make_instance(image=parts.base)
    parts.spawner.spawn(instance)

    parts.rescuer.rescue(_request(instance, "rescue", image=dataclasses.asdict(parts.base)))
    parts.rescuer.unrescue(_request(instance, "unrescue"))

    wait_for_console(parts.driver, instance, nano.READY)
    assert parts.driver.power_state(instance) == states.RUNNING
