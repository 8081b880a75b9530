#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A MariaDB of the cloud's own: data, socket and port are private. To be sourced.

# Those with a user each that may do everything in it; nova_lite's are made as in production.
readonly DATABASES=(keystone glance)

database_url() { # DATABASE [USER]
    echo "mysql+pymysql://${2:-$1}:$DATABASE_PASSWORD@$SERVICE_HOST:$MYSQL_PORT/$1?charset=utf8mb4"
}

start_mariadb() {
    if is_running mariadb; then
        note "runs"
        return
    fi
    local data="$DATA_DIR/mariadb" run="$RUN_DIR/mariadb"
    # mysqld is outside of some PATHs.
    local PATH="$PATH:/usr/sbin:/usr/bin"
    install -d -o mysql -g mysql -m 0755 "$run"
    if [[ ! -d "$data/mysql" ]]; then
        rm -rf "$data"
        install -d -o mysql -g mysql -m 0700 "$data"
        mariadb-install-db --no-defaults --user=mysql --datadir="$data" --skip-test-db \
            --auth-root-authentication-method=socket --auth-root-socket-user=root
    fi
    launch mariadb mariadbd --no-defaults --user=mysql --datadir="$data" --socket="$run/socket" \
        --pid-file="$run/pid" --bind-address="$SERVICE_HOST" --port="$MYSQL_PORT" --skip-name-resolve \
        --character-set-server=utf8mb4 --innodb-buffer-pool-size=128M --max-connections=1000
}

# Waits for it, and makes the databases with a user each.
settle_mariadb() {
    wait_for 60 mariadb "the answer of MariaDB" mariadb_answers
    local name
    {
        for name in "${DATABASES[@]}"; do
            echo "CREATE DATABASE IF NOT EXISTS $name CHARACTER SET utf8mb4;"
            echo "CREATE USER IF NOT EXISTS $name IDENTIFIED BY '$DATABASE_PASSWORD';"
            echo "GRANT ALL ON $name.* TO $name;"
        done
        nova_lite_sql users.sql
    } | sql
}

# Prints a file of etc/mariadb, with one password for all users: nova_lite_sql FILE
nova_lite_sql() {
    sed -e "s/@[A-Z]*_PASSWORD@/$DATABASE_PASSWORD/g" -e "s/@REQUIRE@/NONE/g" "$TOP/etc/mariadb/$1"
}

# Runs SQL of standard input as MariaDB's root.
sql() {
    mariadb --no-defaults --user=root --socket="$RUN_DIR/mariadb/socket" --batch --skip-column-names "$@"
}

mariadb_answers() {
    sql -e "SELECT 1" > /dev/null 2>&1
}

stop_mariadb() {
    stop_process mariadb 60
}
