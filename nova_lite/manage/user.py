# SPDX-License-Identifier: Apache-2.0
"""nova-lite-manage user: the users of the embedded identity service.

A password comes from the environment, the terminal or standard input, never from the command line, which every user
of the machine can read.
"""

from __future__ import annotations

import argparse
import getpass
import os
import sys

from oslo_config import cfg

from nova_lite import exception, identity_file
from nova_lite.manage import table

PASSWORD_VARIABLE = "NOVA_LITE_PASSWORD"


def add_to(nouns: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    verbs = nouns.add_parser("user", help="edit the users of the embedded identity service").add_subparsers(
        dest="verb", metavar="VERB", required=True
    )
    add = verbs.add_parser(
        "add",
        help="add a user, or change the password and roles of one",
        description=f"The password is taken from the environment ({PASSWORD_VARIABLE}), asked for on a terminal, or "
        "read as one line from standard input.",
    )
    add.add_argument("name", help="the user's name")
    add.add_argument("--project", help="the project that the roles are on; made if need be (default: the user's name)")
    add.add_argument(
        "--role",
        action="append",
        dest="roles",
        choices=identity_file.ROLES,
        help="a role on the project; may be repeated (default: member)",
    )
    add.set_defaults(run=_add)
    remove = verbs.add_parser("remove", help="remove a user; tokens of theirs are worth nothing from then on")
    remove.add_argument("name", help="the user's name or id")
    remove.set_defaults(run=_remove)
    verbs.add_parser("list", help="list users, projects and roles").set_defaults(run=_list)


def _add(arguments: argparse.Namespace, conf: cfg.ConfigOpts) -> None:
    project = arguments.project or arguments.name
    roles = tuple(arguments.roles or ("member",))
    user = identity_file.add_user(conf.auth.users_file, arguments.name, _password(), project, roles)
    print(f"User {user.name} has the roles {', '.join(roles)} on project {project}.")


def _remove(arguments: argparse.Namespace, conf: cfg.ConfigOpts) -> None:
    identity_file.remove_user(conf.auth.users_file, arguments.name)
    print(f"User {arguments.name} is removed.")


def _list(_arguments: argparse.Namespace, conf: cfg.ConfigOpts) -> None:
    directory = identity_file.load(conf.auth.users_file)
    projects = {project.id: project.name for project in directory.projects}
    rows = [
        (user.name, projects.get(project, project), ",".join(roles), user.id)
        for user in directory.users
        for project, roles in user.roles.items()
    ]
    print(table.render(("user", "project", "roles", "id"), rows))


def _password() -> str:
    given = os.environ.get(PASSWORD_VARIABLE)
    if given:
        return given
    if not sys.stdin.isatty():
        given = sys.stdin.readline().rstrip("\n")
        if not given:
            raise exception.BadRequest(
                f"No password: set {PASSWORD_VARIABLE}, or give it as one line on standard input."
            )
        return given
    given = getpass.getpass("Password: ")
    if getpass.getpass("Once more: ") != given:
        raise exception.BadRequest("The two passwords differ; nothing was changed.")
    return given
