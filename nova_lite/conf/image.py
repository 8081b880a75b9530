# SPDX-License-Identifier: Apache-2.0
"""Options of images: where they come from, and what is accepted."""

from oslo_config import cfg

GROUP = "image"

OPTIONS = [
    cfg.StrOpt(
        "driver",
        default="directory",
        help="Where images come from: directory (kept by the api itself) or glance; entry points in nova_lite.image.",
    ),
    cfg.StrOpt("path", default="$state_path/images", help="directory: where the files of images are kept."),
    cfg.IntOpt(
        "max_size_mb",
        default=102400,
        min=1,
        help="directory: MiB that an uploaded image may have.",
    ),
    cfg.StrOpt("endpoint", help="glance, and compute hosts without a shared path: the URL of the image service."),
]
