# SPDX-License-Identifier: Apache-2.0
"""nova-lite-manage openapi: the API's description, for programs."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from oslo_config import cfg

from nova_lite import exception


def add_to(nouns: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    noun = nouns.add_parser("openapi", help="describe the API, as an OpenAPI 3.1 document in JSON")
    noun.add_argument("--version", metavar="2.N", help="the microversion to describe (default: the newest)")
    noun.add_argument("--output", type=Path, metavar="FILE", help="where to write it (default: standard output)")
    noun.set_defaults(run=_describe)


def _describe(arguments: argparse.Namespace, _conf: cfg.ConfigOpts) -> None:
    # Only here: the api brings much along that the other nouns do without.
    from nova_lite.api import microversion, openapi

    try:
        version = microversion.requested(None, arguments.version or "latest")
    except (exception.BadRequest, exception.NotAcceptable) as error:
        raise exception.BadRequest(f"{error} Give --version as 2.N.")
    text = json.dumps(openapi.describe(version), indent=1) + "\n"
    if arguments.output is None:
        print(text, end="")
    else:
        arguments.output.write_text(text)
        print(f"Wrote the description of microversion {version} to {arguments.output}.")
