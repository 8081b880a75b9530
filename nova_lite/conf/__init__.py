# SPDX-License-Identifier: Apache-2.0
"""Every option of nova_lite, one module per group. ``etc/nova-lite/nova-lite.conf.sample`` is generated from them.

The one configuration object is oslo.config's global one, because oslo.messaging reads its own options from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oslo_config import cfg
from oslo_log import log

from nova_lite import __version__
from nova_lite.conf import (
    api,
    auth,
    compute,
    conductor,
    consoles,
    database,
    fake,
    image,
    libvirt,
    network,
    novnc,
    quota,
    scheduler,
    service,
)

_MODULES = (
    service,
    api,
    auth,
    database,
    conductor,
    scheduler,
    compute,
    libvirt,
    fake,
    image,
    network,
    quota,
    consoles,
    novnc,
)

CONF = cfg.CONF


def register(conf: cfg.ConfigOpts = CONF) -> None:
    """Register every option; doing so twice is no error."""
    for module in _MODULES:
        conf.register_opts(module.OPTIONS, group=module.GROUP)


def load(arguments: Sequence[str], program: str, default_files: list[str] | None = None) -> cfg.ConfigOpts:
    """Parse command line and files, and set logging up.

    :param arguments: the command line without the program's name.
    :param program: the program's name; oslo.config also looks for /etc/nova-lite/<program>.conf.
    :param default_files: configuration files to use when the command line names none.
    """
    log.register_options(CONF)
    log.set_defaults(
        logging_context_format_string=(
            "%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s [%(request_id)s] %(message)s"
        ),
        default_log_levels=[
            "sqlalchemy=WARNING",
            "alembic=INFO",
            "amqp=WARNING",
            "oslo_messaging=WARNING",
            "oslo.messaging=WARNING",
            "keystonemiddleware=INFO",
            "urllib3=WARNING",
            "stevedore=WARNING",
            "oslo_policy=WARNING",
        ],
    )
    register()
    CONF(
        list(arguments),
        project="nova-lite",
        prog=program,
        version=__version__,
        default_config_files=default_files,
    )
    log.setup(CONF, "nova_lite")
    return CONF


def list_opts() -> Sequence[tuple[str, Sequence[Any]]]:
    """Give oslo-config-generator every option, by group."""
    own = [(module.GROUP or "DEFAULT", module.OPTIONS) for module in _MODULES]
    return [*own, (image.GLANCE_GROUP, image.list_glance())]
