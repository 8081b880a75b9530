# SPDX-License-Identifier: Apache-2.0
"""The built-in network, in the whole cloud."""
