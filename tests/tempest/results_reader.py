# SPDX-License-Identifier: Apache-2.0
"""Turns a subunit stream on stdin into a JSON object a line on stdout: a test's name, status, seconds and words.

A script and not a module: it runs in the virtual environment of Tempest, which has what reads subunit.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import subunit  # type: ignore[import-not-found]  # of Tempest's environment
import testtools  # type: ignore[import-not-found]


def _tell(test: dict[str, Any]) -> None:
    if test["status"] == "exists":
        return
    words = {
        name: content.as_text() for name, content in test["details"].items() if content.content_type.type == "text"
    }
    reason = words.pop("reason", None) or words.pop("traceback", None) or "\n".join(words.values())
    began, ended = test["timestamps"]
    seconds = (ended - began).total_seconds() if began and ended else 0.0
    line = {"test": test["id"], "status": test["status"], "seconds": seconds, "words": reason}
    print(json.dumps(line), flush=True)


def main() -> None:
    stream = subunit.ByteStreamToStreamResult(sys.stdin.buffer, non_subunit_name="stdout")
    result = testtools.StreamToDict(_tell)
    result.startTestRun()
    stream.run(result)
    result.stopTestRun()


if __name__ == "__main__":
    main()
