# SPDX-License-Identifier: Apache-2.0
"""The compute process: drives one hypervisor, which may be many hosts, and knows no database.

It registers its nodes, says that it is alive for as long as its hypervisor is, consumes grants and builds, does what
it is asked to the servers that are here, and reports what it sees. What it reports is never what it has guessed: a
domain is destroyed only on proof, and an event only makes it look.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from oslo_config import cfg
from oslo_log import log
from stevedore import driver as plugin

from nova_lite import exception, rpc
from nova_lite.batching import Batcher, answering_nothing
from nova_lite.compute import inventory, uptime
from nova_lite.compute.actor import Actor, Kind
from nova_lite.compute.builder import Builder
from nova_lite.compute.claims import Claims
from nova_lite.compute.instance_locks import InstanceLocks
from nova_lite.compute.mover import Mover
from nova_lite.compute.precaching import Precaching
from nova_lite.compute.rebuilder import Rebuilder
from nova_lite.compute.rescuer import Rescuer
from nova_lite.compute.shelver import Shelver
from nova_lite.compute.snapshots import Snapshots
from nova_lite.compute.spawner import Spawner
from nova_lite.compute.work import Work
from nova_lite.conductor.rpcapi import ConductorAPI
from nova_lite.context import RequestContext, service_context
from nova_lite.image.cache import ImageCache
from nova_lite.image.driver import ImageSource
from nova_lite.objects.action import ActionOutcome, ActionRequest
from nova_lite.objects.build import BuildOutcome, BuildRequest
from nova_lite.objects.diagnostics import Diagnostics, Screen
from nova_lite.objects.flavor import Flavor
from nova_lite.objects.image import Image
from nova_lite.objects.instance import DomainInfo, Instance
from nova_lite.objects.move import MoveRequest
from nova_lite.objects.node import NodeInventory
from nova_lite.service import Periodic, Service
from nova_lite.virt.driver import Driver

LOG = log.getLogger(__name__)


class Endpoint:
    """What the bus may call."""

    target = rpc.endpoint_target

    def __init__(
        self,
        driver: Driver,
        builder: Builder,
        actor: Actor,
        mover: Mover,
        snapshots: Snapshots,
        look: Callable[[str], None],
        precaching: Precaching,
    ) -> None:
        self._driver = driver
        self._builder = builder
        self._actor = actor
        self._mover = mover
        self._snapshots = snapshots
        self._look = look
        self._precaching = precaching

    @rpc.expose
    def build(self, context: RequestContext, requests: list[BuildRequest]) -> None:
        self._builder.build(requests)

    @rpc.expose
    def act(self, context: RequestContext, requests: list[ActionRequest]) -> None:
        self._actor.act(requests)

    @rpc.expose
    def move(self, context: RequestContext, requests: list[MoveRequest]) -> None:
        self._mover.move(requests)

    @rpc.expose
    def discard_images(self, context: RequestContext, image_ids: list[str]) -> None:
        for image_id in image_ids:
            self._snapshots.discard(image_id)

    @rpc.expose
    def cache_images(self, context: RequestContext, images: list[Image]) -> None:
        self._precaching.cache(images)

    @rpc.expose
    def console_output(self, context: RequestContext, instance: Instance, lines: int | None) -> str:
        return self._driver.console_output(instance, lines)

    @rpc.expose
    def uptime(self, context: RequestContext) -> str:
        return uptime.line()

    @rpc.expose
    def diagnostics(self, context: RequestContext, instance: Instance) -> Diagnostics:
        return self._driver.diagnostics(instance)

    @rpc.expose
    def screen(self, context: RequestContext, instance: Instance) -> Screen | None:
        return self._driver.screen(instance)

    @rpc.expose
    def look(self, context: RequestContext, uuid: str) -> None:
        self._look(uuid)

    @rpc.expose
    def domains(self, context: RequestContext) -> list[DomainInfo]:
        return self._driver.domains()


class ComputeService(Service):
    """The compute service of one host, or of all the hosts that a fake hypervisor plays."""

    name = "compute"

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._stopping = threading.Event()

    def start(self) -> None:
        conf = self._conf
        rpc.start(conf)
        self._conductor = ConductorAPI(conf.compute.conductor_timeout)
        self.driver: Driver = _plugin("nova_lite.virt", conf.compute.driver, conf)
        self._locks, self._work = InstanceLocks(), Work()
        network = _plugin("nova_lite.network", conf.network.driver, conf)
        source: ImageSource = _plugin("nova_lite.image", conf.image.driver, conf)
        images = ImageCache(conf, source)
        claims = Claims(self._conductor, conf.host)
        self._precaching = Precaching(images)
        spawner = Spawner(conf, self.driver, network, images)
        self._builder = Builder(conf, self.driver, spawner, self._locks, self._work, claims, self._report_builds)
        rebuilder = Rebuilder(self.driver, spawner, self._report_progress)
        snapshots = Snapshots(conf, self.driver, source, self._work, self._report_progress)
        rescuer = Rescuer(conf, self.driver, spawner)
        shelver = Shelver(conf, self.driver, network, snapshots)
        more: dict[str, Kind] = {
            "rebuild": rebuilder.rebuild,
            "rescue": rescuer.rescue,
            "unrescue": rescuer.unrescue,
            "shelve": shelver.shelve,
            "shelveOffload": shelver.offload,
            "unshelve": shelver.unshelve,
            "createImage": snapshots.create_image,
            "createBackup": snapshots.create_image,
        }
        report, ask = self._report_actions, self._ask_for_actions
        self._actor = Actor(conf, self.driver, network, self._locks, self._work, report, ask, more)
        self._mover = Mover(conf, self.driver, network, spawner, self._locks, self._work, claims, self._conductor)
        self._hosts: list[str] = []
        self._host_of_node: dict[str, str] = {}
        self._events: Batcher[str, None] = Batcher("events", answering_nothing(self._look), 100)
        self.driver.start(self._on_event)
        self._register()
        endpoint = Endpoint(
            self.driver, self._builder, self._actor, self._mover, snapshots, self._on_event, self._precaching
        )
        self._server = rpc.serve(rpc.COMPUTE, conf.host, endpoint, conf.rpc_workers)
        self._report_first()
        self._heartbeat = Periodic("heartbeat", conf.report_interval, self._beat)
        self._reporter = Periodic("inventory", conf.compute.inventory_interval, self._report_inventory)

    def stop(self) -> None:
        self._stopping.set()
        self._server.stop()
        self._server.wait()
        self._reporter.stop()
        self._builder.stop()
        self._actor.stop()
        self._mover.stop()
        self._precaching.stop()
        self._events.stop()
        self._heartbeat.stop()
        self.driver.stop()

    # -- being there

    def _register(self) -> None:
        """Report the nodes until a conductor answers; a host that may not be who it says it is does not start.

        :raises Conflict: the identity on record is another.
        """
        while not self._stopping.is_set():
            try:
                self._register_nodes(inventory.collect(self._conf, self.driver), starting=True)
                return
            except rpc.Error as error:
                LOG.warning("no conductor answers yet; trying again reason=%s", error)
            except exception.HypervisorUnavailable as error:
                LOG.warning("the hypervisor does not answer yet; trying again reason=%s", error)
                self._stopping.wait(1.0)

    def _register_nodes(self, nodes: Sequence[NodeInventory], starting: bool) -> None:
        records = self._conductor.register(service_context(), self._conf.host, nodes, starting)
        self._hosts = sorted({record.host for record in records})
        self._host_of_node = {record.node: record.host for record in records}
        self._reported = list(nodes)

    def _beat(self) -> None:
        """Say that the hosts are alive, if their hypervisor answers."""
        try:
            self.driver.check()
        except exception.HypervisorUnavailable as error:
            LOG.warning("no heartbeat, since the hypervisor does not answer reason=%s", error)
            return
        self._conductor.heartbeat(service_context(), self._hosts, self._conf.host, self._work.operations())

    def _report_inventory(self) -> None:
        nodes = inventory.collect(self._conf, self.driver)
        if nodes != self._reported:
            self._register_nodes(nodes, starting=False)
        self._report_domains()

    # -- what is here

    def _on_event(self, uuid: str) -> None:
        if not self._stopping.is_set():
            self._events.submit([uuid])

    def _look(self, uuids: Sequence[str]) -> None:
        """Report the state that domains are in now, each under its instance's lock.

        An action that holds the lock reports by itself; by the time that this gets the lock, that report is done.
        """
        for uuid in dict.fromkeys(uuids):
            if self._mover.is_migrating(uuid):
                continue  # its row says that it is on its way, and its lock may be held for long
            with self._locks.holding(uuid):
                for domain in self.driver.domains_of(uuid):
                    host = self._host_of_node.get(domain.node)
                    if host is not None:
                        self._conductor.report_power_state(service_context(), host, domain)

    def _report_first(self) -> None:
        """Report what is here before anything is done; a report that nobody hears is no reason not to start."""
        try:
            self._report_domains()
        except (rpc.Error, exception.NovaLiteError) as error:
            LOG.warning("first report of domains failed; the next follows soon reason=%s", error)

    def _report_domains(self) -> None:
        """Report all that is here, remove what is proven to be left over, and look again at domains that differ."""
        domains, remains = self.driver.domains(), self.driver.remains()
        for answer in self._conductor.report_domains(service_context(), self._hosts, domains, remains):
            uuid, host, finding = answer["uuid"], answer["host"], answer["finding"]
            if finding == "differs":
                self._on_event(uuid)
                continue
            LOG.info("removing uuid=%s host=%s finding=%s", uuid, host, finding)
            try:
                self._remove_left(_remains(uuid, host, answer["node"]), finding)
            except exception.NovaLiteError as error:
                # The next report finds it again; the others are not to wait for it.
                LOG.warning("not removed uuid=%s host=%s reason=%s", uuid, host, error)

    def _remove_left(self, left: ActionRequest, finding: str) -> None:
        if finding == "deleted":
            self._work.doom(left.instance.uuid)
            self._actor.destroy(left)
            self._conductor.vacated(service_context(), left.instance.uuid, left.instance.host)
        else:
            self._remove_moved(left.instance)

    def _remove_moved(self, instance: Instance) -> None:
        """Remove what a server that lives elsewhere has left here; asked again, now that nothing can change it."""
        with self._locks.holding(instance.uuid):
            proof = self._conductor.may_remove(service_context(), instance.uuid, instance.host)
            if proof is None:
                return
            self._mover.remove(instance, bool(proof["shared"]))
            if proof["migration"]:
                self._conductor.removed(service_context(), str(proof["migration"]))

    # -- reporting

    def _report_builds(self, outcomes: Sequence[BuildOutcome]) -> None:
        self._conductor.finish_builds(service_context(), outcomes)

    def _report_progress(self, operation: str, task_state: str, saving: bool = False) -> None:
        """Tell what is done now in an operation; only shown, so the work goes on if nobody hears it."""
        try:
            self._conductor.note_progress(service_context(), operation, task_state, saving)
        except rpc.Error as error:
            LOG.warning("no conductor heard operation=%s task_state=%s reason=%s", operation, task_state, error)

    def _ask_for_actions(self, operations: Sequence[str]) -> list[bool]:
        """Tell of each operation whether it is still to be done."""
        wanted = set(self._conductor.wanted(service_context(), operations))
        return [operation in wanted for operation in operations]

    def _report_actions(self, outcomes: Sequence[ActionOutcome]) -> None:
        self._conductor.finish_actions(service_context(), outcomes)


def _remains(uuid: str, host: str, node: str) -> ActionRequest:
    """Make the request to remove a server of which nothing but its uuid is known any more."""
    flavor = Flavor("", "", 0, 0, 0)
    instance = Instance(uuid, "", "", "", "", flavor, node=node, host=host)
    return ActionRequest("", "delete", instance)


def _plugin(namespace: str, name: str, conf: cfg.ConfigOpts) -> Any:
    manager: plugin.DriverManager[Any] = plugin.DriverManager(namespace, name, invoke_on_load=True, invoke_args=(conf,))
    return manager.driver
