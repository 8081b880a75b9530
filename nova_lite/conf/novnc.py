# SPDX-License-Identifier: Apache-2.0
"""Options of the proxy that shows servers' screens in a browser."""

from oslo_config import cfg

GROUP = "novnc"

OPTIONS = [
    cfg.BoolOpt(
        "enabled",
        default=False,
        help="Whether screens are to be had: then the api gives URLs of the proxy, and nova-lite-all-in-one runs one. "
        "Elsewhere nova-lite-novncproxy is started beside the api.",
    ),
    cfg.StrOpt(
        "base_url",
        default="http://127.0.0.1:6080/vnc_lite.html",
        help="The URL of noVNC's page at the proxy, as users' browsers reach it; the token is added to it.",
    ),
    cfg.StrOpt("listen", default="127.0.0.1", help="The address that the proxy listens on."),
    cfg.PortOpt("port", default=6080, help="The TCP port that the proxy listens on."),
    cfg.StrOpt(
        "web",
        default="/usr/share/novnc",
        help="The directory with noVNC's pages, which the proxy serves if it is there (Debian's package is novnc). "
        "Other clients need the WebSocket alone.",
    ),
    cfg.StrOpt("cert", help="The file with the proxy's TLS certificate and what it is signed with; with key: wss://."),
    cfg.StrOpt("key", help="The file with the key of the certificate; by default it is in the same file."),
    cfg.ListOpt(
        "allowed_origins",
        default=[],
        help="Hosts (names, with :port if it is not the scheme's own) whose pages may open a console, beside the "
        "proxy's own: a dashboard that shows screens in its pages.",
    ),
    cfg.IntOpt("max_connections", default=200, min=1, max=450, help="Connections that the proxy keeps at a time."),
]
