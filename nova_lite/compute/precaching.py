# SPDX-License-Identifier: Apache-2.0
"""Fetching images before they are needed, so that the first servers of an image start as fast as those after them.

One after another, so that a host that is told to get many still has hands and network for builds. Nobody waits for it,
and nothing is lost with it: whoever needs an image that is not there fetches it then.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from oslo_log import log

from nova_lite import exception
from nova_lite.image.cache import ImageCache
from nova_lite.objects.image import Image

LOG = log.getLogger(__name__)


class Precaching:
    """The images that this host still has to fetch, and the thread that does."""

    def __init__(self, images: ImageCache) -> None:
        self._images = images
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="precaching")

    def cache(self, images: Sequence[Image]) -> None:
        """Fetch these images as well, in time."""
        for image in images:
            self._pool.submit(self._fetch, image)

    def stop(self) -> None:
        """Finish the image that is being fetched, and leave the others."""
        self._pool.shutdown(cancel_futures=True)

    def _fetch(self, image: Image) -> None:
        try:
            self._images.get(image, 0)
        except exception.NovaLiteError as error:
            LOG.warning("image not cached image=%s reason=%s", image.id, error)
