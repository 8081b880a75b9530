# SPDX-License-Identifier: Apache-2.0
"""The policy's defaults: who passes which, and that the code asks for no rule that is not there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from oslo_config import cfg

import nova_lite
from nova_lite import exception, policy
from nova_lite.context import RequestContext


@pytest.fixture(autouse=True)
def enforcer() -> Iterator[None]:
    options = cfg.ConfigOpts()
    options([], default_config_files=[], default_config_dirs=[])
    policy.reset()
    policy.get_enforcer(options)
    yield
    policy.reset()


def _caller(*roles: str, project: str = "p") -> RequestContext:
    return RequestContext(user_id="u", project_id=project, roles=list(roles), overwrite=False)


@pytest.mark.parametrize(
    ("roles", "project", "allowed"),
    [
        (("member", "reader"), "p", True),
        (("reader",), "p", False),
        (("member", "reader"), "other", False),
        (("admin", "member", "reader"), "other", True),
        ((), "p", False),
    ],
)
def test_member_or_admin(roles: tuple[str, ...], project: str, allowed: bool) -> None:
    caller = _caller(*roles, project=project)

    assert policy.allows(caller, "os_compute_api:servers:create", {"project_id": "p"}) is allowed


def test_own_project_is_the_target_unless_another_is_given() -> None:
    policy.authorize(_caller("reader"), "os_compute_api:servers:index")

    with pytest.raises(exception.Forbidden, match="os_compute_api:servers:delete"):
        policy.authorize(_caller("reader"), "os_compute_api:servers:delete")


def test_key_pairs_are_their_users() -> None:
    assert policy.allows(_caller("member"), "os_compute_api:os-keypairs:show", {"user_id": "u"})
    assert not policy.allows(_caller("member"), "os_compute_api:os-keypairs:show", {"user_id": "other"})


def test_every_rule_that_the_code_names_exists() -> None:
    names = {rule.name for rule in policy.list_rules()}
    package = Path(nova_lite.__file__).parent
    asked = set()
    for path in package.rglob("*.py"):
        if path.name != "policy.py":
            # "compute:nova" is the owner of a port.
            found = re.findall(r'"((?:os_compute_api|compute:\w+|identity|image):[\w:.-]+[\w])"', path.read_text())
            asked |= set(found)

    assert asked
    assert asked <= names, sorted(asked - names)


def test_every_rule_is_named_once_and_says_what_it_is_for() -> None:
    rules = policy.list_rules()

    assert len({rule.name for rule in rules}) == len(rules)
    assert all(rule.description for rule in rules)
