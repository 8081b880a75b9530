# SPDX-License-Identifier: Apache-2.0
"""The errors of nova_lite: each knows its HTTP status, and its message tells the reader what to do.

A subclass sets ``status`` and a ``template``; it is raised with the template's fields as keywords, or with a
message of its own. What reaches a user is always ``str(error)``.
"""

from typing import Any, ClassVar


class NovaLiteError(Exception):
    """The root of the tree; an unexpected failure when raised as itself."""

    status: ClassVar[int] = 500
    template: ClassVar[str] = "An unexpected error happened. Ask the operator to look for the request id in the logs."

    def __init__(self, message: str | None = None, **fields: Any) -> None:
        super().__init__(message if message is not None else self.template.format(**fields))


class BadRequest(NovaLiteError):
    status = 400
    template = "The request is malformed."


class Unauthorized(NovaLiteError):
    status = 401
    template = "The request you have made requires authentication."


class Forbidden(NovaLiteError):
    status = 403
    template = "Policy doesn't allow {action} to be performed."


class QuotaExceeded(Forbidden):
    template = (
        "Quota exceeded for {resource}: Requested {requested}, but already used {used} of {limit} {resource}. "
        "Delete some or ask the operator for more."
    )


class NotFound(NovaLiteError):
    status = 404
    template = "The resource could not be found."


class InstanceNotFound(NotFound):
    template = "Instance {uuid} could not be found."


class FlavorNotFound(NotFound):
    template = "Flavor {flavor} could not be found."


class ImageNotFound(NotFound):
    template = "Image {image} could not be found."


class KeyPairNotFound(NotFound):
    template = "Keypair {name} not found for user {user}"


class ServerGroupNotFound(NotFound):
    template = "Instance group {uuid} could not be found."


class ServiceNotFound(NotFound):
    template = "Service {service} could not be found."


class ComputeNodeNotFound(NotFound):
    template = "Compute node {node} could not be found."


class AggregateNotFound(NotFound):
    template = "Aggregate {aggregate} could not be found."


class NotAcceptable(NovaLiteError):
    status = 406
    template = "Version {version} is not supported by the API. Minimum is {minimum} and maximum is {maximum}."


class Conflict(NovaLiteError):
    status = 409
    template = "The request conflicts with the current state of the resource."


class InstanceInvalidState(Conflict):
    template = "Cannot '{action}' instance {uuid} while it is in {attribute} {state}"


class InstanceLocked(Conflict):
    template = "Instance {uuid} is locked"


class ServiceUnavailable(Conflict):
    template = "Service is unavailable at this time: compute host {host} does not answer. Try again when it is up."


class Gone(NovaLiteError):
    status = 410
    template = "This is not offered any more."


class BodyTooLarge(NovaLiteError):
    status = 413
    template = "The request body is larger than {limit} bytes."


class NotImplementedHere(NovaLiteError):
    status = 501
    template = "This cloud does not support {what}."


class NoValidHost(NovaLiteError):
    """No host can take the server; the message counts what each filter and rule turned away."""

    template = "No valid host was found. {reason}"


class BuildFailed(NovaLiteError):
    """A server could not be built on a host; the message is what the user reads in the fault."""

    template = "The server could not be built: {reason}"


class ImageUnacceptable(BuildFailed):
    """The image is missing, broken, or must not be used; no other host would fare better."""

    template = "Image {image} is unacceptable: {reason}"


class RescueFailed(NovaLiteError):
    """A server could not be rescued; the message is what the user reads."""

    template = "The server could not be rescued: {reason}"


class SnapshotFailed(NovaLiteError):
    """An image of a server could not be made; the message is what the user reads."""

    template = "The image could not be made: {reason}"


class MigrationFailed(NovaLiteError):
    """A step of a move failed on a host; the message is what the user reads."""

    template = "The server could not be moved: {reason}"


class MigrationAborted(NovaLiteError):
    """A live migration was ended because that was asked for; the server stayed where it was."""

    template = "The live migration was aborted."


class MigrationNotFound(NotFound):
    template = "Migration {migration} could not be found."


class DomainNotFound(NotFound):
    template = "No domain for instance {uuid} exists on this host."


class HypervisorUnavailable(NovaLiteError):
    status = 503
    template = "The hypervisor does not answer: {reason}"


class DatabaseUnavailable(NovaLiteError):
    """The database cannot be reached, or is not one that nova_lite can work on."""

    status = 503
    template = "The database cannot be reached: {reason}"


class IdentityUnavailable(NovaLiteError):
    status = 503
    template = "The identity service does not answer, so the token cannot be checked. Try again later."


class BusUnavailable(NovaLiteError):
    status = 503
    template = "The message bus cannot be reached: {reason}"
