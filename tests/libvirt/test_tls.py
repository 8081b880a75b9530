# SPDX-License-Identifier: Apache-2.0
"""Live migration with TLS between the hosts, by the files of etc/libvirt: libvirt's daemons, and QEMU's own traffic."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from nova_lite import exception
from tests.fixtures.certificates import Authority
from tests.fixtures.hosts import Fabric, Host, Hosts
from tests.fixtures.libvirtd import Libvirtd, wait_until
from tests.fixtures.production import ETC
from tests.libvirt.conftest import make_instance
from tests.libvirt.test_migration import (
    MakeSides,
    Side,
    live_migrate,
    no_wish,
    prepare,
    sides,  # noqa: F401 - a fixture, with this module's hosts
    spawn,
)

pytestmark = pytest.mark.long

# Where a host's own /etc/libvirt/pki is for it.
_PKI = "/etc/libvirt/pki"
_URI = f"qemu+tls://%s/system?pkipath={_PKI}"


class TlsHost(Host):
    """A host with certificates for its name, and for another one's QEMU if it is told so."""

    def __init__(
        self, directory: Path, hostname: str, address: str, fabric: Fabric, authority: Authority, of_qemu: Authority
    ) -> None:
        super().__init__(directory, hostname, address, fabric)
        self._authority, self._of_qemu = authority, of_qemu
        text = (ETC / "libvirt" / "libvirtd-tls.conf").read_text()
        for theirs, ours in (
            ("/etc/pki/CA/cacert.pem", "cacert.pem"),
            ("/etc/pki/libvirt/servercert.pem", "servercert.pem"),
            ("/etc/pki/libvirt/private/serverkey.pem", "serverkey.pem"),
        ):
            assert theirs in text
            text = text.replace(theirs, f"{_PKI}/{ours}")
        self.listens = text

    def _write_state(self) -> None:
        super()._write_state()
        pki = self.directory / "etc" / "pki"
        names = (f"DNS:{self.hostname}", f"IP:{self.address}")
        for directory, authority, infix in ((pki, self._authority, ""), (pki / "qemu", self._of_qemu, "-")):
            directory.mkdir()
            mine = authority.issue(self.hostname, *names)
            shutil.copy(authority.ca, directory / f"ca{infix}cert.pem")
            for role in ("server", "client"):
                shutil.copy(mine.cert, directory / f"{role}{infix}cert.pem")
                shutil.copy(mine.key, directory / f"{role}{infix}key.pem")
        with (self.directory / "etc" / "qemu.conf").open("a") as file:
            file.write((ETC / "libvirt" / "qemu-tls.conf").read_text().replace("/etc/pki/qemu", f"{_PKI}/qemu"))


@pytest.fixture(scope="module")
def hosts(libvirtd: Libvirtd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """Three hosts, of which the third has a QEMU that another authority signed for."""
    ours, stranger = Authority(tmp_path_factory.mktemp("ca")), Authority(tmp_path_factory.mktemp("stranger"))

    def make(directory: Path, hostname: str, address: str, fabric: Fabric) -> Host:
        return TlsHost(directory, hostname, address, fabric, ours, stranger if hostname == "n3" else ours)

    made = Hosts(Path(tempfile.mkdtemp(prefix="nova-lite-")), 3, make)
    try:
        made.start()
        yield made
    finally:
        made.stop()
        made.directory.rmdir()


def _inbound(host: Host) -> str:
    return host.hostname


def _start(make: MakeSides) -> list[Side]:
    return make(live_migration_uri=_URI, live_migration_inbound_addr=_inbound, live_migration_with_native_tls=True)


def test_a_guest_moves_over_tls_with_its_disks(sides: MakeSides) -> None:  # noqa: F811
    n1, n2, _ = _start(sides)
    instance = make_instance()
    spawn(n1, instance)
    wait_until(lambda: bool(n1.beats(instance)), "the guest's first beat")

    live_migrate(n1, n2, instance)

    assert n2.is_running(instance) and not n1.is_running(instance)


def test_a_guest_does_not_go_to_a_host_of_strangers(sides: MakeSides) -> None:  # noqa: F811
    n1, _, n3 = _start(sides)
    instance = make_instance()
    spawn(n1, instance)

    # The daemons know each other: it is QEMU that does not.
    n1.host.run(["virsh", "-c", _URI % n3.host.hostname, "version"])
    destination = prepare(n3, instance, live=True)
    with pytest.raises(exception.NovaLiteError, match="hasn't got a known issuer"):
        n1.driver.live_migrate(instance, destination, no_wish)

    assert n1.is_running(instance)


def test_nobody_without_a_certificate_speaks_to_a_daemon(hosts: Hosts) -> None:
    n1, n2, _ = hosts.all
    n1.run(["virsh", "-c", f"qemu+tls://{n2.hostname}/system?pkipath={_PKI}", "version"])
    for uri in (f"qemu+tcp://{n2.hostname}/system", f"qemu+tls://{n2.hostname}/system?pkipath={_PKI}/nothing"):
        with pytest.raises(Exception, match="exited with 1"):
            n1.run(["virsh", "-c", uri, "version"])
