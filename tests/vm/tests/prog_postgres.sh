#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# PostgreSQL: initdb, pgbench with two clients, a crash in the middle and its
# recovery, pg_amcheck, dump and restore; page checksums are on.
# vm-timeout: 3600
# tier: soak
# vm-boot: own

. "$(dirname "$0")/../guest/prog_lib.sh"

version=$(cd /usr/lib/postgresql && printf '%s\n' * | sort -n | tail -n 1)
bin=/usr/lib/postgresql/$version/bin
in_ram "$bin"/{postgres,initdb,pg_ctl,pgbench,psql,pg_dump,pg_checksums,pg_amcheck,pg_controldata} \
	/usr/share/postgresql/"$version" /usr/lib/postgresql/"$version"/lib/{plpgsql,dict_snowball,amcheck}.so
# With TZ initdb does not look through all zones for ours.
export PGHOST=/run/pg PGUSER=postgres PGDATABASE=postgres TZ=UTC LC_ALL=C
install -d -o postgres -m 700 $PGHOST
seconds=15 transactions=60

as_postgres() { setpriv --reuid postgres --regid postgres --init-groups "$@"; }
sql() { as_postgres "$bin/psql" -X -A -t -v ON_ERROR_STOP=1 "$@"; }

# For whom the server is: it refuses a folder that others may enter.
init() {
	install -d -o postgres -g postgres -m 700 data
	as_postgres "$bin/initdb" -D $w/data --locale=C --encoding=UTF8 --auth=trust --data-checksums
	cat >>data/postgresql.conf <<-END
		listen_addresses = ''
		unix_socket_directories = '$PGHOST'
		shared_buffers = 16MB
		max_wal_size = 64MB
		min_wal_size = 32MB
		autovacuum_naptime = 5s
		log_destination = stderr
		logging_collector = off
	END
}

# Its own end is waited for where it is stopped.
start() {
	as_postgres "$bin/pg_ctl" start -D $w/data -w -t 240 -l /run/pg/$client.log >&2
}
stop() { as_postgres "$bin/pg_ctl" stop -D $w/data -m "$1" -w -t 240 >&2; }

bench_init() { as_postgres "$bin/pgbench" -i -q -s 1 --foreign-keys; }

# Each transaction is in history, and the sums agree.
sums_agree() {
	sql -c "SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(delta) FROM pgbench_history),
		(SELECT sum(tbalance) FROM pgbench_tellers) = (SELECT sum(delta) FROM pgbench_history),
		(SELECT bbalance FROM pgbench_branches) = (SELECT sum(delta) FROM pgbench_history),
		(SELECT count(*) FROM pgbench_accounts)"
}

bench() {
	as_postgres "$bin/pgbench" -n -c 2 -j 2 -t $transactions --random-seed=17 |
		grep -E 'number of (clients|transactions actually|failed)'
	sums_agree
	sql -c 'SELECT count(*), sum(delta) FROM pgbench_history'
}

# Killed in the middle of its work; what clients were told is committed is there.
crash() {
	as_postgres "$bin/pgbench" -n -c 2 -j 2 -T $((seconds * 3)) --random-seed=18 -l --log-prefix=/run/pg/told.$client >&2 &
	sleep $seconds
	kill -KILL "$(head -n 1 data/postmaster.pid)"
	wait || true
	# Its children notice.
	wait_for 60 not pgrep -U postgres -x postgres
}
recover() {
	local told before=$((2 * transactions)) now
	start
	told=$(cat /run/pg/told.$client.* | wc -l)
	sums_agree
	now=$(sql -c 'SELECT count(*) FROM pgbench_history')
	echo "clients were told of $told, $now are there with $before from before" >&2
	[ "$now" -ge $((told + before)) ]
	[ "$now" -le $((told + before + 2)) ]
	[ "$told" -gt 0 ]
}

checked() {
	sql -c 'CREATE EXTENSION amcheck'
	as_postgres "$bin/pg_amcheck" --heapallindexed --parent-check
	sql -c 'VACUUM FULL pgbench_accounts' -c 'REINDEX TABLE pgbench_accounts' -c 'CHECKPOINT'
	sums_agree
}

restored() {
	as_postgres "$bin/pg_dump" -f $w/data/dump.sql
	sql -c 'CREATE DATABASE restored'
	sql -q -d restored -f $w/data/dump.sql
	sql -d restored -c 'SELECT count(*) FROM pgbench_accounts'
	sql -c 'DROP DATABASE restored'
	rm data/dump.sql
}

tablespace() {
	install -d -o postgres -m 700 space
	sql -c "CREATE TABLESPACE space LOCATION '$w/space'" -c 'CREATE TABLE s TABLESPACE space AS SELECT generate_series(1, 5000) AS n'
	sql -c 'SELECT count(*), sum(n) FROM s'
	sql -c 'DROP TABLE s' -c 'DROP TABLESPACE space'
}

work() {
	step "initdb" init
	step "start" start
	step "pgbench --initialize" bench_init
	step "pgbench with two clients" bench
	step "killed while pgbench runs" crash
	step "recovery: what was committed is there" recover
	step "amcheck, VACUUM FULL, REINDEX" checked
	step "dump and restore" restored
	step "a table space" tablespace
	step "stop" stop fast
	step "checksums of all pages" eval "as_postgres $bin/pg_checksums --check -D $w/data | grep Bad"
	# A step that failed may have left it running.
	pkill -KILL -U postgres -x postgres || true
}

# Pages have times and places in the log in them.
COMPARE_TREES=no on_both work
tap_end
