-- SPDX-License-Identifier: Apache-2.0
--
-- The database and a user for each service, to be run as root before the first "nova-lite-manage db sync"; grants.sql
-- comes after it. Compute hosts have no user here.
--
-- Replace before: @MANAGE_PASSWORD@, @API_PASSWORD@, @CONDUCTOR_PASSWORD@, @SCHEDULER_PASSWORD@,
-- @NOVNCPROXY_PASSWORD@; and @REQUIRE@ by SSL, so that nobody logs in without TLS, or by NONE. '%' may be narrowed to the control plane's hosts.

CREATE DATABASE IF NOT EXISTS nova_lite CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE USER IF NOT EXISTS nova_lite_manage@'%' IDENTIFIED BY '@MANAGE_PASSWORD@' REQUIRE @REQUIRE@;
CREATE USER IF NOT EXISTS nova_lite_api@'%' IDENTIFIED BY '@API_PASSWORD@' REQUIRE @REQUIRE@;
CREATE USER IF NOT EXISTS nova_lite_conductor@'%' IDENTIFIED BY '@CONDUCTOR_PASSWORD@' REQUIRE @REQUIRE@;
CREATE USER IF NOT EXISTS nova_lite_scheduler@'%' IDENTIFIED BY '@SCHEDULER_PASSWORD@' REQUIRE @REQUIRE@;
CREATE USER IF NOT EXISTS nova_lite_novncproxy@'%' IDENTIFIED BY '@NOVNCPROXY_PASSWORD@' REQUIRE @REQUIRE@;

-- nova-lite-manage: the schema, and what an operator does past the API. No service uses this login.
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX, REFERENCES ON nova_lite.* TO nova_lite_manage@'%';
