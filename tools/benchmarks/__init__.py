# SPDX-License-Identifier: Apache-2.0
"""The parts of tools/bench: one module per benchmark, and what they share. Not part of the installed package."""
