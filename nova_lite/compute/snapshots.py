# SPDX-License-Identifier: Apache-2.0
"""Images of servers on this host: the disk as it is now, to a file, to where images are kept.

The image is there before this begins, without content. Whatever fails removes the file, and what the image service has
of it; the conductor removes the image that the api's own database has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from oslo_config import cfg
from oslo_log import log

from nova_lite.compute.work import Work
from nova_lite.exception import NovaLiteError
from nova_lite.image.driver import ImageSource
from nova_lite.objects import instance as states
from nova_lite.objects.action import ActionRequest
from nova_lite.virt.driver import Driver

LOG = log.getLogger(__name__)


class Snapshots:
    """Makes images of the servers of one compute process.

    :param progress: is told the operation, its new task_state, and whether the image is to be shown as being saved.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        driver: Driver,
        images: ImageSource,
        work: Work,
        progress: Callable[[str, str, bool], None],
    ) -> None:
        self._directory = Path(conf.compute.snapshots_path)
        self._driver = driver
        self._images = images
        self._work = work
        self._progress = progress

    def create_image(self, request: ActionRequest) -> dict[str, Any]:
        """Make an image of the server, which goes on as it was; return what is known of the content."""
        result = self.take(request, states.IMAGE_UPLOADING)
        backup = request.arguments.get("backup")
        if backup:
            self._images.rotate(backup["properties"], backup["rotation"])
        return result

    def take(self, request: ActionRequest, uploading: str) -> dict[str, Any]:
        """Fill the image that the request names with the server's disk.

        :param uploading: the task_state from when the copy is on its way.
        :raises SnapshotFailed: nothing is left of it.
        """
        instance, image_id = request.instance, str(request.arguments["image_id"])
        try:
            with self._room(image_id) as path:
                self._driver.snapshot(instance, path, lambda: self._work.is_doomed(instance.uuid))
                self._progress(request.operation, uploading, not self._images.keeps_status)
                content = self._images.upload(image_id, path)
        except NovaLiteError:
            self.discard(image_id)
            raise
        LOG.info("Image made instance=%s image=%s", instance.uuid, image_id)
        return {"content": asdict(content) if content else None}

    def discard(self, image_id: str) -> None:
        """Remove an image that nobody wants any more; only a pity if it fails."""
        try:
            self._images.delete(image_id)
        except NovaLiteError as error:
            LOG.warning("Image left behind image=%s reason=%s", image_id, error)

    @contextmanager
    def _room(self, image_id: str) -> Iterator[Path]:
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._directory / f"{image_id}.qcow2"
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)
