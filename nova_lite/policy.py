# SPDX-License-Identifier: Apache-2.0
"""Who may do what: oslo.policy with the defaults in code, under the names that Nova's operators know.

Roles imply each other as Keystone's do: admin, member, reader. A target is what the action is done to, its
``project_id`` and ``user_id``; without one it is the caller's own project.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from oslo_config import cfg
from oslo_policy import policy

from nova_lite import exception
from nova_lite.conf import CONF
from nova_lite.context import RequestContext

ADMIN = "rule:context_is_admin"
MEMBER = "rule:project_member_or_admin"
READER = "rule:project_reader_or_admin"
OWNER = f"({ADMIN}) or user_id:%(user_id)s"
# Other services of the cloud, as Keystone tells them from users.
SERVICE = f"({ADMIN}) or role:service"
ANY = "@"
NOBODY = "!"

_BASE = [
    policy.RuleDefault("context_is_admin", "role:admin", "Who is an administrator of the cloud."),
    policy.RuleDefault("admin_api", ADMIN, "The default of what only administrators may do."),
    policy.RuleDefault(
        "project_member_api", "role:member and project_id:%(project_id)s", "Who may change what a project has."
    ),
    policy.RuleDefault(
        "project_reader_api", "role:reader and project_id:%(project_id)s", "Who may see what a project has."
    ),
    policy.RuleDefault(
        "project_member_or_admin",
        "rule:project_member_api or rule:context_is_admin",
        "The default of what changes something in a project.",
    ),
    policy.RuleDefault(
        "project_reader_or_admin",
        "rule:project_reader_api or rule:context_is_admin",
        "The default of what shows something of a project.",
    ),
]

_API = "os_compute_api:"

# What each rule guards: name, default, method and path, what it is for.
_RULES: list[tuple[str, str, str, str, str]] = [
    (_API + "servers:index", READER, "GET", "/servers", "List servers"),
    (_API + "servers:detail", READER, "GET", "/servers/detail", "List servers with details"),
    (_API + "servers:index:get_all_tenants", ADMIN, "GET", "/servers", "List the servers of all projects"),
    (_API + "servers:detail:get_all_tenants", ADMIN, "GET", "/servers/detail", "List all projects' servers in detail"),
    (_API + "servers:allow_all_filters", ADMIN, "GET", "/servers", "Use every filter when listing servers"),
    (_API + "servers:show", READER, "GET", "/servers/{server_id}", "Show a server"),
    (_API + "servers:show:flavor-extra-specs", READER, "GET", "/servers/{server_id}", "Show a server's extra specs"),
    (_API + "servers:show:host_status", ADMIN, "GET", "/servers/{server_id}", "Show the state of a server's host"),
    (
        _API + "servers:show:host_status:unknown-only",
        ADMIN,
        "GET",
        "/servers/{server_id}",
        "Show the state of a server's host if it is unknown",
    ),
    (_API + "servers:create", MEMBER, "POST", "/servers", "Create a server"),
    (_API + "servers:create:forced_host", ADMIN, "POST", "/servers", "Create a server on a host, past the scheduler"),
    ("compute:servers:create:requested_destination", ADMIN, "POST", "/servers", "Create a server on a given host"),
    (_API + "servers:create:attach_volume", MEMBER, "POST", "/servers", "Create a server with volumes"),
    (_API + "servers:create:attach_network", MEMBER, "POST", "/servers", "Create a server with networks"),
    (_API + "servers:create:trusted_certs", MEMBER, "POST", "/servers", "Create a server with trusted certificates"),
    (_API + "servers:create:zero_disk_flavor", ADMIN, "POST", "/servers", "Create a server with a flavor without disk"),
    (_API + "servers:delete", MEMBER, "DELETE", "/servers/{server_id}", "Delete a server"),
    (_API + "servers:update", MEMBER, "PUT", "/servers/{server_id}", "Change a server"),
    (
        _API + "servers:confirm_resize",
        MEMBER,
        "POST",
        "/servers/{server_id}/action (confirmResize)",
        "Confirm a resize",
    ),
    (_API + "servers:revert_resize", MEMBER, "POST", "/servers/{server_id}/action (revertResize)", "Revert a resize"),
    (_API + "servers:reboot", MEMBER, "POST", "/servers/{server_id}/action (reboot)", "Reboot a server"),
    (_API + "servers:resize", MEMBER, "POST", "/servers/{server_id}/action (resize)", "Resize a server"),
    (_API + "servers:rebuild", MEMBER, "POST", "/servers/{server_id}/action (rebuild)", "Rebuild a server"),
    (
        _API + "servers:rebuild:trusted_certs",
        MEMBER,
        "POST",
        "/servers/{server_id}/action (rebuild)",
        "Rebuild a server with trusted certificates",
    ),
    (
        _API + "servers:create_image",
        MEMBER,
        "POST",
        "/servers/{server_id}/action (createImage)",
        "Make an image of a server",
    ),
    (_API + "servers:start", MEMBER, "POST", "/servers/{server_id}/action (os-start)", "Start a server"),
    (_API + "servers:stop", MEMBER, "POST", "/servers/{server_id}/action (os-stop)", "Stop a server"),
    (
        _API + "servers:trigger_crash_dump",
        MEMBER,
        "POST",
        "/servers/{server_id}/action (trigger_crash_dump)",
        "Crash a server's kernel",
    ),
    (
        _API + "servers:migrations:index",
        ADMIN,
        "GET",
        "/servers/{server_id}/migrations",
        "List a server's live migrations",
    ),
    (_API + "servers:migrations:show", ADMIN, "GET", "/servers/{server_id}/migrations/{id}", "Show a live migration"),
    (
        _API + "servers:migrations:force_complete",
        ADMIN,
        "POST",
        "/servers/{server_id}/migrations/{id}/action (force_complete)",
        "Force a live migration to end",
    ),
    (
        _API + "servers:migrations:delete",
        ADMIN,
        "DELETE",
        "/servers/{server_id}/migrations/{id}",
        "Abort a live migration",
    ),
    (
        _API + "os-admin-actions:reset_state",
        ADMIN,
        "POST",
        "/servers/{server_id}/action (os-resetState)",
        "Set a server's state",
    ),
    (
        _API + "os-admin-actions:reset_network",
        ADMIN,
        "POST",
        "/servers/{server_id}/action (resetNetwork)",
        "Reset a server's network",
    ),
    (
        _API + "os-admin-actions:inject_network_info",
        ADMIN,
        "POST",
        "/servers/{server_id}/action (injectNetworkInfo)",
        "Inject network information",
    ),
    (
        _API + "os-admin-password",
        MEMBER,
        "POST",
        "/servers/{server_id}/action (changePassword)",
        "Change the administrator's password",
    ),
    (_API + "os-attach-interfaces:list", READER, "GET", "/servers/{server_id}/os-interface", "List interfaces"),
    (_API + "os-attach-interfaces:show", READER, "GET", "/servers/{server_id}/os-interface/{id}", "Show an interface"),
    (_API + "os-attach-interfaces:create", MEMBER, "POST", "/servers/{server_id}/os-interface", "Attach an interface"),
    (
        _API + "os-attach-interfaces:delete",
        MEMBER,
        "DELETE",
        "/servers/{server_id}/os-interface/{id}",
        "Detach an interface",
    ),
    (_API + "os-availability-zone:list", READER, "GET", "/os-availability-zone", "List availability zones"),
    (_API + "os-availability-zone:detail", ADMIN, "GET", "/os-availability-zone/detail", "List zones with their hosts"),
    (_API + "os-aggregates:index", ADMIN, "GET", "/os-aggregates", "List aggregates"),
    (_API + "os-aggregates:show", ADMIN, "GET", "/os-aggregates/{id}", "Show an aggregate"),
    (_API + "os-aggregates:create", ADMIN, "POST", "/os-aggregates", "Create an aggregate"),
    (_API + "os-aggregates:update", ADMIN, "PUT", "/os-aggregates/{id}", "Change an aggregate"),
    (_API + "os-aggregates:delete", ADMIN, "DELETE", "/os-aggregates/{id}", "Delete an aggregate"),
    (_API + "os-aggregates:add_host", ADMIN, "POST", "/os-aggregates/{id}/action (add_host)", "Add a host"),
    (_API + "os-aggregates:remove_host", ADMIN, "POST", "/os-aggregates/{id}/action (remove_host)", "Remove a host"),
    (_API + "os-aggregates:set_metadata", ADMIN, "POST", "/os-aggregates/{id}/action (set_metadata)", "Set metadata"),
    ("compute:aggregates:images", ADMIN, "POST", "/os-aggregates/{id}/images", "Copy images to an aggregate's hosts"),
    (
        _API + "os-console-output",
        MEMBER,
        "POST",
        "/servers/{server_id}/action (os-getConsoleOutput)",
        "Show a server's console log",
    ),
    (_API + "os-console-auth-tokens", ADMIN, "GET", "/os-console-auth-tokens/{id}", "Show what a console token is for"),
    (_API + "os-remote-consoles", MEMBER, "POST", "/servers/{server_id}/remote-consoles", "Open a server's console"),
    (
        _API + "os-create-backup",
        MEMBER,
        "POST",
        "/servers/{server_id}/action (createBackup)",
        "Make a backup of a server",
    ),
    (
        _API + "os-deferred-delete:restore",
        MEMBER,
        "POST",
        "/servers/{server_id}/action (restore)",
        "Restore a soft-deleted server",
    ),
    (
        _API + "os-deferred-delete:force",
        MEMBER,
        "POST",
        "/servers/{server_id}/action (forceDelete)",
        "Delete a server at once",
    ),
    (_API + "os-evacuate", ADMIN, "POST", "/servers/{server_id}/action (evacuate)", "Evacuate a server"),
    (
        _API + "os-extended-server-attributes",
        ADMIN,
        "GET",
        "/servers/{server_id}",
        "Show a server's host and other attributes",
    ),
    (_API + "extensions", READER, "GET", "/extensions", "List extensions"),
    (_API + "os-flavor-access", ADMIN, "GET", "/flavors/{id}/os-flavor-access", "List who may use a private flavor"),
    (
        _API + "os-flavor-access:add_tenant_access",
        ADMIN,
        "POST",
        "/flavors/{id}/action (addTenantAccess)",
        "Let a project use a flavor",
    ),
    (
        _API + "os-flavor-access:remove_tenant_access",
        ADMIN,
        "POST",
        "/flavors/{id}/action (removeTenantAccess)",
        "Keep a project from using a flavor",
    ),
    (_API + "os-flavor-extra-specs:index", READER, "GET", "/flavors/{id}/os-extra_specs", "List extra specs"),
    (_API + "os-flavor-extra-specs:show", READER, "GET", "/flavors/{id}/os-extra_specs/{key}", "Show an extra spec"),
    (_API + "os-flavor-extra-specs:create", ADMIN, "POST", "/flavors/{id}/os-extra_specs", "Set extra specs"),
    (
        _API + "os-flavor-extra-specs:update",
        ADMIN,
        "PUT",
        "/flavors/{id}/os-extra_specs/{key}",
        "Change an extra spec",
    ),
    (
        _API + "os-flavor-extra-specs:delete",
        ADMIN,
        "DELETE",
        "/flavors/{id}/os-extra_specs/{key}",
        "Remove an extra spec",
    ),
    (_API + "os-flavor-manage:create", ADMIN, "POST", "/flavors", "Create a flavor"),
    (_API + "os-flavor-manage:update", ADMIN, "PUT", "/flavors/{id}", "Change a flavor's description"),
    (_API + "os-flavor-manage:delete", ADMIN, "DELETE", "/flavors/{id}", "Delete a flavor"),
    (_API + "os-hosts:list", ADMIN, "GET", "/os-hosts", "List hosts"),
    (_API + "os-hosts:show", ADMIN, "GET", "/os-hosts/{name}", "Show a host"),
    (_API + "os-hosts:update", ADMIN, "PUT", "/os-hosts/{name}", "Enable or disable a host"),
    (_API + "os-hosts:start", ADMIN, "GET", "/os-hosts/{name}/startup", "Power a host on"),
    (_API + "os-hosts:shutdown", ADMIN, "GET", "/os-hosts/{name}/shutdown", "Power a host off"),
    (_API + "os-hosts:reboot", ADMIN, "GET", "/os-hosts/{name}/reboot", "Reboot a host"),
    (_API + "os-hypervisors:list", ADMIN, "GET", "/os-hypervisors", "List hypervisors"),
    (_API + "os-hypervisors:list-detail", ADMIN, "GET", "/os-hypervisors/detail", "List hypervisors in detail"),
    (_API + "os-hypervisors:statistics", ADMIN, "GET", "/os-hypervisors/statistics", "Show the sum of hypervisors"),
    (_API + "os-hypervisors:show", ADMIN, "GET", "/os-hypervisors/{id}", "Show a hypervisor"),
    (_API + "os-hypervisors:uptime", ADMIN, "GET", "/os-hypervisors/{id}/uptime", "Show a hypervisor's uptime"),
    (_API + "os-hypervisors:search", ADMIN, "GET", "/os-hypervisors/{pattern}/search", "Find hypervisors by name"),
    (_API + "os-hypervisors:servers", ADMIN, "GET", "/os-hypervisors/{pattern}/servers", "List hypervisors' servers"),
    (_API + "os-instance-actions:list", READER, "GET", "/servers/{server_id}/os-instance-actions", "List actions"),
    (_API + "os-instance-actions:show", READER, "GET", "/servers/{server_id}/os-instance-actions/{id}", "Show actions"),
    (
        _API + "os-instance-actions:events",
        ADMIN,
        "GET",
        "/servers/{server_id}/os-instance-actions/{id}",
        "Show an action's events",
    ),
    (
        _API + "os-instance-actions:events:details",
        ADMIN,
        "GET",
        "/servers/{server_id}/os-instance-actions/{id}",
        "Show the details of an action's events",
    ),
    (_API + "os-instance-usage-audit-log:list", ADMIN, "GET", "/os-instance_usage_audit_log", "List usage audits"),
    (
        _API + "os-instance-usage-audit-log:show",
        ADMIN,
        "GET",
        "/os-instance_usage_audit_log/{before}",
        "Show the usage audit of a month",
    ),
    (_API + "ips:index", READER, "GET", "/servers/{server_id}/ips", "List a server's addresses"),
    (_API + "ips:show", READER, "GET", "/servers/{server_id}/ips/{network}", "Show a server's addresses"),
    (_API + "os-keypairs:index", OWNER, "GET", "/os-keypairs", "List key pairs"),
    (_API + "os-keypairs:show", OWNER, "GET", "/os-keypairs/{name}", "Show a key pair"),
    (_API + "os-keypairs:create", OWNER, "POST", "/os-keypairs", "Create a key pair"),
    (_API + "os-keypairs:delete", OWNER, "DELETE", "/os-keypairs/{name}", "Delete a key pair"),
    (_API + "limits", ANY, "GET", "/limits", "Show the limits of one's project"),
    (_API + "limits:other_project", ADMIN, "GET", "/limits", "Show the limits of another project"),
    (_API + "os-lock-server:lock", MEMBER, "POST", "/servers/{server_id}/action (lock)", "Lock a server"),
    (_API + "os-lock-server:unlock", MEMBER, "POST", "/servers/{server_id}/action (unlock)", "Unlock a server"),
    (
        _API + "os-lock-server:unlock:unlock_override",
        ADMIN,
        "POST",
        "/servers/{server_id}/action (unlock)",
        "Unlock a server that somebody else locked",
    ),
    (_API + "os-migrate-server:migrate", ADMIN, "POST", "/servers/{server_id}/action (migrate)", "Migrate a server"),
    (
        _API + "os-migrate-server:migrate:host",
        ADMIN,
        "POST",
        "/servers/{server_id}/action (migrate)",
        "Migrate a server to a given host",
    ),
    (
        _API + "os-migrate-server:migrate_live",
        ADMIN,
        "POST",
        "/servers/{server_id}/action (os-migrateLive)",
        "Live-migrate a server",
    ),
    (
        _API + "os-migrate-server:migrate_live:host",
        ADMIN,
        "POST",
        "/servers/{server_id}/action (os-migrateLive)",
        "Live-migrate a server to a given host",
    ),
    (_API + "os-migrations:index", ADMIN, "GET", "/os-migrations", "List migrations"),
    (_API + "os-pause-server:pause", MEMBER, "POST", "/servers/{server_id}/action (pause)", "Pause a server"),
    (_API + "os-pause-server:unpause", MEMBER, "POST", "/servers/{server_id}/action (unpause)", "Unpause a server"),
    (_API + "os-quota-class-sets:show", ADMIN, "GET", "/os-quota-class-sets/{class}", "Show the default quotas"),
    (_API + "os-quota-class-sets:update", ADMIN, "PUT", "/os-quota-class-sets/{class}", "Change the default quotas"),
    (_API + "os-quota-sets:show", READER, "GET", "/os-quota-sets/{project_id}", "Show a project's quotas"),
    (_API + "os-quota-sets:defaults", ANY, "GET", "/os-quota-sets/{project_id}/defaults", "Show the default quotas"),
    (_API + "os-quota-sets:detail", READER, "GET", "/os-quota-sets/{project_id}/detail", "Show quotas and usage"),
    (_API + "os-quota-sets:update", ADMIN, "PUT", "/os-quota-sets/{project_id}", "Change a project's quotas"),
    (_API + "os-quota-sets:delete", ADMIN, "DELETE", "/os-quota-sets/{project_id}", "Restore the default quotas"),
    (_API + "os-rescue", MEMBER, "POST", "/servers/{server_id}/action (rescue)", "Rescue a server"),
    (_API + "os-unrescue", MEMBER, "POST", "/servers/{server_id}/action (unrescue)", "End a server's rescue"),
    (_API + "os-server-diagnostics", ADMIN, "GET", "/servers/{server_id}/diagnostics", "Show a server's diagnostics"),
    (
        _API + "os-server-external-events:create",
        SERVICE,
        "POST",
        "/os-server-external-events",
        "Tell of events outside of compute",
    ),
    (_API + "os-server-groups:index", READER, "GET", "/os-server-groups", "List server groups"),
    (
        _API + "os-server-groups:index:all_projects",
        ADMIN,
        "GET",
        "/os-server-groups",
        "List the server groups of all projects",
    ),
    (_API + "os-server-groups:show", READER, "GET", "/os-server-groups/{id}", "Show a server group"),
    (_API + "os-server-groups:create", MEMBER, "POST", "/os-server-groups", "Create a server group"),
    (_API + "os-server-groups:delete", MEMBER, "DELETE", "/os-server-groups/{id}", "Delete a server group"),
    (_API + "server-metadata:index", READER, "GET", "/servers/{server_id}/metadata", "List a server's metadata"),
    (_API + "server-metadata:show", READER, "GET", "/servers/{server_id}/metadata/{key}", "Show a metadata item"),
    (_API + "server-metadata:create", MEMBER, "POST", "/servers/{server_id}/metadata", "Add metadata"),
    (_API + "server-metadata:update_all", MEMBER, "PUT", "/servers/{server_id}/metadata", "Replace metadata"),
    (_API + "server-metadata:update", MEMBER, "PUT", "/servers/{server_id}/metadata/{key}", "Set a metadata item"),
    (_API + "server-metadata:delete", MEMBER, "DELETE", "/servers/{server_id}/metadata/{key}", "Remove an item"),
    (_API + "os-server-password:show", READER, "GET", "/servers/{server_id}/os-server-password", "Show the password"),
    (_API + "os-server-password:clear", MEMBER, "DELETE", "/servers/{server_id}/os-server-password", "Forget it"),
    (_API + "os-server-tags:index", READER, "GET", "/servers/{server_id}/tags", "List a server's tags"),
    (_API + "os-server-tags:show", READER, "GET", "/servers/{server_id}/tags/{tag}", "Tell whether a tag is there"),
    (_API + "os-server-tags:update_all", MEMBER, "PUT", "/servers/{server_id}/tags", "Replace a server's tags"),
    (_API + "os-server-tags:update", MEMBER, "PUT", "/servers/{server_id}/tags/{tag}", "Add a tag"),
    (_API + "os-server-tags:delete", MEMBER, "DELETE", "/servers/{server_id}/tags/{tag}", "Remove a tag"),
    (_API + "os-server-tags:delete_all", MEMBER, "DELETE", "/servers/{server_id}/tags", "Remove all tags"),
    ("compute:server:topology:index", READER, "GET", "/servers/{server_id}/topology", "Show a server's NUMA nodes"),
    (
        "compute:server:topology:host:index",
        ADMIN,
        "GET",
        "/servers/{server_id}/topology",
        "Show where a server's NUMA nodes are on its host",
    ),
    (_API + "os-services:list", ADMIN, "GET", "/os-services", "List services"),
    (_API + "os-services:update", ADMIN, "PUT", "/os-services/{id}", "Enable, disable or force down a service"),
    (_API + "os-services:delete", ADMIN, "DELETE", "/os-services/{id}", "Delete a service"),
    (_API + "os-shelve:shelve", MEMBER, "POST", "/servers/{server_id}/action (shelve)", "Shelve a server"),
    (_API + "os-shelve:unshelve", MEMBER, "POST", "/servers/{server_id}/action (unshelve)", "Unshelve a server"),
    (
        _API + "os-shelve:shelve_offload",
        ADMIN,
        "POST",
        "/servers/{server_id}/action (shelveOffload)",
        "Take a shelved server from its host",
    ),
    (
        _API + "os-shelve:unshelve_to_host",
        ADMIN,
        "POST",
        "/servers/{server_id}/action (unshelve)",
        "Unshelve a server to a given host",
    ),
    (_API + "os-server-shares:index", READER, "GET", "/servers/{server_id}/shares", "List a server's shares"),
    (_API + "os-server-shares:create", MEMBER, "POST", "/servers/{server_id}/shares", "Attach a share"),
    (_API + "os-server-shares:show", READER, "GET", "/servers/{server_id}/shares/{id}", "Show an attached share"),
    (_API + "os-server-shares:delete", MEMBER, "DELETE", "/servers/{server_id}/shares/{id}", "Detach a share"),
    (_API + "os-simple-tenant-usage:list", ADMIN, "GET", "/os-simple-tenant-usage", "Show all projects' usage"),
    (_API + "os-simple-tenant-usage:show", READER, "GET", "/os-simple-tenant-usage/{project_id}", "Show usage"),
    (_API + "os-suspend-server:suspend", MEMBER, "POST", "/servers/{server_id}/action (suspend)", "Suspend a server"),
    (_API + "os-suspend-server:resume", MEMBER, "POST", "/servers/{server_id}/action (resume)", "Resume a server"),
    (
        _API + "os-volumes-attachments:index",
        READER,
        "GET",
        "/servers/{server_id}/os-volume_attachments",
        "List volumes",
    ),
    (
        _API + "os-volumes-attachments:show",
        READER,
        "GET",
        "/servers/{server_id}/os-volume_attachments/{id}",
        "Show an attached volume",
    ),
    (
        _API + "os-volumes-attachments:create",
        MEMBER,
        "POST",
        "/servers/{server_id}/os-volume_attachments",
        "Attach a volume",
    ),
    (
        _API + "os-volumes-attachments:update",
        MEMBER,
        "PUT",
        "/servers/{server_id}/os-volume_attachments/{id}",
        "Change an attached volume",
    ),
    (
        _API + "os-volumes-attachments:delete",
        MEMBER,
        "DELETE",
        "/servers/{server_id}/os-volume_attachments/{id}",
        "Detach a volume",
    ),
    # The embedded identity and image services.
    ("identity:list_projects", ADMIN, "GET", "/v3/projects", "List all projects"),
    ("identity:list_users", ADMIN, "GET", "/v3/users", "List all users"),
    ("identity:list_roles", ADMIN, "GET", "/v3/roles", "List roles"),
    ("identity:validate_token", ADMIN, "GET", "/v3/auth/tokens", "Look into somebody else's token"),
    ("network:get_network", ANY, "GET", "/network/v2.0/networks", "Look at the built-in network"),
    ("network:get_port", READER, "GET", "/network/v2.0/ports", "Look at the ports of a project's servers"),
    ("network:get_quota", ADMIN, "GET", "/network/v2.0/quotas/{project_id}", "See another project's network quota"),
    ("image:add_image", MEMBER, "POST", "/image/v2/images", "Create an image"),
    ("image:modify_image", MEMBER, "PATCH", "/image/v2/images/{id}", "Change an image"),
    ("image:delete_image", MEMBER, "DELETE", "/image/v2/images/{id}", "Delete an image"),
    ("image:publicize_image", ADMIN, "PATCH", "/image/v2/images/{id}", "Let every project use an image"),
]

# Seconds between two looks at whether the operator's policy files have changed.
_LOOK = 2.0


# What of a caller rules can ask for; of equal callers and targets they say the same.
_CREDENTIALS = (
    "user_id",
    "user_domain_id",
    "project_id",
    "project_domain_id",
    "domain_id",
    "system_scope",
    "is_admin",
    "is_admin_project",
    "service_user_id",
    "service_user_domain_id",
    "service_project_id",
    "service_project_domain_id",
)
# Answers that are kept; whoever asks about ever new targets must not fill the memory.
_KEPT = 4096


class _Enforcer(policy.Enforcer):
    """oslo.policy's enforcer, which otherwise looks for changed files, and through all rules, at every question.

    Its answers are kept until the next look: it takes half a millisecond for one, and a request asks several times.
    """

    _looked = float("-inf")

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        super().__init__(conf)
        self._answers: dict[tuple[object, ...], bool] = {}

    def load_rules(self, force_reload: bool = False) -> None:
        now = time.monotonic()
        if force_reload or now - self._looked >= _LOOK:
            super().load_rules(force_reload)
            self._looked = now

    def allows(self, context: RequestContext, action: str, target: Mapping[str, Any]) -> bool:
        """Tell whether the caller may do the action to the target."""
        if time.monotonic() - self._looked >= _LOOK or len(self._answers) > _KEPT:
            self._answers = {}
        who = (tuple(context.roles), tuple(context.service_roles), *(getattr(context, name) for name in _CREDENTIALS))
        question = (action, who, *sorted(target.items()))
        answer = self._answers.get(question)
        if answer is None:
            answer = bool(self.authorize(action, dict(target), context, do_raise=False))
            self._answers[question] = answer
        return answer


_lock = threading.Lock()
_enforcer: _Enforcer | None = None


def list_rules() -> Sequence[policy.RuleDefault]:
    """Give the sample policy file every rule."""
    documented = [
        policy.DocumentedRuleDefault(name, check, text, [{"method": method, "path": path}])
        for name, check, method, path, text in _RULES
    ]
    return [*_BASE, *documented]


def get_enforcer(conf: cfg.ConfigOpts = CONF) -> _Enforcer:
    """Return this process's enforcer, made on first use."""
    global _enforcer
    with _lock:
        if _enforcer is None:
            enforcer = _Enforcer(conf)
            enforcer.register_defaults(list_rules())
            _enforcer = enforcer
        return _enforcer


def reset() -> None:
    """Forget the enforcer, for tests with a configuration of their own."""
    global _enforcer
    with _lock:
        _enforcer = None


def allows(context: RequestContext, action: str, target: Mapping[str, Any] | None = None) -> bool:
    """Tell whether the caller may do the action to the target."""
    if target is None:
        target = {"project_id": context.project_id, "user_id": context.user_id}
    return (_enforcer or get_enforcer()).allows(context, action, target)


def authorize(context: RequestContext, action: str, target: Mapping[str, Any] | None = None) -> None:
    """Make sure that the caller may do the action to the target.

    :raises Forbidden: they may not.
    """
    if not allows(context, action, target):
        raise exception.Forbidden(action=action)
