# SPDX-License-Identifier: Apache-2.0
"""Options of servers' consoles."""

from oslo_config import cfg

GROUP = "consoles"

OPTIONS = [
    cfg.IntOpt(
        "token_ttl",
        default=600,
        min=10,
        max=86400,
        help="Seconds for which the URL of a console can be opened. A console that is open stays open.",
    ),
    cfg.BoolOpt(
        "reuse_tokens",
        default=False,
        help="Whether the URL of a console can be opened more than once in that time, as by reloading the page. "
        "Otherwise whoever comes second is refused, and asks the API for a new one.",
    ),
]
