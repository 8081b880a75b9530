# SPDX-License-Identifier: Apache-2.0
"""The client of compute services, addressed by the name of their RPC server (services.server)."""

from __future__ import annotations

from collections.abc import Sequence

from nova_lite import rpc
from nova_lite.context import RequestContext
from nova_lite.objects.action import ActionRequest
from nova_lite.objects.build import BuildRequest
from nova_lite.objects.diagnostics import Diagnostics, Screen
from nova_lite.objects.image import Image
from nova_lite.objects.instance import DomainInfo, Instance
from nova_lite.objects.move import MoveRequest


class ComputeAPI:
    """Casts are hints (the rows are the truth); calls raise rpc.Timeout."""

    def __init__(self, timeout: float = 30.0) -> None:
        self._client = rpc.client(rpc.COMPUTE, timeout)

    def build(self, context: RequestContext, server: str, requests: Sequence[BuildRequest]) -> None:
        """Build these instances, each on the node that its grant is for."""
        self._client.prepare(server=server).cast(context, "build", requests=list(requests))

    def act(self, context: RequestContext, server: str, requests: Sequence[ActionRequest]) -> None:
        """Do these actions; their outcomes come to the conductor."""
        self._client.prepare(server=server).cast(context, "act", requests=list(requests))

    def move(self, context: RequestContext, server: str, requests: Sequence[MoveRequest]) -> None:
        """Do these steps of moves; their outcomes come to the conductor. One without an operation only removes."""
        self._client.prepare(server=server).cast(context, "move", requests=list(requests))

    def discard_images(self, context: RequestContext, server: str, image_ids: Sequence[str]) -> None:
        """Remove images, or what there is of their content, that nobody wants any more."""
        self._client.prepare(server=server).cast(context, "discard_images", image_ids=list(image_ids))

    def cache_images(self, context: RequestContext, server: str, images: Sequence[Image]) -> None:
        """Fetch these images before they are needed."""
        self._client.prepare(server=server).cast(context, "cache_images", images=list(images))

    def console_output(self, context: RequestContext, server: str, instance: Instance, lines: int | None) -> str:
        """Return the last lines of the instance's serial log.

        :raises DomainNotFound: the host has no such domain.
        """
        return self._client.prepare(server=server).call(context, "console_output", instance=instance, lines=lines)

    def uptime(self, context: RequestContext, server: str) -> str:
        """Return how long the server's machine is up, as uptime(1) says it."""
        return self._client.prepare(server=server).call(context, "uptime")

    def diagnostics(self, context: RequestContext, server: str, instance: Instance) -> Diagnostics:
        """Return what the hypervisor measures of the instance.

        :raises DomainNotFound: the host has no such domain.
        """
        return self._client.prepare(server=server).call(context, "diagnostics", instance=instance)

    def screen(self, context: RequestContext, server: str, instance: Instance) -> Screen | None:
        """Return where the instance's screen is served now; None if it has none, or no power.

        :raises DomainNotFound: the host has no such domain.
        """
        return self._client.prepare(server=server).call(context, "screen", instance=instance)

    def look(self, context: RequestContext, server: str, uuid: str) -> None:
        """Look at the state of a server's domain, and report it if it has changed."""
        self._client.prepare(server=server).cast(context, "look", uuid=uuid)

    def domains(self, context: RequestContext, server: str) -> list[DomainInfo]:
        """Return the domains on all of the server's hosts, as their hypervisor shows them now.

        :raises HypervisorUnavailable: it does not answer.
        """
        return self._client.prepare(server=server).call(context, "domains")
