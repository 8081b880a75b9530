# SPDX-License-Identifier: Apache-2.0
"""nova-lite-manage config: is the configuration one that the services would start with, and mean what it says?"""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from oslo_config import cfg

from nova_lite import exception
from nova_lite.network import builtin

# Whose options may stand in a configuration file of nova_lite.
NAMESPACES = ("nova_lite", "oslo.log", "oslo.messaging", "oslo.policy", "keystonemiddleware.auth_token")
# Groups to which plugins add options that nobody lists.
_OPEN_GROUPS = {"keystone_authtoken", "glance"}


def add_to(nouns: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    verbs = nouns.add_parser("config", help="look at the configuration").add_subparsers(
        dest="verb", metavar="VERB", required=True
    )
    check = verbs.add_parser("check", help="find misspelt options, bad values and values that contradict each other")
    check.add_argument("--connect", action="store_true", help="try the database and the message bus, too")
    check.set_defaults(run=_check)


def _check(arguments: argparse.Namespace, conf: cfg.ConfigOpts) -> None:
    files = _files(conf)
    known = _known_options()
    problems = [
        *(problem for path in files for problem in _unknown_in(path, known)),
        *_bad_values(conf, known),
    ]
    if not problems:
        problems += [*_contradictions(conf), *_missing_drivers(conf)]
    for problem in problems:
        print(problem)
    if problems:
        raise exception.BadRequest(f"{len(problems)} problem{'s' if len(problems) > 1 else ''} found.")
    if arguments.connect:
        _connect(conf)
    print(f"No problem found in {', '.join(map(str, files)) or 'the defaults (no file was read)'}.")
    if _is_default(conf, "connection", "database") and (conf.transport_url or "").startswith("rabbit:"):
        print("[database] connection is not set, which is right on a compute host and nowhere else.")


def _connect(conf: cfg.ConfigOpts) -> None:
    # Imported when it is asked for: the bus' libraries take longer to load than every other command takes.
    from nova_lite import service

    service.check(conf)


def _files(conf: cfg.ConfigOpts) -> list[Path]:
    directories = [Path(name) for name in conf.config_dir or ()]
    return [Path(name) for name in conf.config_file or ()] + [
        path for directory in directories for path in sorted(directory.glob("*.conf"))
    ]


def _known_options() -> dict[str, dict[str, Any]]:
    """Every option by group and name, with the names that it had before."""
    known: dict[str, dict[str, Any]] = {}
    listed = [point for point in entry_points(group="oslo.config.opts") if point.name in NAMESPACES]
    for point in listed:
        for group, options in point.load()():
            names = known.setdefault(str(group or "DEFAULT"), {})
            for option in options:
                names[option.dest] = option
                for old in option.deprecated_opts:
                    known.setdefault(old.group or str(group or "DEFAULT"), {})[(old.name or "").replace("-", "_")] = (
                        None
                    )
    return known


def _unknown_in(path: Path, known: dict[str, dict[str, Any]]) -> Iterator[str]:
    sections: dict[str, dict[str, list[str]]] = {}
    cfg.ConfigParser(str(path), sections).parse()
    for group, options in sections.items():
        if group not in known:
            yield f"{path}: there is no group [{group}]{_guess(group, known)}"
            continue
        for name in options:
            if name.replace("-", "_") not in known[group] and group not in _OPEN_GROUPS:
                yield f"{path}: [{group}] has no option {name}{_guess(name, known[group])}"


def _guess(name: str, names: dict[str, Any]) -> str:
    near = difflib.get_close_matches(name, names, 1)
    return f"; is {near[0]} meant?" if near else ""


def _bad_values(conf: cfg.ConfigOpts, known: dict[str, dict[str, Any]]) -> Iterator[str]:
    for group, options in known.items():
        for name, option in options.items():
            if option is None:
                continue
            conf.register_opt(option, group=None if group == "DEFAULT" else group)
            try:
                (conf if group == "DEFAULT" else conf[group])[name]
            except (cfg.Error, ValueError) as error:
                yield f"[{group}] {name}: {str(error).splitlines()[0]}"


def _contradictions(conf: cfg.ConfigOpts) -> Iterator[str]:
    if conf.service_down_time < 2 * conf.report_interval:
        yield (
            f"[DEFAULT] service_down_time ({conf.service_down_time:g} s) is less than twice report_interval "
            f"({conf.report_interval:g} s): services that are alive would count as down"
        )
    if conf.scheduler.grant_lifetime < conf.conductor.scheduler_timeout:
        yield (
            f"[scheduler] grant_lifetime ({conf.scheduler.grant_lifetime:g} s) is less than [conductor] "
            f"scheduler_timeout ({conf.conductor.scheduler_timeout:g} s): grants would expire on their way"
        )
    is_shared = (conf.transport_url or "").startswith("rabbit:")
    if is_shared and conf.database.connection.startswith("sqlite:") and not _is_default(conf, "connection", "database"):
        yield "[database] connection is SQLite, which is for a cloud in one process, but transport_url is RabbitMQ"
    yield from _network_contradictions(conf)


def _network_contradictions(conf: cfg.ConfigOpts) -> Iterator[str]:
    try:
        builtin.read(conf)
    except cfg.ConfigFileValueError as error:
        yield str(error)
    if conf.network.subnet and conf.compute.driver == "fake" and conf.network.driver != "fake":
        yield (
            "[network] subnet gives servers addresses, but [network] driver is "
            f"{conf.network.driver}: for the fake hypervisor it has to be fake"
        )


def _is_default(conf: cfg.ConfigOpts, name: str, group: str) -> bool:
    """Tell whether neither a file nor the environment sets the option."""
    found = conf.get_location(name, group)
    return found is None or not found.location.is_user_controlled


def _missing_drivers(conf: cfg.ConfigOpts) -> Iterator[str]:
    wanted = [
        ("nova_lite.virt", "[compute] driver", [conf.compute.driver]),
        ("nova_lite.image", "[image] driver", [conf.image.driver]),
        ("nova_lite.network", "[network] driver", [conf.network.driver]),
        ("nova_lite.filters", "[scheduler] enabled_filters", conf.scheduler.enabled_filters),
        ("nova_lite.weighers", "[scheduler] enabled_weighers", conf.scheduler.enabled_weighers),
    ]
    for kind, where, names in wanted:
        installed = {point.name: point for point in entry_points(group=kind)}
        for name in names:
            if name not in installed:
                yield f"{where}: {name} is not installed; there are {', '.join(sorted(installed))}"
