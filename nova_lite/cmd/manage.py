# SPDX-License-Identifier: Apache-2.0
"""nova-lite-manage: what an operator does past the API. Each noun has its verbs in nova_lite/manage/<noun>.py."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence

from oslo_config import cfg

from nova_lite import conf, exception
from nova_lite.manage import audit, config, db, drain, flavor, openapi, service, user

PROGRAM = "nova-lite-manage"


def main() -> int:
    return run(sys.argv[1:])


def run(command_line: Sequence[str]) -> int:
    """Run one command, and return its exit status: its own, or 1 after one line on standard error."""
    where, rest = _where().parse_known_args(command_line)
    arguments = _parser().parse_args(rest)
    try:
        options = conf.load(_options(where), PROGRAM)
        if not options.debug:
            # What was done is printed; the log's story of it would only hide that.
            logging.disable(logging.INFO)
        return arguments.run(arguments, options) or 0
    except (exception.NovaLiteError, cfg.Error, OSError) as error:
        print(f"{PROGRAM}: error: {str(error).splitlines()[0]}", file=sys.stderr)
        return 1


def _where() -> argparse.ArgumentParser:
    """Where the configuration is may be said before or behind the verb."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--config-file", action="append", default=[], metavar="PATH", help="a configuration file")
    parser.add_argument("--config-dir", action="append", default=[], metavar="PATH", help="a directory of *.conf files")
    parser.add_argument("--debug", action="store_true", help="log everything to standard error")
    return parser


def _options(where: argparse.Namespace) -> list[str]:
    files = [part for path in where.config_file for part in ("--config-file", path)]
    directories = [part for path in where.config_dir for part in ("--config-dir", path)]
    return [*files, *directories, *(["--debug"] if where.debug else [])]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description="Manage a nova_lite cloud past its API.", parents=[_where()], allow_abbrev=False
    )
    nouns = parser.add_subparsers(dest="noun", metavar="NOUN", required=True)
    for noun in (db, user, service, flavor, config, audit, drain, openapi):
        noun.add_to(nouns)
    return parser


if __name__ == "__main__":
    sys.exit(main())
