#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# sqlite3: two processes change one database at a time, with each kind of
# journal; a process is killed in the middle; integrity_check.
# vm-timeout: 1800

. "$(dirname "$0")/../guest/prog_lib.sh"

in_ram sqlite3

db() { sqlite3 -bail -cmd '.timeout 60000' "$@"; }

# Each of two processes moves money between accounts, in transactions of their
# own; a third one reads, and always sees the same sum.
transfers() {
	local file=$1 who=$2 n=$3 i
	for i in $(seq "$n"); do
		echo "BEGIN IMMEDIATE;
			UPDATE account SET balance = balance - $i WHERE id = $(((i * 7 + who) % 50));
			UPDATE account SET balance = balance + $i WHERE id = $(((i * 13 + who * 3) % 50));
			INSERT INTO log(who, n, text) VALUES ($who, $i, hex(randomblob(200)));
			COMMIT;"
	done | db "$file"
}

readers() {
	local file=$1 i sum
	for i in $(seq 5); do
		sum=$(db -readonly "$file" 'SELECT sum(balance) FROM account')
		[ "$sum" = 50000 ] || { echo "a sum of $sum"; return 1; }
	done
}

two_processes() {
	local mode=$1 file=$1.db a b
	db "$file" "PRAGMA journal_mode=$mode;
		CREATE TABLE account(id INTEGER PRIMARY KEY, balance INTEGER);
		CREATE TABLE log(who, n, text, UNIQUE(who, n));
		WITH RECURSIVE c(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM c WHERE x < 49)
			INSERT INTO account SELECT x, 1000 FROM c;"
	transfers "$file" 1 "${2:-20}" &
	a=$!
	transfers "$file" 2 "${2:-20}" &
	b=$!
	readers "$file"
	wait $a
	wait $b
	db "$file" "PRAGMA integrity_check; PRAGMA foreign_key_check;
		SELECT sum(balance) FROM account; SELECT who, count(*), sum(n) FROM log GROUP BY who;
		SELECT id, balance FROM account ORDER BY id;"
	ls "$file"*
}

# Who has a transaction open keeps the other out: SQLITE_BUSY, not a wrong answer.
busy() {
	rm -f /run/sql /run/begun
	mkfifo /run/sql
	sqlite3 rollback.db </run/sql >/dev/null &
	exec 5>/run/sql
	echo "CREATE TABLE IF NOT EXISTS t(x); BEGIN EXCLUSIVE; INSERT INTO t VALUES(1);
		SELECT writefile('/run/begun', 'x');" >&5
	wait_for 60 test -e /run/begun
	status_of sqlite3 rollback.db 'INSERT INTO t VALUES(2)'
	status_of sqlite3 rollback.db 'SELECT count(*) FROM t'
	echo 'COMMIT;' >&5
	exec 5>&-
	wait
	db rollback.db 'INSERT INTO t VALUES(3); SELECT * FROM t ORDER BY x'
}

# What was committed is there after the process was killed, what was not is not.
killed() {
	local mode=$1 file=killed-$1.db
	rm -f /run/sql /run/written
	mkfifo /run/sql
	db "$file" "PRAGMA journal_mode=$mode; CREATE TABLE t(x, filler)"
	sqlite3 "$file" </run/sql >/dev/null &
	local pid=$!
	exec 5>/run/sql
	echo "PRAGMA cache_size=10; INSERT INTO t VALUES(1, hex(randomblob(10000))); BEGIN;" >&5
	for i in $(seq 2 60); do echo "INSERT INTO t VALUES($i, hex(randomblob(10000)));" >&5; done
	echo "SELECT writefile('/run/written', 'x');" >&5
	wait_for 120 test -e /run/written
	kill -KILL $pid
	wait $pid || true
	exec 5>&-
	db "$file" 'PRAGMA integrity_check; SELECT count(*), sum(x) FROM t'
}

# A table larger than what stays in memory, an index, VACUUM, backup and dump.
bulk() {
	db bulk.db "PRAGMA cache_size=200;
		CREATE TABLE t(id INTEGER PRIMARY KEY, k, v);
		WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 4000)
			INSERT INTO t SELECT x, (x * 7919) % 10007, printf('%0200d', x) FROM c;
		CREATE INDEX k ON t(k);
		DELETE FROM t WHERE k % 3 = 0;
		UPDATE t SET v = v || k WHERE k % 5 = 0;
		VACUUM;
		PRAGMA integrity_check;
		SELECT count(*), sum(k), sum(length(v)) FROM t;"
	db bulk.db '.backup copy.db'
	db copy.db 'PRAGMA integrity_check; SELECT count(*), sum(k), sum(length(v)) FROM t;'
	db bulk.db .dump | sha256sum
}

mapped() {
	db bulk.db 'PRAGMA mmap_size=100000000; SELECT count(*), sum(k), sum(length(v)) FROM t;
		UPDATE t SET v = k; SELECT sum(v) FROM t; PRAGMA integrity_check'
}

work() {
	step "a rollback journal, two processes" two_processes delete
	step "a truncated journal" two_processes truncate
	step "a persistent journal" two_processes persist
	step "a write-ahead log, two processes" two_processes wal
	step "a table locked by another process" busy
	step "killed in a transaction, with a rollback journal" killed delete
	step "killed in a transaction, with a write-ahead log" killed wal
	step "a larger table, index, VACUUM, backup" bulk
	step "mapped" mapped
	step "journals are gone" eval 'ls'
}

# Their contents differ by what is random in them.
COMPARE_TREES=no on_both work
tap_end
