# SPDX-License-Identifier: Apache-2.0
"""The query string of a list of servers, translated into filters and an order of rows."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from oslo_config import cfg
from oslo_utils import strutils, timeutils

from nova_lite import exception, policy
from nova_lite.api import server_status
from nova_lite.api.microversion import Version
from nova_lite.api.request import Request
from nova_lite.api.schemas import servers as schemas
from nova_lite.api.server_lookup import API
from nova_lite.db.instance_search import NEWEST_FIRST, Filters, Order, StateMatch
from nova_lite.objects import instance as states

Query = dict[str, list[str]]

_TAG_FILTERS = ("tags", "tags-any", "not-tags", "not-tags-any")
# What those may filter by who may not use every filter, and since when; of the others theirs are ignored.
_OPEN_FILTERS: tuple[tuple[Version, tuple[str, ...]], ...] = (
    (Version(2, 1), ("reservation_id", "name", "status", "image", "flavor", "ip", "changes-since", "all_tenants")),
    (Version(2, 5), ("ip6",)),
    (Version(2, 26), _TAG_FILTERS),
    (Version(2, 66), ("changes-before",)),
    (Version(2, 73), ("locked",)),
    (
        Version(2, 83),
        (
            "availability_zone", "config_drive", "key_name", "created_at", "launched_at", "terminated_at",
            "power_state", "task_state", "vm_state", "progress", "user_id",
        ),
    ),
    (Version(2, 90), ("hostname",)),
)  # fmt: skip
_PAGING = ("limit", "marker", "sort_key", "sort_dir")

# Parameter -> column, for those that a value of theirs must equal.
_EQUAL = {
    "user_id": "user_id",
    "project_id": "project_id",
    "tenant_id": "project_id",
    "image": "image_ref",
    "image_ref": "image_ref",
    "flavor": "flavorid",
    "vm_state": "vm_state",
    "task_state": "task_state",
    "host": "host",
    "node": "node",
    "reservation_id": "reservation_id",
    "key_name": "key_name",
    "uuid": "uuid",
    "root_device_name": "root_device_name",
    "access_ip_v4": "access_ip_v4",
    "access_ip_v6": "access_ip_v6",
    "locked_by": "locked_by",
}
_PATTERNS = {
    "name": "name",
    "display_name": "name",
    "description": "description",
    "display_description": "description",
    "hostname": "hostname",
}
_TIMES = ("created_at", "launched_at", "terminated_at")
_POWER_STATES = {
    "nostate": states.NOSTATE,
    "running": states.RUNNING,
    "paused": states.POWER_PAUSED,
    "shutdown": states.SHUTDOWN,
    "crashed": states.CRASHED,
    "suspended": states.POWER_SUSPENDED,
}


class NothingMatches(Exception):
    """The query can match no server, and that is not an error."""


def filters(req: Request, query: Query, conf: cfg.ConfigOpts, list_name: str) -> Filters:
    """Translate a query that has passed its schema.

    :param list_name: "index" or "detail", which have policies of their own.
    :raises BadRequest: a value makes no sense.
    :raises Forbidden: the caller may not ask for this.
    :raises NothingMatches: it is known without looking that no server matches.
    """
    given = _allowed(req, query)
    for name in given:
        if name in schemas.NO_FILTERS or name.startswith("_"):
            raise exception.BadRequest(f"Invalid filter field: {name[:64]}.")
    found: dict[str, Any] = {"equal": _equal(given), "default_zone": conf.api.default_availability_zone}
    _restrict_project(req, given, list_name, found["equal"])
    found["patterns"] = {column: given[name][-1] for name, column in _PATTERNS.items() if given.get(name, [""])[-1]}
    found["times"] = {name: _time(name, given[name][-1]) for name in _TIMES if name in given}
    found["states"] = _states(req, query)
    found["changes_since"], found["changes_before"] = _changes(given)
    found["deleted"] = _deleted(req, given, found["states"])
    if "locked" in given:
        found["locked"] = _boolean("locked", given["locked"][-1])
    if "availability_zone" in given:
        found["zone"] = given["availability_zone"][-1]
    found["addresses"] = {4: given.get("ip", ()), 6: given.get("ip6", ())}
    for name in _TAG_FILTERS:
        if name in given:
            found[name.replace("-", "_")] = given[name][-1].split(",")[: schemas.MAX_TAGS]
    return Filters(**found)


def order(req: Request, query: Query) -> tuple[Order, ...]:
    """Translate sort_key and sort_dir; a key without a direction of its own has the first one's.

    :raises BadRequest: a direction is none, or there are more of them than keys.
    :raises Forbidden: the caller may not order by this key.
    """
    keys, directions = query.get("sort_key", []), query.get("sort_dir", [])
    for direction in directions:
        if direction not in ("asc", "desc"):
            raise exception.BadRequest("Unknown sort direction, must be one of: asc, desc")
    if len(directions) > len(keys) > 0:
        raise exception.BadRequest("Sort direction size exceeds sort key size")
    if not keys:
        return tuple(Order(key.column, directions[0] == "asc") for key in NEWEST_FIRST) if directions else NEWEST_FIRST
    default = directions[0] if directions else "desc"
    found = []
    for place, key in enumerate(keys):
        if key in ("host", "node") and not req.nova.is_admin:
            raise exception.Forbidden(f"Only administrators can sort servers by {key}")
        direction = directions[place] if place < len(directions) else default
        if key in schemas.SORT_COLUMNS and (key != "locked" or req.version >= Version(2, 73)):
            found.append(Order(schemas.SORT_COLUMNS[key], direction == "asc"))
    return tuple(found) or NEWEST_FIRST


def _allowed(req: Request, query: Query) -> Query:
    """Return the filters that the caller may use; the others are ignored, as Nova does."""
    given = {name: values for name, values in query.items() if name not in _PAGING}
    if policy.allows(req.nova, API + "servers:allow_all_filters"):
        return given
    open_to_all = {name for since, names in _OPEN_FILTERS if req.version >= since for name in names}
    return {name: values for name, values in given.items() if name in open_to_all}


def _restrict_project(req: Request, given: Query, list_name: str, equal: dict[str, list[Any]]) -> None:
    """All projects only if asked for and allowed, and one's own otherwise, whatever else was asked."""
    if _boolean("all_tenants", given["all_tenants"][-1] or "1") if "all_tenants" in given else False:
        policy.authorize(req.nova, f"{API}servers:{list_name}:get_all_tenants")
        return
    equal["project_id"] = [req.nova.project_id or ""]


def _equal(given: Query) -> dict[str, list[Any]]:
    equal: dict[str, list[Any]] = {}
    for name, column in _EQUAL.items():
        values = given.get(name)
        if values:
            equal[column] = [None if name == "task_state" and value in ("", "None") else value for value in values]
    conversions: tuple[tuple[str, str, Callable[[str], Any]], ...] = (
        ("power_state", "power_state", _power_state),
        ("launch_index", "launch_index", lambda value: _integer("launch_index", value)),
        ("config_drive", "config_drive", lambda value: _boolean("config_drive", value or "0")),
        (
            "auto_disk_config",
            "disk_config",
            lambda value: "AUTO" if _boolean("auto_disk_config", value) else "MANUAL",
        ),
    )
    for name, column, convert in conversions:
        if name in given:
            equal[column] = [convert(value) for value in given[name]]
    return equal


def _states(req: Request, query: Query) -> list[StateMatch] | None:
    if "status" not in query:
        return None
    found = [match for status in query["status"] for match in server_status.matches_of(status)]
    if found:
        return found
    if req.version >= Version(2, 38):
        raise exception.BadRequest("Invalid status value")
    raise NothingMatches


def _deleted(req: Request, given: Query, matches: list[StateMatch] | None) -> bool | None:
    if matches is not None and all(match.vm_state == states.DELETED for match in matches):
        if not req.nova.is_admin:
            raise exception.Forbidden("Only administrators may list deleted instances")
        return True
    if "deleted" in given:
        return bool(strutils.bool_from_string(given["deleted"][-1], default=False))
    return None if "changes-since" in given or "changes-before" in given else False


def _changes(given: Query) -> tuple[datetime.datetime | None, datetime.datetime | None]:
    since, before = (
        _time(name, given[name][-1]) if name in given else None for name in ("changes-since", "changes-before")
    )
    if since and before and since > before:
        raise exception.BadRequest("The value of changes-since must be less than or equal to changes-before.")
    return since, before


def _time(name: str, text: str) -> datetime.datetime:
    try:
        parsed: datetime.datetime = timeutils.normalize_time(timeutils.parse_isotime(text))
    except (ValueError, OverflowError):
        raise exception.BadRequest(f"Invalid filter field: {name}.")
    return parsed


def _boolean(name: str, text: str) -> bool:
    try:
        return bool(strutils.bool_from_string(text, strict=True))
    except ValueError as error:
        raise exception.BadRequest(f"Invalid input for query parameters {name}: {error}")


def _integer(name: str, text: str) -> int:
    if not text.isdecimal() or len(text) > 10:
        raise exception.BadRequest(f"Invalid input for query parameters {name}: '{text}' is not a number.")
    return int(text)


def _power_state(text: str) -> int:
    named = _POWER_STATES.get(text.lower())
    return _integer("power_state", text) if named is None else named
