# SPDX-License-Identifier: Apache-2.0
"""The api behind gunicorn: ``gunicorn --config /etc/nova-lite/gunicorn.conf.py nova_lite.api.wsgi:application``.

[api] listen, port, workers and threads are for nova-lite-api itself and not read here. What is not set in this file may
be given on gunicorn's command line, which goes before it.
"""

bind = "0.0.0.0:8774"
# A thread serves one request at a time; each process has its own connections to the database (at most twice [database]
# pool_size per direction).
workers = 4
worker_class = "gthread"
threads = 16

# A worker that does not answer the master for so long is replaced. As long as uploads of images may stall.
timeout = 120
# As [DEFAULT] graceful_shutdown_timeout.
graceful_timeout = 60
keepalive = 30

# Long paths have many ids and markers in them.
limit_request_line = 8190
# Headers with an underscore could be taken for those of a proxy.
header_map = "drop"

# The api logs each request itself.
accesslog = None
errorlog = "-"

# The socket that newer releases put into the home directory.
control_socket_disable = True

# TLS of its own, without a proxy before it:
# certfile = "/etc/nova-lite/tls/api.pem"  # the certificate, then those of the CAs between it and the root
# keyfile = "/etc/nova-lite/tls/api.key"

# The addresses of proxies that may say which protocol clients speak (X-Forwarded-Proto):
# forwarded_allow_ips = "192.0.2.10,192.0.2.11"
