# SPDX-License-Identifier: Apache-2.0
"""Servers that move between real libvirt hosts, and what is left on either when it goes wrong.

That a guest is the same run as before is told by its beats, which count on from where they were.
"""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from nova_lite import conf as nova_conf
from nova_lite import exception
from nova_lite.compute.metadata import MetadataDrive
from nova_lite.image import qemu_img
from nova_lite.network.bridge import mac_address, port_id
from nova_lite.objects import instance as states
from nova_lite.objects.instance import Instance
from nova_lite.objects.move import ABORT, FORCE_COMPLETE, Progress
from nova_lite.virt.driver import Vif
from tests.fixtures import guest as nano
from tests.fixtures.hosts import Host, Hosts
from tests.fixtures.libvirtd import wait_until
from tests.libvirt.conftest import flavor, make_instance, wait_for_console

MIB = 1 << 20
GIB = 1 << 30

# Data in the middle of the root disk, where the image has none.
OFFSET = 512 << 10
ROOT_DISK = "/machine/peripheral/virtio-disk0/virtio-backend"


@dataclass
class Side:
    """One host with its driver."""

    host: Host
    driver: Any
    options: dict[tuple[str | None, str], Any]
    instances: Path
    images: Path

    def directory(self, instance: Instance) -> Path:
        """The directory of the instance on this host."""
        return self.instances / instance.uuid

    def image(self) -> Path:
        """The image in this host's cache."""
        return self.images / "nano"

    def beats(self, instance: Instance) -> list[int]:
        """The beats of the guest that are in this host's console log."""
        return nano.beats(self.driver.console_output(instance, None))

    def is_running(self, instance: Instance) -> bool:
        return bool(self.driver.power_state(instance) == states.RUNNING)

    def has_nothing_of(self, instance: Instance) -> bool:
        """Whether neither a domain nor a file is left."""
        files = [path.name for path in self.instances.glob("*") if instance.uuid in path.name]
        return self.driver.domain(instance.uuid) is None and not files and not self.pools()

    def pools(self) -> str:
        return self.host.run(["virsh", "pool-list", "--all", "--name"]).strip()


MakeSides = Callable[..., list[Side]]


@pytest.fixture
def sides(hosts: Hosts, image: Path, tmp_path: Path) -> Iterator[MakeSides]:
    """Start a driver for each host: with disks of its own, or shared ones.

    Keywords are options of [libvirt], or functions that return one for a host.
    """
    from nova_lite.virt.libvirt.driver import LibvirtDriver

    made: list[Side] = []

    def make(shared: bool = False, **options: Any) -> list[Side]:
        for host in hosts.all:
            state = tmp_path / host.hostname
            where = tmp_path / "shared" if shared else state
            values: dict[tuple[str | None, str], Any] = {
                (None, "host"): f"compute-{host.hostname}",
                (None, "state_path"): str(state),
                ("compute", "instances_path"): str(where / "instances"),
                ("libvirt", "connection_uri"): host.uri,
                ("libvirt", "live_migration_uri"): "qemu+tcp://%s/system",
                ("libvirt", "disk_transfer_uri"): host.uri,
                ("libvirt", "virt_type"): "qemu",
                ("libvirt", "live_migration_unsafe"): shared,
                **{("libvirt", name): value(host) if callable(value) else value for name, value in options.items()},
            }
            conf = cfg.ConfigOpts()
            nova_conf.register(conf)
            conf([], project="nova-lite", default_config_files=[])
            for (group, name), value in values.items():
                conf.set_override(name, value, group)
            driver = LibvirtDriver(conf)
            driver.start(lambda _uuid: None)
            (where / "images").mkdir(parents=True, exist_ok=True)
            shutil.copy(image, where / "images/nano")
            made.append(Side(host, driver, values, where / "instances", where / "images"))
        return made

    yield make
    for side in made:
        for domain in side.driver.domains():
            side.driver.destroy(make_instance(uuid=domain.uuid))
        side.driver.stop()


def spawn(side: Side, instance: Instance, vifs: list[Vif] | None = None) -> None:
    """Make the server, and return when its guest runs."""
    side.driver.spawn(instance, side.image(), vifs or [], MetadataDrive(instance))
    wait_for_console(side.driver, instance, nano.READY)


def spawn_with_data(
    side: Side, instance: Instance, data: int, length: int = MIB, vifs: list[Vif] | None = None
) -> None:
    """Make the server with this byte all over a part of its disk, as if the guest had written it."""
    spawn(side, instance, vifs)
    for command in (f"write -P {data} {OFFSET} {length}", "flush"):
        monitor = ["virsh", "qemu-monitor-command", f"instance-{instance.uuid}", "--hmp"]
        side.host.run([*monitor, f'qemu-io -d {ROOT_DISK} "{command}"'])
    assert holds(side.directory(instance) / "disk", data, length)


def write(disk: Path, data: int, length: int = MIB) -> None:
    """Write this byte to a part of the disk, that no guest has open."""
    qemu_io(["-f", "qcow2", "-c", f"write -P {data} {OFFSET} {length}", str(disk)])


def holds(disk: Path, data: int, length: int = MIB) -> bool:
    """Tell whether that part of the disk has this byte all over."""
    return "verification failed" not in qemu_io(
        ["-U", "-r", "-f", "qcow2", "-c", f"read -P {data} {OFFSET} {length}", str(disk)]
    )


def qemu_io(arguments: list[str]) -> str:
    done = subprocess.run(["qemu-io", *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert "can't open" not in done.stderr + done.stdout, done.stderr
    return done.stdout + done.stderr


def virtual_size(disk: Path) -> int:
    return int(qemu_img.info(disk, "qcow2")["virtual-size"])


def prepare(
    side: Side, instance: Instance, live: bool = False, image: bool = True, vifs: list[Vif] | None = None
) -> Any:
    """Prepare the destination as the compute service does; what it answers goes over the bus as JSON."""
    base, drive = side.image() if image else None, MetadataDrive(instance)
    return json.loads(json.dumps(side.driver.prepare_destination(instance, base, vifs or [], drive, live)))


def cold_migrate(
    source: Side, target: Side, instance: Instance, moved: Instance, image: bool = True, timeout: float = 0
) -> Any:
    destination = prepare(target, moved, image=image)
    for _ in range(2):  # as after a lost answer
        source.driver.move_out(instance, destination, timeout)
    finish(target, moved, destination, image)
    return destination


def finish(target: Side, moved: Instance, destination: Any, image: bool = True) -> None:
    given = target.image() if image else None
    target.driver.finish_migration(moved, destination, given, [], MetadataDrive(moved), True)
    wait_until(lambda: target.is_running(moved), "the guest to run at the destination")


def no_wish(_progress: Progress) -> str:
    return ""


def live_migrate(
    source: Side, target: Side, instance: Instance, watch: Any = no_wish, vifs: list[Vif] | None = None
) -> None:
    """Migrate as the core does, and make sure that it is the same run of the guest that goes on there."""
    before = source.beats(instance)[-1]
    destination = prepare(target, instance, live=True, vifs=vifs)
    source.driver.live_migrate(instance, destination, watch)
    target.driver.land(instance, vifs or [], None)
    source.driver.clean(instance, destination)
    assert source.driver.domain(instance.uuid) is None
    assert target.is_running(instance)
    wait_until(lambda: max(target.beats(instance), default=0) > before, "the guest to go on at the destination")


def wait_for_beats(side: Side, instance: Instance, count: int = 2) -> None:
    wait_until(lambda: len(side.beats(instance)) >= count, "the guest's heart")


# -- cold ----------------------------------------------------------------------------------------------------------


def test_cold_migration_brings_the_disks(sides: MakeSides) -> None:
    n1, n2, _ = sides()
    instance = make_instance(flavor=flavor(ephemeral_gb=1, swap_mb=8))
    moved = make_instance(uuid=instance.uuid, flavor=flavor(root_gb=2, ephemeral_gb=2, swap_mb=16))
    spawn_with_data(n1, instance, 0x5A)

    destination = cold_migrate(n1, n2, instance, moved, timeout=30)

    wait_for_console(n2.driver, moved, nano.READY)
    assert nano.BYE in n1.driver.console_output(instance, None), "the guest was not asked"
    there = n2.directory(moved)
    assert holds(there / "disk", 0x5A)
    assert [virtual_size(there / name) for name in ("disk", "disk.eph0")] == [2 * GIB, 2 * GIB]
    assert (there / "disk.swap").stat().st_size == 16 * MIB
    assert n1.driver.power_state(instance) == states.SHUTDOWN, "all that it takes to go back stays"
    assert (n2.pools(), list(n2.instances.glob(".moving*"))) == ("", [])
    finish(n2, moved, destination)  # once more is no error
    back = prepare(n1, moved)
    with pytest.raises(exception.MigrationFailed, match="compute-n1 has not yet removed"):
        n2.driver.move_out(moved, back, 0)
    assert n2.is_running(moved)

    n1.driver.clean(instance, destination)

    assert n1.has_nothing_of(instance)
    assert n2.is_running(moved)


def test_cold_migration_is_reverted(sides: MakeSides) -> None:
    """The destination has no base image here, so that the source brings it."""
    n1, n2, _ = sides()
    instance = make_instance()
    spawn_with_data(n1, instance, 0x11)
    destination = cold_migrate(n1, n2, instance, instance, image=False)
    wait_for_console(n2.driver, instance, nano.READY)
    assert holds(n2.directory(instance) / "disk", 0x11)
    n2.driver.power_off(instance, 0)
    write(n2.directory(instance) / "disk", 0x22)

    for _ in range(2):
        n2.driver.discard(instance, destination)
        n1.driver.restore(instance, destination, power_on=True)

    assert n2.has_nothing_of(instance)
    assert n1.is_running(instance)
    assert holds(n1.directory(instance) / "disk", 0x11)
    assert not (n1.directory(instance) / "disk.flat").exists()
    wait_for_console(n1.driver, instance, nano.READY, count=2)


@pytest.mark.long
@pytest.mark.parametrize("shared", [False, True])
def test_resize_of_shared_disks_is_reverted_and_confirmed(sides: MakeSides, shared: bool) -> None:
    """On the same host, and between two hosts that share their storage."""
    n1, n2, _ = sides(shared=shared)
    target = n2 if shared else n1
    instance = make_instance(flavor=flavor(swap_mb=8))
    moved = make_instance(uuid=instance.uuid, flavor=flavor(root_gb=2, ephemeral_gb=1))
    spawn_with_data(n1, instance, 0x33)
    disk = n1.directory(instance) / "disk"
    with pytest.raises(exception.MigrationFailed, match="root disk has 1 GiB"):
        prepare(target, make_instance(uuid=instance.uuid, flavor=flavor(root_gb=1)), image=True)
        n1.driver.move_out(instance, {**prepare(target, moved), "wanted": {"disk": MIB}}, 0)

    destination = cold_migrate(n1, target, instance, moved)
    assert (destination["same_host"], destination["shared"]) == (not shared, True)
    assert virtual_size(disk) == 2 * GIB
    target.driver.power_off(instance, 0)
    write(disk, 0x44)

    for _ in range(2):
        target.driver.discard(moved, destination)
        n1.driver.restore(instance, destination, power_on=True)

    assert n1.is_running(instance)
    assert (virtual_size(disk), holds(disk, 0x33)) == (GIB, True)
    assert sorted(path.name for path in disk.parent.glob("disk*")) == ["disk", "disk.config", "disk.swap"]
    assert [path.name for path in n1.instances.glob("*")] == [instance.uuid]
    assert n1.driver.remains() == []

    destination = cold_migrate(n1, target, instance, moved)
    for _ in range(2):
        n1.driver.clean(instance, destination)

    assert target.is_running(moved)
    assert (virtual_size(disk), holds(disk, 0x33)) == (2 * GIB, True)
    assert [path.name for path in n1.instances.glob("*")] == [instance.uuid]
    assert n1.driver.remains() == []


def test_disk_that_would_shrink_stays_where_it_is(sides: MakeSides) -> None:
    n1, n2, _ = sides()
    instance, smaller = make_instance(flavor=flavor(root_gb=2)), flavor(root_gb=1)
    spawn(n1, instance)
    small = make_instance(uuid=instance.uuid, flavor=smaller)

    with pytest.raises(exception.MigrationFailed, match="root disk has 2 GiB, and the new flavor 1"):
        n1.driver.move_out(instance, prepare(n2, small), 0)
    with pytest.raises(exception.MigrationFailed, match="root disk has 2 GiB, and the new flavor 1"):
        prepare(n1, small)

    assert n1.is_running(instance)


def test_destination_that_cannot_take_it_is_left_empty(sides: MakeSides) -> None:
    n1, n2, _ = sides()
    instance = make_instance()
    spawn(n1, instance)
    n2.image().write_bytes(b"")

    with pytest.raises(exception.BuildFailed, match="empty"):
        prepare(n2, instance, live=True)

    assert n2.has_nothing_of(instance)


def test_transfer_that_breaks_leaves_nothing(sides: MakeSides) -> None:
    """The destination's disk is full in the middle of it."""
    n1, n2, _ = sides()
    instance = make_instance()
    spawn_with_data(n1, instance, 0x55)
    destination = prepare(n2, instance)
    small = f"mount -t tmpfs -o size=300k tmpfs {destination['directory']}"
    n2.host.run(small.split())
    try:
        with pytest.raises(exception.MigrationFailed, match="could not be brought to host n2.*No space") as failure:
            n1.driver.move_out(instance, destination, 0)
        assert str(n2.instances) not in str(failure.value), "a path of the host is shown to the user"
        assert n2.host.run(["ls", destination["directory"]]) == ""
    finally:
        n2.host.run(["umount", destination["directory"]])
    with pytest.raises(exception.MigrationFailed, match="have not come"):
        finish(n2, instance, destination)

    n2.driver.discard(instance, destination)
    n1.driver.restore(instance, destination, power_on=True)

    assert n2.has_nothing_of(instance)
    assert n1.is_running(instance)


@pytest.mark.long
def test_transfer_to_a_daemon_that_hangs_is_given_up(sides: MakeSides) -> None:
    n1, n2, _ = sides(transfer_stall_timeout=1.0)
    instance = make_instance()
    spawn(n1, instance)
    destination = prepare(n2, instance)
    n2.host.suspend()
    try:
        with pytest.raises(exception.MigrationFailed, match="host n2 stood still for 1 s"):
            n1.driver.move_out(instance, destination, 0)
    finally:
        n2.host.resume()

    n2.driver.discard(instance, destination)
    n1.driver.restore(instance, destination, power_on=False)

    wait_until(lambda: n2.has_nothing_of(instance), "the destination to be clean")
    assert n1.driver.power_state(instance) == states.SHUTDOWN


# -- live ----------------------------------------------------------------------------------------------------------


def test_live_migration_round_the_ring_on_shared_disks(sides: MakeSides) -> None:
    n1, n2, n3 = sides(shared=True)
    instance = make_instance()
    spawn(n1, instance)
    wait_for_beats(n1, instance)

    for source, target in ((n1, n2), (n2, n3), (n3, n1)):
        live_migrate(source, target, instance)
        assert [side.driver.remains() for side in (n1, n2, n3)] == [[], [], []]
        assert not list(target.instances.glob(".moving*"))

    assert n1.driver.console_output(instance, None).count(nano.READY) == 1
    n1.driver.reboot(instance, hard=True, timeout=0)  # it lasts, and starts from what it was
    wait_for_console(n1.driver, instance, nano.READY, count=2)
    n1.driver.destroy(instance)
    assert n1.has_nothing_of(instance)


def test_live_migration_round_the_ring_with_its_disks(sides: MakeSides) -> None:
    """Disks, bridges and the address of the screen are each host's own."""
    n1, n2, n3 = sides(vnc_listen=lambda host: host.address, live_migration_inbound_addr=lambda host: host.address)
    instance = make_instance(flavor=flavor(ephemeral_gb=1, swap_mb=1))
    vifs = {
        side.host: [Vif(port_id(instance.uuid), mac_address(instance.uuid), f"br-{side.host.hostname}")]
        for side in (n1, n2, n3)
    }
    for host, [vif] in vifs.items():
        host.run(["ip", "link", "add", str(vif.bridge), "type", "bridge"])
    spawn_with_data(n1, instance, 0x66, vifs=vifs[n1.host])
    wait_for_beats(n1, instance)
    seen: list[Progress] = []

    def watch(progress: Progress) -> str:
        seen.append(progress)
        return ""

    for source, target in ((n1, n2), (n2, n3), (n3, n1)):
        live_migrate(source, target, instance, watch, vifs[target.host])
        assert source.has_nothing_of(instance)
        assert holds(target.directory(instance) / "disk", 0x66)
        assert nano.READY not in target.driver.console_output(instance, None)
        assert (target.directory(instance) / "disk.config").stat().st_size
        assert f"tap{vifs[n1.host][0].port[:11]}" in target.host.run(["ip", "link", "show", "type", "tun"])
        assert target.host.address in target.host.run(["virsh", "domdisplay", f"instance-{instance.uuid}"])

    assert any(progress.memory_total or progress.disk_total for progress in seen)
    n1.driver.reboot(instance, hard=True, timeout=0)
    wait_for_console(n1.driver, instance, nano.READY)
    assert n1.host.address in n1.host.run(["virsh", "domdisplay", f"instance-{instance.uuid}"])


def test_guest_that_is_paused_stays_so(sides: MakeSides) -> None:
    n1, n2, _ = sides(shared=True)
    instance = make_instance()
    spawn(n1, instance)
    n1.driver.pause(instance)
    before = len(n1.beats(instance))
    destination = prepare(n2, instance, live=True)

    n1.driver.live_migrate(instance, destination, no_wish)
    n2.driver.land(instance, [], None)

    assert n2.driver.power_state(instance) == states.POWER_PAUSED
    assert len(n2.beats(instance)) == before
    n2.driver.unpause(instance)
    wait_for_beats(n2, instance, before + 1)
    assert n2.driver.console_output(instance, None).count(nano.READY) == 1


def test_unsafe_migration_is_libvirt_s_to_refuse(sides: MakeSides) -> None:
    n1, n2, _ = sides(shared=True, live_migration_unsafe=False)
    instance = make_instance()
    spawn(n1, instance)

    for _ in range(2):  # it has not begun, so that it may be tried again
        with pytest.raises(exception.MigrationFailed, match="Migration without shared storage is unsafe"):
            n1.driver.live_migrate(instance, prepare(n2, instance, live=True), no_wish)

    assert n1.is_running(instance)
    assert n2.driver.domain(instance.uuid) is None


def test_live_migration_is_aborted(sides: MakeSides) -> None:
    n1, n2, _ = sides(live_migration_bandwidth=1)
    instance = make_instance()
    spawn_with_data(n1, instance, 0x77, 20 * MIB)
    wait_for_beats(n1, instance)
    destination = prepare(n2, instance, live=True)

    for _ in range(2):  # asked again, it says the same again, and begins nothing
        with pytest.raises(exception.MigrationAborted):
            n1.driver.live_migrate(instance, destination, lambda _progress: ABORT)

    assert n1.is_running(instance)
    wait_for_beats(n1, instance, len(n1.beats(instance)) + 1)
    wait_until(lambda: n2.driver.domain(instance.uuid) is None, "the destination's libvirt to clean up")
    n2.driver.discard(instance, destination)
    assert n2.has_nothing_of(instance)


@pytest.mark.long
@pytest.mark.parametrize("post_copy", [False, True])
def test_live_migration_is_forced_to_complete(sides: MakeSides, post_copy: bool) -> None:
    n1, n2, _ = sides(shared=True, live_migration_bandwidth=1, live_migration_permit_post_copy=post_copy)
    instance = make_instance()
    spawn(n1, instance)
    wait_for_beats(n1, instance)

    live_migrate(n1, n2, instance, lambda _progress: FORCE_COMPLETE)

    assert n2.driver.console_output(instance, None).count(nano.READY) == 1


@pytest.mark.long
@pytest.mark.parametrize(("shared", "die"), [(True, Host.lose_power), (False, Host.kill_all)])
def test_guest_stays_when_its_destination_dies(sides: MakeSides, shared: bool, die: Callable[[Host], None]) -> None:
    """Unseen, with the cable cut, while memory is copied; or with all connections closed, while disks are.

    Other combinations are left out: QEMU 7.2 stands still, and its guest as well, while it waits for the kernel to give
    up a connection that disks are copied over, or the last of the memory.
    """
    n1, _, n3 = sides(shared=shared, live_migration_bandwidth=1)
    instance = make_instance()
    spawn_with_data(n1, instance, 0x78, 20 * MIB)
    wait_for_beats(n1, instance)
    destination = prepare(n3, instance, live=True)
    deaths: list[int] = []

    def watch(progress: Progress) -> str:
        if not deaths and (progress.memory_total if shared else progress.disk_processed):
            deaths.extend(n3.host.qemu_pids())
            die(n3.host)
        return ""

    try:
        with pytest.raises(exception.MigrationFailed):
            n1.driver.live_migrate(instance, destination, watch)
    finally:
        n3.host.plug_in_again()
        n3.host.start_daemon()

    assert deaths, "the guest had not yet come to the destination"
    assert n1.is_running(instance)
    wait_for_beats(n1, instance, len(n1.beats(instance)) + 1)
    wait_until(lambda: n3.driver.domain(instance.uuid) is None, "no guest on the destination")
    n3.driver.discard(instance, destination)
    assert shared or n3.has_nothing_of(instance)


@pytest.mark.long
@pytest.mark.parametrize("meanwhile", ["goes on", "has failed", "is done"])
def test_migrating_process_is_killed(sides: MakeSides, meanwhile: str) -> None:
    # The slow one takes a few seconds for its disk; its memory comes over at last, when it may stand still for long.
    n1, n2, _ = sides(live_migration_bandwidth=1 if meanwhile != "is done" else 0, live_migration_downtime=5000)
    instance = make_instance()
    spawn_with_data(n1, instance, 0x79, 2 * MIB if meanwhile == "goes on" else 20 * MIB)
    wait_for_beats(n1, instance)
    before = n1.beats(instance)[-1]
    destination = prepare(n2, instance, live=True)
    begin_and_die(n1, instance, destination)

    if meanwhile == "goes on":
        looks: list[Progress] = []

        def watch(progress: Progress) -> str:
            looks.append(progress)
            return ""

        n1.driver.live_migrate(instance, destination, watch)
        assert looks, "it was not waited for"
    elif meanwhile == "is done":
        wait_until(lambda: n1.driver.domain(instance.uuid) is None, "the end of the migration")
        n1.driver.live_migrate(instance, destination, no_wish)
    else:
        n1.host.run(["virsh", "domjobabort", f"instance-{instance.uuid}"])
        with pytest.raises(exception.MigrationFailed, match="while the compute service was away"):
            wait_and_call_again(n1, instance, destination)
        assert n1.is_running(instance)
        n2.driver.discard(instance, destination)
        assert n2.has_nothing_of(instance)
        return

    n2.driver.land(instance, [], None)
    n1.driver.clean(instance, destination)
    assert n1.has_nothing_of(instance)
    wait_until(lambda: max(n2.beats(instance), default=0) > before, "the guest to go on at the destination")


def begin_and_die(side: Side, instance: Instance, destination: Any) -> None:
    """Begin the migration in a process, and kill that when it has seen the migration run."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.fixtures.live_migrator"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(pickle.dumps((side.options, instance, destination)))
        process.stdin.close()
        for line in process.stdout:
            if b"disk_total=0" not in line:
                break
    finally:
        process.kill()
        process.wait()


def wait_and_call_again(side: Side, instance: Instance, destination: Any) -> None:
    wait_until(
        lambda: "None" in side.host.run(["virsh", "domjobinfo", f"instance-{instance.uuid}"]), "the end of the job"
    )
    side.driver.live_migrate(instance, destination, no_wish)


@pytest.mark.long
def test_guest_stays_when_the_source_s_daemon_restarts(sides: MakeSides) -> None:
    n1, n2, _ = sides(live_migration_bandwidth=1)
    instance = make_instance()
    spawn_with_data(n1, instance, 0x7C, 20 * MIB)
    wait_for_beats(n1, instance)
    destination = prepare(n2, instance, live=True)

    def watch(progress: Progress) -> str:
        if progress.disk_processed:
            n1.host.restart()
        return ""

    with pytest.raises(exception.HypervisorUnavailable):
        n1.driver.live_migrate(instance, destination, watch)
    with pytest.raises(exception.MigrationFailed, match="while the compute service was away"):
        n1.driver.live_migrate(instance, destination, no_wish)

    assert n1.is_running(instance)
    wait_for_beats(n1, instance, len(n1.beats(instance)) + 1)
    n2.driver.discard(instance, destination)
    assert n2.has_nothing_of(instance)


# -- shared storage and remains ------------------------------------------------------------------------------------


def test_server_of_a_dead_host_is_adopted(sides: MakeSides, hosts: Hosts) -> None:
    n1, n2, _ = sides(shared=True)
    instance = make_instance()
    spawn_with_data(n1, instance, 0x7A)
    assert n2.driver.has_disks(instance) and not n1.driver.has_disks(instance)
    assert (n1.driver.remains(), n2.driver.remains()) == ([], [])
    n1.host.run(["virsh", "destroy", f"instance-{instance.uuid}"])

    for _ in range(2):
        n2.driver.adopt(instance, [], MetadataDrive(instance), power_on=True)

    wait_for_console(n2.driver, instance, nano.READY, count=2)
    assert holds(n2.directory(instance) / "disk", 0x7A)
    assert not n2.driver.has_disks(instance), "its domain is here"

    n1.driver.clean(instance, {"shared": True})
    n1.driver.destroy(instance)  # not even a mistake removes the other host's disks

    assert n1.driver.domain(instance.uuid) is None
    assert n2.is_running(instance) and holds(n2.directory(instance) / "disk", 0x7A)


def test_remains_are_neither_taken_for_shared_disks_nor_kept(sides: MakeSides) -> None:
    n1, n2, _ = sides()
    instance = make_instance()
    spawn_with_data(n1, instance, 0x7B)
    shutil.copytree(n1.directory(instance), n2.directory(instance))

    destination = prepare(n2, instance, live=True)
    with pytest.raises(exception.MigrationFailed, match="compute-n2 has disks of it"):
        n1.driver.live_migrate(instance, destination, no_wish)
    assert n1.is_running(instance)
    n2.driver.discard(instance, destination)

    (n2.directory(instance) / "owner").write_text("compute-n2")
    (n2.instances / f"{instance.uuid}_resize").mkdir()
    assert [domain.uuid for domain in n2.driver.remains()] == [instance.uuid]
    assert not n2.driver.has_disks(instance)
    with pytest.raises(exception.BuildFailed, match="not on storage that the host shares"):
        n2.driver.adopt(instance, [], None, power_on=True)

    n2.driver.clean(instance, {})

    assert n2.has_nothing_of(instance)
    assert n1.is_running(instance)
