# SPDX-License-Identifier: Apache-2.0
"""A small compute control plane that speaks the OpenStack Compute API."""

__version__ = "0.1.0"
