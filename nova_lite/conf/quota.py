# SPDX-License-Identifier: Apache-2.0
"""Default quotas of a project; -1 is unlimited."""

from oslo_config import cfg

GROUP = "quota"


def _limit(name: str, default: int, text: str) -> cfg.IntOpt:
    return cfg.IntOpt(name, default=default, min=-1, help=f"{text} -1 is unlimited.")


OPTIONS = [
    _limit("instances", 10, "Servers of a project."),
    _limit("cores", 20, "Virtual CPUs of a project."),
    _limit("ram", 51200, "MiB of memory of a project."),
    _limit("metadata_items", 128, "Metadata items of a server."),
    _limit("key_pairs", 100, "Key pairs of a user."),
    _limit("server_groups", 10, "Server groups of a project."),
    _limit("server_group_members", 10, "Servers of a server group."),
    _limit("injected_files", 5, "Injected files of a server (microversions below 2.57)."),
    _limit("injected_file_content_bytes", 10240, "Bytes of an injected file."),
    _limit("injected_file_path_length", 255, "Bytes of an injected file's path."),
]
