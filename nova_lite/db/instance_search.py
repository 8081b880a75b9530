# SPDX-License-Identifier: Apache-2.0
"""Lists of instances: every filter and order that the API offers, page by page.

A page costs a fixed number of statements, whatever its size. Pages follow each other by key: the row that the marker
names is read, and what comes after its values in the list's order is selected, so that a later page costs no more
than the first.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sqlalchemy as sa

from nova_lite import exception
from nova_lite.db import zones
from nova_lite.db.instances import COLUMNS, Instance
from nova_lite.db.models import instance_tags, instances


@dataclass(frozen=True, slots=True)
class StateMatch:
    """A vm_state together with one of these task_states; for None with any but those in except_tasks."""

    vm_state: str
    task_states: tuple[str, ...] | None = None
    except_tasks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Filters:
    """What the instances of a list have in common.

    equal: column -> values of which one must match (None matches an empty column). patterns: column -> the API's
    regular expression, found anywhere in the value. times: column -> the second in which it lies. deleted is None for
    both kinds. addresses: IP version -> parts that an address must have. zone is matched against the zone that the
    instance's host is in, or before it has one, against the zone that was asked for.
    """

    equal: Mapping[str, Collection[Any]] = field(default_factory=dict)
    patterns: Mapping[str, str] = field(default_factory=dict)
    times: Mapping[str, datetime.datetime] = field(default_factory=dict)
    states: Sequence[StateMatch] | None = None
    deleted: bool | None = False
    changes_since: datetime.datetime | None = None
    changes_before: datetime.datetime | None = None
    locked: bool | None = None
    addresses: Mapping[int, Sequence[str]] = field(default_factory=dict)
    zone: str | None = None
    default_zone: str = "nova"
    tags: Collection[str] = ()
    tags_any: Collection[str] = ()
    not_tags: Collection[str] = ()
    not_tags_any: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Order:
    """One key of the order: a column, ascending or not."""

    column: str
    ascending: bool = False


NEWEST_FIRST = (Order("created_at"),)


class Listed(NamedTuple):
    """What the short list shows of an instance."""

    uuid: str
    name: str


_LISTED = (instances.c.uuid, instances.c.name)


def _without(*names: str) -> tuple[sa.ColumnElement[Any], ...]:
    return tuple(sa.null().label(column.name) if column.name in names else column for column in COLUMNS)


# user_data may be large, and only administrators are shown it; nobody is shown key_data and files in a list.
_WITHOUT_DATA = _without("key_data", "injected_files", "user_data")
_WITH_USER_DATA = _without("key_data", "injected_files")


def short(
    conn: sa.Connection, filters: Filters, order: Sequence[Order], limit: int, marker: str | None = None
) -> list[Listed]:
    """Return a page of the short list.

    :raises BadRequest: the marker names no instance, or a pattern is none.
    """
    return [Listed._make(row) for row in conn.execute(_page(conn, _LISTED, filters, order, limit, marker))]


def full(
    conn: sa.Connection,
    filters: Filters,
    order: Sequence[Order],
    limit: int,
    marker: str | None = None,
    *,
    user_data: bool = False,
) -> list[Instance]:
    """Return a page of whole rows, but for key_data, injected_files and, unless it is asked for, user_data.

    :raises BadRequest: the marker names no instance, or a pattern is none.
    """
    columns = _WITH_USER_DATA if user_data else _WITHOUT_DATA
    return [Instance._make(row) for row in conn.execute(_page(conn, columns, filters, order, limit, marker))]


def _page(
    conn: sa.Connection,
    columns: Sequence[sa.ColumnElement[Any]],
    filters: Filters,
    order: Sequence[Order],
    limit: int,
    marker: str | None,
) -> sa.Select[Any]:
    keys = [*dict.fromkeys(order), Order("id", order[-1].ascending if order else False)]
    statement = sa.select(*columns).where(*_conditions(filters))
    if filters.zone is not None:
        statement = statement.where(_in_zone(conn, filters.zone, filters.default_zone))
    if marker is not None:
        statement = statement.where(_after(conn, keys, marker, filters.equal.get("project_id")))
    for key in keys:
        statement = statement.order_by(*_sorted(instances.c[key.column], key.ascending))
    return statement.limit(limit)


def _sorted(column: sa.Column[Any], ascending: bool) -> list[sa.ColumnElement[Any]]:
    """Order by a column; an empty one comes before every value, where PostgreSQL by itself has it after all."""
    terms = [column.is_not(None), column] if column.nullable else [column]
    return [term.asc() if ascending else term.desc() for term in terms]


def _after(
    conn: sa.Connection, keys: Sequence[Order], marker: str, projects: Collection[Any] | None
) -> sa.ColumnElement[bool]:
    """Select what comes after the marker's row; an empty column comes before every value, as ``_sorted`` has it.

    The marker has to be of one of the projects that are listed: where others' rows lie in an order is their business.
    """
    columns = [instances.c[key.column] for key in keys]
    found = sa.select(*columns).where(instances.c.uuid == marker)
    if projects is not None:
        found = found.where(_one_of(instances.c.project_id, projects))
    row = conn.execute(found).one_or_none()
    if row is None:
        raise exception.BadRequest(f"marker [{marker}] not found")
    alternatives: list[sa.ColumnElement[bool]] = []
    same: list[sa.ColumnElement[bool]] = []
    for key, column, value in zip(keys, columns, row, strict=True):
        alternatives.append(sa.and_(*same, _beyond(column, value, key.ascending)))
        same.append(column.is_(None) if value is None else column == value)
    return sa.or_(*alternatives)


def _beyond(column: sa.Column[Any], value: Any, ascending: bool) -> sa.ColumnElement[bool]:
    if ascending:
        return column.is_not(None) if value is None else column > value
    if value is None:
        return sa.false()
    return sa.or_(column < value, column.is_(None)) if column.nullable else column < value


def _conditions(filters: Filters) -> list[sa.ColumnElement[bool]]:
    found = [_one_of(instances.c[name], values) for name, values in filters.equal.items()]
    found += [_matches(instances.c[name], text) for name, text in filters.patterns.items()]
    found += [_within_second(instances.c[name], at) for name, at in filters.times.items()]
    if filters.deleted is not None:
        found.append(instances.c.deleted != 0 if filters.deleted else instances.c.deleted == 0)
    if filters.states is not None:
        found.append(sa.or_(sa.false(), *(_in_state(match) for match in filters.states)))
    if filters.changes_since is not None:
        found.append(instances.c.updated_at >= filters.changes_since)
    if filters.changes_before is not None:
        found.append(instances.c.updated_at <= filters.changes_before)
    if filters.locked is not None:
        found.append(instances.c.locked_by.is_not(None) if filters.locked else instances.c.locked_by.is_(None))
    found += [_has_address(version, text) for version, texts in filters.addresses.items() for text in texts]
    return found + _tag_conditions(filters)


def _one_of(column: sa.Column[Any], values: Collection[Any]) -> sa.ColumnElement[bool]:
    given = [value for value in values if value is not None]
    within = column == given[0] if len(given) == 1 else column.in_(given)
    return sa.or_(column.is_(None), within) if len(given) < len(values) else within


def _within_second(column: sa.Column[Any], at: datetime.datetime) -> sa.ColumnElement[bool]:
    start = at.replace(microsecond=0)
    # Its last microsecond and not the next second's first: the last second that there is has no next one.
    return column.between(start, start.replace(microsecond=999999))


def _in_state(match: StateMatch) -> sa.ColumnElement[bool]:
    task = instances.c.task_state
    condition = instances.c.vm_state == match.vm_state
    if match.task_states is not None:
        return sa.and_(condition, task.in_(match.task_states))
    if match.except_tasks:
        return sa.and_(condition, sa.or_(task.is_(None), task.not_in(match.except_tasks)))
    return condition


def _has_address(version: int, text: str) -> sa.ColumnElement[bool]:
    """Match a part of an address in the JSON text of the addresses; ^ and $ bind it to the address's ends."""
    if not re.fullmatch(r"\^?[0-9A-Fa-f.:\\]+\$?", text):
        raise exception.BadRequest(f"Invalid address filter {text!r}: only digits, '.', ':', '^' and '$' can be used.")
    core = text.strip("^$").replace("\\", "")
    start = '"' if text.startswith("^") else '"%'
    end = '"' if text.endswith("$") else '%"'
    # JSON is written with and without a space after the colon.
    matches = (instances.c.addresses.ilike(f'%"addr":{space}{start}{core}{end}%') for space in ("", " "))
    versions = (instances.c.addresses.like(f'%"version":{space}{version}%') for space in ("", " "))
    return sa.and_(sa.or_(*matches), sa.or_(*versions))


def _in_zone(conn: sa.Connection, zone: str, default_zone: str) -> sa.ColumnElement[bool]:
    by_host = zones.by_host(conn)
    host = instances.c.host
    if zone == default_zone:
        placed = sa.and_(host.is_not(None), host.not_in(sorted(by_host)))
    else:
        placed = host.in_(sorted(name for name, its_zone in by_host.items() if its_zone == zone))
    return sa.or_(placed, sa.and_(host.is_(None), instances.c.requested_zone == zone))


def _tag_conditions(filters: Filters) -> list[sa.ColumnElement[bool]]:
    found: list[sa.ColumnElement[bool]] = [_tagged([tag]) for tag in sorted(set(filters.tags))]
    if filters.tags_any:
        found.append(_tagged(filters.tags_any))
    if filters.not_tags:
        found.append(sa.not_(sa.and_(*(_tagged([tag]) for tag in sorted(set(filters.not_tags))))))
    if filters.not_tags_any:
        found.append(sa.not_(_tagged(filters.not_tags_any)))
    return found


def _tagged(tags: Collection[str]) -> sa.ColumnElement[bool]:
    mine = sa.and_(instance_tags.c.instance_uuid == instances.c.uuid, instance_tags.c.tag.in_(sorted(set(tags))))
    return sa.exists().where(mine)


# --- patterns ---------------------------------------------------------------------------------------------------------

# One atom of the expressions that are accepted, with its repetition: a character, an escaped one, any, or a class.
_ATOM = re.compile(r"(\\[^A-Za-z0-9]|\\[dswDSW]|\[\^?\]?[^\[\]\\]*\]|[^\\\[\](){}|*+?^$])([*+?]?)")
_MOST_REPETITIONS = 4


def _matches(column: sa.Column[Any], text: str) -> sa.ColumnElement[bool]:
    """Translate a regular expression, which may match anywhere in the column, into SQL.

    Groups, alternatives and counted repetitions are refused: without them, and with few repetitions, no expression
    can make the database work for long. What LIKE can say is said with LIKE.

    :raises BadRequest: it is not an expression of this kind.
    """
    start, core, end = text.startswith("^"), text.removeprefix("^"), False
    if core.endswith("$") and not core.endswith("\\$"):
        core, end = core[:-1], True
    atoms = _atoms(text, core)
    like = [_as_like(atom, repetition) for atom, repetition in atoms]
    if None not in like:
        pattern = ("" if start else "%") + "".join(part or "" for part in like) + ("" if end else "%")
        return column.ilike(re.sub("%+", "%", pattern), escape="\\")
    return column.regexp_match(f"(?i){'^' if start else ''}{core}{'$' if end else ''}")


def _atoms(text: str, core: str) -> list[tuple[str, str]]:
    atoms = [(found[1], found[2]) for found in _ATOM.finditer(core)]
    repetitions = sum(repetition in ("*", "+") for _, repetition in atoms)
    if "".join(a + r for a, r in atoms) != core or repetitions > _MOST_REPETITIONS:
        raise exception.BadRequest(
            f"Invalid pattern {text[:200]!r}: letters, '.', '[...]', '\\' and at most {_MOST_REPETITIONS} of '*' and "
            "'+' can be used, with '^' and '$' at the ends; no groups and no alternatives."
        )
    for atom, _ in atoms:
        if atom.startswith("["):
            _check_class(text, atom)
    return atoms


def _check_class(text: str, atom: str) -> None:
    try:
        re.compile(atom)
    except re.error as error:
        raise exception.BadRequest(f"Invalid pattern {text[:200]!r}: {error}.")


def _as_like(atom: str, repetition: str) -> str | None:
    """Return the atom in LIKE's terms, or None if LIKE has none."""
    if atom == ".":
        return {"": "_", "*": "%", "+": "_%"}.get(repetition)
    if repetition or atom.startswith("[") or re.fullmatch(r"\\[dswDSW]", atom):
        return None
    character = atom[-1]
    return f"\\{character}" if character in "%_\\" else character
