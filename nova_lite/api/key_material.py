# SPDX-License-Identifier: Apache-2.0
"""The cryptography of key pairs: fingerprints as Nova shows them, and new keys for clients that bring none."""

from __future__ import annotations

import base64
import binascii
import datetime
import hashlib
from dataclasses import dataclass

from cryptography import exceptions as cryptography_errors
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from nova_lite import exception

SSH, X509 = "ssh", "x509"

_BITS = 2048
_YEARS = 10
# The user's name as Windows wants it in a certificate.
_UPN = ObjectIdentifier("1.3.6.1.4.1.311.20.2.3")


@dataclass(frozen=True, slots=True)
class KeyMaterial:
    """A new key: what is kept, and what only its maker gets to see."""

    public_key: str
    fingerprint: str
    private_key: str


def fingerprint(kind: str, public_key: str) -> str:
    """Return the fingerprint of a public key (MD5, as sshd showed it once) or certificate (SHA-1).

    :raises BadRequest: it is none.
    """
    try:
        return _ssh_fingerprint(public_key) if kind == SSH else _x509_fingerprint(public_key)
    except (ValueError, IndexError, UnicodeError, binascii.Error, cryptography_errors.UnsupportedAlgorithm):
        raise exception.BadRequest("Keypair data is invalid: failed to generate fingerprint")


def _ssh_fingerprint(public_key: str) -> str:
    text = public_key.strip()
    if "\n" in text:
        raise ValueError("several lines")
    serialization.load_ssh_public_key(text.encode("ascii", "replace"))
    blob = base64.b64decode(text.split()[1], validate=True)
    return _pairs(hashlib.md5(blob, usedforsecurity=False).hexdigest())


def _x509_fingerprint(certificate: str) -> str:
    parsed = x509.load_pem_x509_certificate(certificate.encode("ascii"))
    return _pairs(parsed.fingerprint(hashes.SHA1()).hex())  # noqa: S303 - the API's format


def _pairs(digest: str) -> str:
    return ":".join(digest[i : i + 2] for i in range(0, len(digest), 2))


def generate(kind: str, user_id: str) -> KeyMaterial:
    """Make a new RSA key, and for x509 a certificate of it in the user's name."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=_BITS)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    ).decode()
    public = _certificate(key, user_id) if kind == X509 else _ssh_public(key)
    return KeyMaterial(public, fingerprint(kind, public), private)


def _ssh_public(key: rsa.RSAPrivateKey) -> str:
    line = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return f"{line.decode()} Generated-by-Nova-lite"


def _certificate(key: rsa.RSAPrivateKey, user_id: str) -> str:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, user_id[:64])])
    start = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    # The UPN is an ASN.1 UTF8String: tag 12, length, text.
    text = f"{user_id[:64]}@localhost".encode()
    upn = x509.OtherName(_UPN, bytes((12, len(text))) + text)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=365 * _YEARS))
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([upn]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return built.public_bytes(serialization.Encoding.PEM).decode()
