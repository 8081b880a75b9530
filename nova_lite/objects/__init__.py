# SPDX-License-Identifier: Apache-2.0
"""Plain, frozen, typed values that cross the bus. They know nobody; ``wire`` turns them into JSON and back."""
