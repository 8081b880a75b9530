# SPDX-License-Identifier: Apache-2.0
"""The interfaces of where images come from.

A source gives content to compute services; a catalogue also tells the api what there is. The api's own images are
shown from its database, so their directory is a source and no more.
"""

from __future__ import annotations

import abc
import re
from pathlib import Path

from nova_lite import exception
from nova_lite.objects.image import Image

_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,254}")


class ImageServiceUnavailable(exception.NovaLiteError):
    """The image service did not answer, or answered with an error of its own."""

    status = 503
    template = "The image service does not answer: {reason} Try again later."


class ImageSource(abc.ABC):
    """Where the content of images is."""

    @abc.abstractmethod
    def fetch(self, image: Image, destination: Path) -> None:
        """Write the image's content to the destination, a file that may exist and is overwritten.

        :raises ImageUnacceptable: there is no such image any more, or its content is not what it should be.
        :raises BuildFailed: it could not be had this time.
        """


class ImageCatalogue(ImageSource):
    """Where images can be looked up as well."""

    @abc.abstractmethod
    def show(self, token: str | None, image_id: str) -> Image:
        """Return what is known of an image, as the owner of the token may see it.

        :param token: the user's; None to ask with the service's own credentials.
        :raises ImageNotFound: there is none, or the user may not see it.
        :raises Unauthorized: the token has expired in the meantime.
        :raises ImageServiceUnavailable:
        """


def checked_id(image_id: str) -> str:
    """Return the id if it is fit to be a file's name or a part of a URL: users choose it.

    :raises ImageNotFound: it is not, so no image has it.
    """
    if not _ID.fullmatch(image_id):
        raise exception.ImageNotFound(image=image_id)
    return image_id
