# SPDX-License-Identifier: Apache-2.0
"""What Tempest finds in a cloud when it begins: accounts, two images and two flavors.

Accounts are made beforehand, rather than by Tempest for each class of tests: that is faster, and asks nothing of a
network service. Each has a project of its own; readers and managers share the project of a member.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from keystoneauth1 import session
from keystoneauth1.identity import v3

from tests.tempest.login import Login

# Smaller than the smallest that a real guest boots from, and larger for a resize.
_FLAVORS = (
    {"name": "tempest.nano", "id": "tempest-1", "ram": 64, "vcpus": 1, "disk": 1},
    {"name": "tempest.micro", "id": "tempest-2", "ram": 128, "vcpus": 1, "disk": 2},
)


@dataclass(frozen=True)
class Account:
    """A user, and their roles on their project."""

    user: str
    password: str
    project: str
    roles: Sequence[str]


@dataclass(frozen=True)
class Prepared:
    """What was made: two images and two flavors by id, and the accounts."""

    images: Sequence[str]
    flavors: Sequence[str]
    accounts: Sequence[Account]


def prepare(login: Login, workers: int) -> Prepared:
    """Make what Tempest needs with so many workers."""
    cloud = _Cloud(login)
    return Prepared(
        [cloud.image(f"tempest-{number}", login) for number in (1, 2)],
        [cloud.flavor(flavor) for flavor in _FLAVORS],
        cloud.accounts(workers),
    )


class _Cloud:
    """The three services, asked as the administrator."""

    def __init__(self, login: Login) -> None:
        auth = v3.Password(
            login.auth_url,
            username=login.user,
            password=login.password,
            project_name=login.project,
            user_domain_id="default",
            project_domain_id="default",
        )
        self._session = session.Session(auth)
        self._region = login.region

    def _ask(self, service: str, method: str, path: str, body: Any = None, **more: Any) -> Any:
        where = {"service_type": service, "region_name": self._region, "interface": "public"}
        answer = self._session.request(path, method, endpoint_filter=where, json=body, **more)
        return answer.json() if answer.content else None

    def image(self, name: str, login: Login) -> str:
        body = {"name": name, "disk_format": login.disk_format, "container_format": "bare", "visibility": "public"}
        made: str = self._ask("image", "POST", "/v2/images", body)["id"]
        stream = {"Content-Type": "application/octet-stream"}
        self._ask("image", "PUT", f"/v2/images/{made}/file", data=login.disk, headers=stream)
        return made

    def flavor(self, values: dict[str, Any]) -> str:
        made: str = self._ask("compute", "POST", "/flavors", {"flavor": values})["flavor"]["id"]
        return made

    def accounts(self, workers: int) -> list[Account]:
        """Make accounts enough for so many workers.

        A class of tests has a member and another one at the most, and takes whoever is free in the order of this
        list: those that may do less are last.
        """
        roles = {role["name"]: role["id"] for role in self._ask("identity", "GET", "/roles")["roles"]}
        wanted: list[tuple[str, str, tuple[str, ...]]] = []
        wanted += [(f"tempest-member-{n}", f"tempest-{n}", ("member",)) for n in range(2 * workers + 1)]
        wanted += [(f"tempest-admin-{n}", f"tempest-admin-{n}", ("admin",)) for n in range(workers + 1)]
        wanted += [(f"tempest-service-{n}", f"tempest-service-{n}", ("admin", "service")) for n in range(workers)]
        for role in ("manager", "reader"):
            wanted += [(f"tempest-{role}-{n}", f"tempest-{n}", (role,)) for n in range(2 * workers + 1)]
        projects: dict[str, str] = {}
        accounts = []
        for user, project, names in wanted:
            if project not in projects:
                made = self._ask("identity", "POST", "/projects", {"project": {"name": project}})
                projects[project] = made["project"]["id"]
            account = Account(user, secrets.token_urlsafe(12), project, names)
            values = {"name": user, "password": account.password, "domain_id": "default"}
            user_id = self._ask("identity", "POST", "/users", {"user": values})["user"]["id"]
            for name in names:
                self._ask("identity", "PUT", f"/projects/{projects[project]}/users/{user_id}/roles/{roles[name]}")
            accounts.append(account)
        return accounts
