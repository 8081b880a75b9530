# SPDX-License-Identifier: Apache-2.0
"""nova_lite beside real Keystone and real Glance: whose tokens count, whose images are seen, and who gets in where.

The hypervisor is fake; what a compute host does with an image is shown on its cache of images.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from oslo_config import cfg

from nova_lite import conf as nova_conf
from nova_lite import exception
from nova_lite.image.cache import ImageCache
from nova_lite.image.driver import ImageServiceUnavailable
from nova_lite.image.glance import GlanceImages
from nova_lite.objects.image import Image
from tests.fixtures.client import ApiError, Client
from tests.fixtures.cloud import Cloud
from tests.fixtures.mariadb import MariaDB
from tests.fixtures.openstack import PASSWORD, Glance, Keystone
from tests.fixtures.rabbitmq import RabbitMQ
from tests.fixtures.stock_client import StockClient

# Each command of the stock client and each start of Keystone takes many seconds on a small machine.
pytestmark = [pytest.mark.timeout(900), pytest.mark.long]

CONTENT = b"a disk" * 1000


class KeystoneCloud(Cloud):
    """A cloud whose users are Keystone's."""

    keystone: Keystone

    def client(self, user: str = "admin") -> Client:
        """Log in; a user's project is the one that people() gives them."""
        return self.client_with(self.keystone.token(user, PROJECTS[user]))

    def client_with(self, token: str) -> Client:
        return Client.with_token(self.url, token)


PROJECTS = {"admin": "admin", "ann": "blue", "rita": "blue", "bob": "red", "nova": "service"}


@pytest.fixture(scope="module")
def people(keystone: Keystone) -> None:
    """ann and rita share a project, rita only reads; nova is the service."""
    for user, role in (("ann", "member"), ("rita", "reader"), ("bob", "member"), ("nova", "admin")):
        keystone.add_user(user, PROJECTS[user], role)


@pytest.fixture(scope="module")
def settings(people: None, keystone: Keystone) -> dict[str, dict[str, str]]:
    """The options of nova_lite that make it use Keystone and Glance."""
    login = keystone.login("nova", "service")
    return {
        "DEFAULT": {"service_down_time": "30"},
        "auth": {"strategy": "keystone"},
        # No cache of tokens, so that a revoked one is refused at once.
        "keystone_authtoken": {**login, "www_authenticate_uri": keystone.auth_url, "token_cache_time": "-1"},
        "image": {"driver": "glance"},
        "glance": {**login, "timeout": "20"},
    }


@pytest.fixture(scope="module")
def cloud(
    mariadb: MariaDB,
    rabbitmq: RabbitMQ,
    keystone: Keystone,
    glance: Glance,
    settings: dict[str, dict[str, str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[KeystoneCloud]:
    database = mariadb.url(mariadb.create_database())
    cloud = KeystoneCloud(tmp_path_factory.mktemp("cloud"), database, rabbitmq.vhost_url(), settings)
    cloud.keystone = keystone
    keystone.add_endpoint("compute", "nova", f"{cloud.url}/v2.1")
    try:
        cloud.start_all(schedulers=1, conductors=1)
        cloud.client().flavor("x.tiny", vcpus=1, ram=64, disk=1)
        yield cloud
    finally:
        cloud.stop()


@pytest.fixture
def images(settings: dict[str, dict[str, str]], glance: Glance, tmp_path: Path) -> GlanceImages:
    """Glance as a compute host uses it."""
    return GlanceImages(_options(settings, tmp_path))


def _options(settings: dict[str, dict[str, str]], directory: Path) -> cfg.ConfigOpts:
    file = directory / "nova-lite.conf"
    file.touch(0o600)
    shown = {"DEFAULT": {"state_path": str(directory)}, "image": settings["image"], "glance": settings["glance"]}
    file.write_text(
        "".join(f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in values.items()) for group, values in shown.items())
    )
    options = cfg.ConfigOpts()
    nova_conf.register(options)
    options([], project="nova-lite", default_config_files=[str(file)])
    return options


def _status(client: Client, method: str, path: str, body: object = None) -> int:
    with pytest.raises(ApiError) as refused:
        client.call(method, path, body)
    return refused.value.status


# --- with the client that everybody has ------------------------------------------------------------------------------


def test_the_stock_client_finds_its_way_from_an_image_to_a_server_and_back(
    cloud: KeystoneCloud, keystone: Keystone, tmp_path: Path
) -> None:
    openstack = StockClient(keystone.auth_url, "ann", PASSWORD, "blue", cloud.logs)
    (tmp_path / "disk").write_bytes(CONTENT)

    image = openstack(f"image create --disk-format raw --container-format bare --file {tmp_path}/disk probe")
    assert image["status"] == "active"
    made = openstack("server create --image probe --flavor x.tiny --nic none --wait first")
    assert made["status"] == "ACTIVE"
    assert [row["Name"] for row in openstack("server list")] == ["first"]
    shown = openstack("server show first")
    assert shown["image"] == f"probe ({image['id']})"
    assert shown["project_id"] == keystone.project("blue")
    openstack("server delete --wait first", form=False)
    assert openstack("server list") == []

    stranger = StockClient(keystone.auth_url, "ann", "not the password", "blue")
    assert "HTTP 401" in stranger.refusal("server list")


# --- tokens ----------------------------------------------------------------------------------------------------------


def test_snapshots_and_backups_of_a_server_are_images_that_servers_boot_from(
    cloud: KeystoneCloud, keystone: Keystone, glance: Glance, tmp_path: Path
) -> None:
    openstack = StockClient(keystone.auth_url, "ann", PASSWORD, "blue", cloud.logs)
    (tmp_path / "disk").write_bytes(CONTENT)
    openstack(f"image create --disk-format raw --container-format bare --file {tmp_path}/disk base")
    server = openstack("server create --image base --flavor x.tiny --nic none --wait origin")

    snapshot = openstack("server image create --wait --name snapshot origin")
    shown = openstack(f"image show {snapshot['id']}")
    assert (shown["status"], shown["disk_format"], shown["owner"]) == ("active", "qcow2", keystone.project("blue"))
    assert shown["properties"]["instance_uuid"] == server["id"]
    (tmp_path / "saved").touch()
    openstack(f"image save --file {tmp_path}/saved snapshot", form=False)
    assert (tmp_path / "saved").read_bytes()[:4] == b"QFI\xfb"

    made = openstack("server create --image snapshot --flavor x.tiny --nic none --wait copy")
    assert made["status"] == "ACTIVE"
    for night in range(3):
        openstack(f"server backup create --name night-{night} --type daily --rotate 2 --wait origin")
    names = [image["Name"] for image in openstack("image list")]
    assert sorted(names) == ["base", "night-1", "night-2", "snapshot"]

    openstack("server delete --wait origin copy", form=False)
    for name in openstack("image list"):
        openstack(f"image delete {name['ID']}", form=False)


def test_a_token_that_is_revoked_expired_or_made_up_is_401(cloud: KeystoneCloud, keystone: Keystone) -> None:
    token = keystone.token("ann", "blue")
    assert cloud.client_with(token).get("/servers") == {"servers": []}
    keystone.revoke(token)

    for bad in (token, keystone.expired_token("ann", "blue"), "made-up", "é", "x" * 5000):
        assert _status(cloud.client_with(bad), "GET", "/servers") == 401, bad


def test_projects_do_not_see_each_other(cloud: KeystoneCloud, keystone: Keystone, glance: Glance) -> None:
    ann, bob = cloud.client("ann"), cloud.client("bob")
    image = glance.upload(keystone.token("ann", "blue"), CONTENT)
    server = ann.boot("private", ann.flavor("x.tiny"), imageRef=image)
    assert ann.call("GET", f"/servers/{server}")["server"]["name"] == "private"

    assert bob.get("/servers/detail") == {"servers": []}
    for method in ("GET", "DELETE"):
        assert _status(bob, method, f"/servers/{server}") == 404
    body = {"server": {"name": "s", "flavorRef": bob.flavor("x.tiny"), "imageRef": image, "networks": "none"}}
    assert _status(bob, "POST", "/servers", body) == 400, "an image that bob cannot see"
    assert _status(bob, "GET", "/servers?all_tenants=1") == 403
    cloud.client().delete([server])


def test_readers_read(cloud: KeystoneCloud, keystone: Keystone, glance: Glance) -> None:
    rita = cloud.client("rita")
    image = glance.upload(keystone.token("ann", "blue"), CONTENT)
    body = {"server": {"name": "s", "flavorRef": rita.flavor("x.tiny"), "imageRef": image, "networks": "none"}}

    assert rita.get("/servers") == {"servers": []}
    assert _status(rita, "POST", "/servers", body) == 403


# --- images ----------------------------------------------------------------------------------------------------------


def test_a_compute_host_fetches_a_private_image(
    images: GlanceImages, settings: dict[str, dict[str, str]], keystone: Keystone, glance: Glance, tmp_path: Path
) -> None:
    token = keystone.token("ann", "blue")
    image = images.show(token, glance.upload(token, CONTENT, name="mine", min_disk=2, hw_disk_bus="scsi"))
    assert (image.name, image.status, image.disk_format, image.size) == ("mine", "active", "raw", len(CONTENT))
    assert (image.min_disk, image.visibility, image.owner) == (2, "shared", keystone.project("blue"))
    assert image.checksum == hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()
    assert image.properties == {"hw_disk_bus": "scsi"}

    path = ImageCache(_options(settings, tmp_path), images).get(image, root_gb=1)

    assert path.read_bytes() == CONTENT


def test_images_are_shown_to_those_who_may_see_them(images: GlanceImages, keystone: Keystone, glance: Glance) -> None:
    token = keystone.token("ann", "blue")
    image = glance.upload(token, CONTENT)

    with pytest.raises(exception.ImageNotFound):
        images.show(keystone.token("bob", "red"), image)
    with pytest.raises(exception.ImageNotFound):
        images.show(token, str(uuid.uuid4()))
    keystone.revoke(token)
    with pytest.raises(exception.Unauthorized):
        images.show("made-up", image)


def test_an_image_without_content_cannot_be_fetched(images: GlanceImages, tmp_path: Path) -> None:
    with pytest.raises(exception.ImageUnacceptable, match="no data"):
        images.fetch(Image(id=str(uuid.uuid4())), tmp_path / "image")


def test_a_glance_that_hangs_does_not_hold_the_caller_for_ever(
    images: GlanceImages, keystone: Keystone, glance: Glance, tmp_path: Path
) -> None:
    token = keystone.token("ann", "blue")
    image = images.show(token, glance.upload(token, CONTENT))
    glance.pause()
    try:
        began = time.monotonic()
        with pytest.raises(ImageServiceUnavailable):
            images.show(token, image.id)
        with pytest.raises(exception.BuildFailed):
            images.fetch(image, tmp_path / "image")
        assert time.monotonic() - began < 180
    finally:
        glance.go_on()


def test_the_configuration_is_one_that_the_check_accepts(cloud: KeystoneCloud) -> None:
    assert "No problem found" in cloud.manage("config", "check")


# --- when Keystone or Glance is away; last, since they are stopped ----------------------------------------------------


def test_without_glance_servers_are_not_created_and_the_user_reads_why(
    cloud: KeystoneCloud, keystone: Keystone, glance: Glance
) -> None:
    ann = cloud.client("ann")
    image = glance.upload(keystone.token("ann", "blue"), CONTENT)
    body = {"server": {"name": "s", "flavorRef": ann.flavor("x.tiny"), "imageRef": image, "networks": "none"}}
    glance.stop()
    try:
        with pytest.raises(ApiError) as refused:
            ann.call("POST", "/servers", body)
    finally:
        glance.serve()
    assert refused.value.status == 503 and "image service" in refused.value.body
    assert ann.get("/servers") == {"servers": []}


def test_without_keystone_requests_are_503_and_later_served_again(cloud: KeystoneCloud, keystone: Keystone) -> None:
    ann = cloud.client("ann")
    keystone.stop()
    try:
        assert _status(ann, "GET", "/servers") == 503
    finally:
        keystone.serve()
    assert ann.get("/servers") == {"servers": []}
