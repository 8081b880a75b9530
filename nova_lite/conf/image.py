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


# Seconds without a byte from Glance; keystoneauth1 by itself would wait for ever.
_GLANCE_TIMEOUT = 60


def _glance_options() -> list[cfg.Opt]:
    """keystoneauth1's options of a session and of how a service is found, with defaults that suit Glance."""
    session = loading.get_session_conf_options()
    cfg.set_defaults(session, timeout=_GLANCE_TIMEOUT)
    adapter = loading.get_adapter_conf_options(include_deprecated=False)
    cfg.set_defaults(adapter, service_type="image", valid_interfaces=["internal", "public"])
    return [*session, *adapter]


def register_glance(conf: cfg.ConfigOpts) -> None:
    """Register keystoneauth1's options for the service's login at Glance, in the group [glance]."""
    loading.register_auth_conf_options(conf, GLANCE_GROUP)
    conf.register_opts(_glance_options(), group=GLANCE_GROUP)


def list_glance() -> list[cfg.Opt]:
    """Give every option of [glance] for the sample; of ways to log in, the one with a password."""
    login = [*loading.get_auth_common_conf_options(), *loading.get_auth_plugin_conf_options("password")]
    for option in login:
        # A login that needs it says so; without Glance nothing is required.
        option.required = False
    return [*login, *_glance_options()]
