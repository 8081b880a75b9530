# SPDX-License-Identifier: Apache-2.0
"""nova-lite-events: prints what happens in the cloud, a line per notification, until it is interrupted."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import threading

from oslo_config import cfg

from nova_lite import bus_tls, conf, events, exception

PROGRAM = "nova-lite-events"

# oslo.messaging has these options as well, with more to them; here it is not loaded.
_URL = cfg.StrOpt("transport_url", secret=True, help="The message bus.")
_NOTIFICATIONS_URL = cfg.StrOpt("transport_url", secret=True, help="The bus of notifications, if it is another one.")
_TLS = [
    cfg.BoolOpt("ssl", default=False),
    *(cfg.StrOpt(f"ssl_{what}_file", default="") for what in ("key", "cert", "ca")),
]


def main() -> int:
    arguments = _parser().parse_args()
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: stopping.set())
    try:
        options = _load(arguments)
        url = options.oslo_messaging_notifications.transport_url or options.transport_url or "fake://"
        show = _show_raw if arguments.json else _show_line
        events.Follower(url, _say, bus_tls.options(options.oslo_messaging_rabbit)).follow(show, stopping)
    except BrokenPipeError:
        # Whoever read us has seen enough; Python would complain once more when it flushes at the end.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (exception.NovaLiteError, cfg.Error, OSError) as error:
        print(f"{PROGRAM}: error: {str(error).splitlines()[0]}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=PROGRAM, description="Follow what happens in a nova_lite cloud.")
    parser.add_argument("--config-file", action="append", default=[], metavar="PATH", help="a configuration file")
    parser.add_argument("--config-dir", action="append", default=[], metavar="PATH", help="a directory of *.conf files")
    parser.add_argument("--json", action="store_true", help="print whole notifications, one JSON document per line")
    return parser


def _load(arguments: argparse.Namespace) -> cfg.ConfigOpts:
    files = [part for path in arguments.config_file for part in ("--config-file", path)]
    directories = [part for path in arguments.config_dir for part in ("--config-dir", path)]
    options = conf.load([*files, *directories], PROGRAM)
    options.register_opt(_URL)
    options.register_opt(_NOTIFICATIONS_URL, group="oslo_messaging_notifications")
    options.register_opts(_TLS, group="oslo_messaging_rabbit")
    return options


def _show_line(event: events.Event) -> None:
    print(event.line(), flush=True)


def _show_raw(event: events.Event) -> None:
    print(json.dumps(event.raw), flush=True)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
