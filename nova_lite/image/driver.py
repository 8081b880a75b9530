# SPDX-License-Identifier: Apache-2.0
"""The interfaces of where images come from.

A source gives content to compute services; a catalogue also tells the api what there is. The api's own images are
shown from its database, so their directory is a source and no more.
"""

from __future__ import annotations

import abc
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from nova_lite import exception
from nova_lite.objects.image import CatalogueEntry, CatalogueSearch, Content, Image

_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,254}")


class ImageServiceUnavailable(exception.NovaLiteError):
    """The image service did not answer, or answered with an error of its own."""

    status = 503
    template = "The image service does not answer: {reason} Try again later."


class ImageSource(abc.ABC):
    """Where the content of images is."""

    #: Whether the image service itself says that an image's content is on its way; otherwise the conductor does.
    keeps_status: ClassVar[bool] = True

    @abc.abstractmethod
    def fetch(self, image: Image, destination: Path) -> None:
        """Write the image's content to the destination, a file that may exist and is overwritten.

        :raises ImageUnacceptable: there is no such image any more, or its content is not what it should be.
        :raises BuildFailed: it could not be had this time.
        """

    @abc.abstractmethod
    def upload(self, image_id: str, path: Path) -> Content | None:
        """Give an image that waits for its content that of a file; done before is no error.

        :returns: what is to be noted of the content; None if the image service has done that itself.
        :raises SnapshotFailed: it did not take it.
        """

    @abc.abstractmethod
    def delete(self, image_id: str) -> None:
        """Remove an image, or what there is of its content; no error if there is none.

        :raises ImageServiceUnavailable:
        """

    @abc.abstractmethod
    def rotate(self, properties: Mapping[str, str], keep: int) -> None:
        """Remove the oldest of the images that have these properties but for as many; the conductor does it for rows.

        :raises ImageServiceUnavailable:
        """


class ImageCatalogue(ImageSource):
    """Where images can be looked up as well."""

    def show(self, token: str | None, image_id: str) -> Image:
        """Return what is known of an image, as the owner of the token may see it; arguments and errors are entry's."""
        return self.entry(token, image_id).image

    @abc.abstractmethod
    def entry(self, token: str | None, image_id: str) -> CatalogueEntry:
        """Return an image as the owner of the token may see it.

        :param token: the user's; None to ask with the service's own credentials.
        :raises ImageNotFound: there is none, or the user may not see it.
        :raises Unauthorized: the token has expired in the meantime.
        :raises ImageServiceUnavailable:
        """

    @abc.abstractmethod
    def search(self, token: str | None, wanted: CatalogueSearch) -> list[CatalogueEntry]:
        """List images that the owner of the token may see.

        :raises BadRequest: the marker is no image.
        :raises Unauthorized: the token has expired in the meantime.
        :raises ImageServiceUnavailable:
        """

    @abc.abstractmethod
    def set_properties(self, token: str | None, image_id: str, properties: Mapping[str, str]) -> None:
        """Give an image these free properties in the place of those that it has.

        :raises ImageNotFound: there is none, or the user may not see it.
        :raises BadRequest: one has the name of something that is no free property.
        :raises Forbidden, Unauthorized: the user may not.
        :raises ImageServiceUnavailable:
        """

    @abc.abstractmethod
    def remove(self, token: str, image_id: str) -> None:
        """Remove an image on behalf of the owner of the token.

        :raises ImageNotFound: there is none, or the user may not see it.
        :raises Forbidden, Unauthorized: the user may not.
        :raises ImageServiceUnavailable:
        """

    @abc.abstractmethod
    def create(self, token: str | None, image: Mapping[str, Any]) -> str:
        """Make an image without content, owned by the owner of the token; return its id.

        :param image: name, formats, visibility, min_disk (GiB), min_ram (MiB) and properties.
        :raises Forbidden, Unauthorized: the user may not.
        :raises ImageServiceUnavailable:
        """

    @abc.abstractmethod
    def location(self, image_id: str) -> str:
        """Return the image's address."""


def checked_id(image_id: str) -> str:
    """Return the id if it is fit to be a file's name or a part of a URL: users choose it.

    :raises ImageNotFound: it is not, so no image has it.
    """
    if not _ID.fullmatch(image_id):
        raise exception.ImageNotFound(image=image_id)
    return image_id
