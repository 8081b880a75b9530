# SPDX-License-Identifier: Apache-2.0
"""What happens to a server between its boot and its end, in the whole cloud."""
