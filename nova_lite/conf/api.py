# SPDX-License-Identifier: Apache-2.0
"""Options of the api."""

from oslo_config import cfg

GROUP = "api"

OPTIONS = [
    cfg.StrOpt("listen", default="127.0.0.1", help="The address that the api listens on."),
    cfg.PortOpt("port", default=8774, help="The TCP port that the api listens on."),
    cfg.IntOpt("workers", default=1, min=1, max=256, help="Processes that serve the api."),
    cfg.IntOpt("threads", default=24, min=1, max=1024, help="Threads of each process, one request at a time each."),
    cfg.StrOpt(
        "public_url",
        help="The URL under which clients reach the api (no path), for links and the catalogue. By default the URL of "
        "each request is used.",
    ),
    cfg.IntOpt(
        "max_request_body",
        default=1048576,
        min=1024,
        max=1073741824,
        help="Bytes that a request body may have; image uploads have a limit of their own.",
    ),
    cfg.IntOpt("max_limit", default=1000, min=1, max=100000, help="Rows that a page of a list has at the most."),
    cfg.IntOpt("max_servers_per_request", default=1000, min=1, max=100000, help="The largest max_count of a create."),
    cfg.StrOpt(
        "default_availability_zone",
        default="nova",
        help="The zone that hosts in no aggregate with a zone are shown in.",
    ),
]
