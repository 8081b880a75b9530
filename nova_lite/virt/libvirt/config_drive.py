# SPDX-License-Identifier: Apache-2.0
"""Files to an ISO 9660 image with the label config-2, by which guests find their config drive.

Names are kept in Rock Ridge and Joliet; ISO 9660's own, which nothing reads, are numbered.
"""

from __future__ import annotations

import io
import os
from pathlib import Path, PurePosixPath

import pycdlib

LABEL = "config-2"


def write(files: dict[str, bytes], destination: Path) -> None:
    """Write the files, path below the root -> content, to an image that only its owner may read.

    User data often hold secrets, hence the mode. The image appears whole or not at all.
    """
    partial = destination.with_name(destination.name + ".partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as output:
        image = _build(files)
        try:
            image.write_fp(output)
        finally:
            image.close()
    partial.rename(destination)


def _build(files: dict[str, bytes]) -> pycdlib.PyCdlib:
    image = pycdlib.PyCdlib()
    image.new(interchange_level=4, vol_ident=LABEL, rock_ridge="1.09", joliet=3)
    directories = {PurePosixPath("/"): ""}
    for number, (name, content) in enumerate(sorted(files.items())):
        path = PurePosixPath("/", name)
        parent = _ensure_directory(image, path.parent, directories)
        image.add_fp(
            io.BytesIO(content),
            len(content),
            f"{parent}/F{number:06d}.;1",
            rr_name=path.name,
            joliet_path=str(path),
            file_mode=0o100444,
        )
    return image


def _ensure_directory(image: pycdlib.PyCdlib, path: PurePosixPath, directories: dict[PurePosixPath, str]) -> str:
    """Add the directory unless it is there, and return its ISO 9660 name."""
    if path not in directories:
        name = f"{_ensure_directory(image, path.parent, directories)}/D{len(directories):06d}"
        image.add_directory(name, rr_name=path.name, joliet_path=str(path), file_mode=0o040555)
        directories[path] = name
    return directories[path]
