# SPDX-License-Identifier: Apache-2.0
"""Options of images: where they come from, and what is accepted."""

from keystoneauth1 import loading
from oslo_config import cfg

GROUP = "image"
GLANCE_GROUP = "glance"

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
        help="MiB that the file of an image may have, uploaded or fetched.",
    ),
    cfg.StrOpt(
        "endpoint",
        help="glance, and compute hosts without a shared path: the URL of the image service. Unset, it is looked up in "
        "the identity service's catalogue.",
    ),
    cfg.FloatOpt(
        "fetch_timeout",
        default=3600.0,
        min=1,
        max=86400,
        help="glance: seconds that fetching one image may take.",
    ),
]


def register_glance(conf: cfg.ConfigOpts) -> None:
    """Register keystoneauth1's options for the service's login at Glance, in the group [glance]."""
    loading.register_auth_conf_options(conf, GLANCE_GROUP)
    loading.register_session_conf_options(conf, GLANCE_GROUP)
    loading.register_adapter_conf_options(conf, GLANCE_GROUP)
