-- SPDX-License-Identifier: Apache-2.0
--
-- What each service may do, to be run as root after "nova-lite-manage db sync", since it names tables. None of them may
-- change the schema. Running it again is no error.

-- The api and the conductor write what they accept and what comes of it.
GRANT SELECT, INSERT, UPDATE, DELETE ON nova_lite.* TO nova_lite_api@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON nova_lite.* TO nova_lite_conductor@'%';

-- A scheduler looks at everything. It writes grants, takes the tickets that order them, and says that it is alive; that
-- a server exists or where it runs is for others to write.
GRANT SELECT ON nova_lite.* TO nova_lite_scheduler@'%';
GRANT INSERT, DELETE ON nova_lite.grants TO nova_lite_scheduler@'%';
GRANT UPDATE (ticket, updated_at) ON nova_lite.compute_nodes TO nova_lite_scheduler@'%';
GRANT UPDATE (ticket, updated_at) ON nova_lite.server_groups TO nova_lite_scheduler@'%';
GRANT INSERT, UPDATE ON nova_lite.services TO nova_lite_scheduler@'%';

-- The proxy of screens looks at what a token opens, and notes that it was used.
GRANT SELECT ON nova_lite.* TO nova_lite_novncproxy@'%';
GRANT UPDATE (used_at) ON nova_lite.console_tokens TO nova_lite_novncproxy@'%';
