#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# git with a repository of 3,200 files: clone (over a pipe, and with hard links),
# commit, merge, push, gc, fsck. Dates and packs are the same on both mounts, and
# so are all names of objects.
# vm-timeout: 3600
# tier: soak
# vm-boot: own

. "$(dirname "$0")/../guest/prog_lib.sh"

files=${FILES:-3200}
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/run/gitconfig
export GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'
cat >$GIT_CONFIG_GLOBAL <<-END
	[user]
		name = A U Thor
		email = author@example.org
	[init]
		defaultBranch = main
	[safe]
		directory = *
	[pack]
		threads = 1
	[gc]
		auto = 0
	[advice]
		detachedHead = false
END
in_ram git /usr/lib/git-core/git

# The history: all files, then a branch that changes each tenth of them.
history() {
	awk -v files="$files" '
	function data(text) { printf "data %d\n%s\n", length(text), text }
	function commit(branch, text, date) {
		printf "commit refs/heads/%s\nmark :%d\n", branch, date - 1600000000
		printf "committer A U Thor <author@example.org> %d +0000\n", date
		data(text)
	}
	function content(i, salt,   n, text) {
		for (n = 0; n <= i * 7 % 40; n++)
			text = text sprintf("%d %s line %d of file %d\n", n * i * 7919 % 10007, salt, n, i)
		return text
	}
	function file(i, salt) {
		printf "M %s inline d%02d/s%d/file-%d.txt\n", i % 50 ? "100644" : "100755",
			i % 37, i % 5, i
		data(content(i, salt))
	}
	BEGIN {
		commit("main", "all of them", 1600000001)
		for (i = 0; i < files; i++) file(i, "first")
		printf "M 120000 inline link\n"; data("d01/s1/file-1.txt")
		commit("topic", "each tenth", 1600000002)
		printf "from :1\n"
		for (i = 0; i < files; i += 10) file(i, "topic")
		commit("main", "some others", 1600000003)
		printf "from :1\n"
		for (i = 5; i < files; i += 100) file(i, "main")
		print "done"
	}'
}
git init -q --bare /run/bare
history | git -C /run/bare fast-import --quiet --done
diag "the repository: $(git -C /run/bare ls-tree -r --name-only main | wc -l) files"

clean() { [ -z "$(git status --porcelain)" ]; }

change() {
	cd repo
	for i in $(seq 1 10 300); do echo "changed $i" >>d$(printf %02d $((i % 37)))/s$((i % 5))/file-$i.txt; done
	git rm -q -r -f d36/s1
	git mv d05 moved
	mkdir new
	for i in $(seq 100); do echo "new $i" >new/file$i; done
	chmod 755 new/file1
	ln -s file2 new/link
	git add -A
	git status --porcelain | sort
	git commit -q -m 'many changes'
	git rev-parse HEAD
	clean
}

merge() {
	cd repo
	git checkout -q -b other origin/main~1
	echo conflict-free >README
	git add README
	git commit -q -m readme
	git checkout -q main
	git merge -q -m one other
	git merge -q -m two origin/topic
	git rev-parse HEAD^{tree} HEAD
	git diff --stat HEAD~2
	clean
}

stash() {
	cd repo
	echo unfinished >>README
	git stash -q
	clean
	git stash pop -q
	git diff
	git checkout -q README
	git worktree add -q ../tree origin/topic
	git -C ../tree grep -c topic | sort | tail -n 20
	git worktree remove ../tree
}

push() {
	git clone -q --bare repo bare.git
	cd repo
	git remote add bare ../bare.git
	git commit -q --allow-empty -m pushed
	git push -q bare main
	git -C ../bare.git rev-parse main
}

collect() {
	cd repo
	git gc -q
	git count-objects -v
	find .git -name '*.pack' -o -name '*.idx' -o -name '*.lock' -o -name 'tmp_*' | sort
}

sparse() {
	cd third
	git sparse-checkout set d01 d02
	git checkout -q main
	git ls-files -t | sort | uniq -c -w 1
	clean
}

work() {
	step "clone over a pipe" git clone -q --no-local /run/bare repo
	step "clone is clean" eval 'cd repo && clean && git ls-files | wc -l'
	step "clone with hard links" git clone -q -n --local repo second
	step "they are" eval 'find second/.git/objects -type f -links 2 | sort'
	step "commit of changed, renamed, removed and new files" change
	step "merge of three branches" merge
	step "stash and worktree" stash
	step "push" push
	step "gc" collect
	step "fsck" git -C repo fsck --full --strict
	step "fsck of the pushed" git -C bare.git fsck --full --strict
	step "clone after gc" git clone -q --no-local -n repo third
	step "log" git -C third log --stat --format='%H %T %s'
	step "two folders of it" sparse
	step "removing a clone" rm -r second
}

# The index has inode numbers and times, so has what gc remembers of a commit.
COMPARE_TREES=no on_both work
tap_end
