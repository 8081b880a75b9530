# SPDX-License-Identifier: Apache-2.0
"""Options of authentication: Keystone, or the api's own small token endpoint."""

from oslo_config import cfg

GROUP = "auth"

OPTIONS = [
    cfg.StrOpt(
        "strategy",
        default="embedded",
        choices=[
            ("keystone", "tokens are checked with Keystone; see the group keystone_authtoken"),
            ("embedded", "the api issues tokens itself (POST /v3/auth/tokens) to the users of users_file"),
        ],
        help="Who says that a user is who they claim to be.",
    ),
    cfg.StrOpt(
        "users_file",
        default="$state_path/users.yaml",
        help="embedded: the YAML file of projects and users with bcrypt hashes; 'nova-lite-manage user' edits it. "
        "It is read again when it changes.",
    ),
    cfg.StrOpt(
        "token_key_file",
        default="$state_path/token.key",
        help="embedded: the file with the secret that signs tokens, made on first use with mode 0600. All api "
        "processes of a cloud need the same file.",
    ),
    cfg.IntOpt(
        "token_lifetime",
        default=3600,
        min=10,
        max=604800,
        help="embedded: seconds for which a token is valid.",
    ),
    cfg.StrOpt("region", default="RegionOne", help="embedded: the region named in the catalogue."),
]
