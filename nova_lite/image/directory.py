# SPDX-License-Identifier: Apache-2.0
"""Images as files of a directory, named by their ids: the api's own store, on its host or on a shared file system."""

from __future__ import annotations

import shutil
from pathlib import Path

from oslo_config import cfg

from nova_lite import exception
from nova_lite.image.driver import ImageSource, checked_id
from nova_lite.objects.image import Image


class DirectoryImages(ImageSource):
    """The files in [image] path."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._directory = Path(conf.image.path)

    def fetch(self, image: Image, destination: Path) -> None:
        source = self._directory / checked_id(image.id)
        try:
            shutil.copyfile(source, destination)
        except FileNotFoundError:
            raise exception.ImageUnacceptable(
                image=image.id, reason="its file is not in the directory of images on the host."
            ) from None
        except OSError as error:
            raise exception.BuildFailed(
                reason=f"image {image.id} could not be copied to the host ({error.strerror})."
            ) from error
