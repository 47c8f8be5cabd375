#!/bin/sh
# numafitd believes its journal: when somebody else could write it, numafitd and its check of settings say so.
# usage: BUILD=build/debug test/unit/test_journal_owner.sh
set -u
test=journal-owner short=yes
. test/unit/script_rig.sh

check() { "$bin/numafitd" --check-config --set machine=kep3545-8 --set runDirectory="$dir/run"; }
begin() { # NAME: a daemon that reads the run directory once, with its log in $dir/log
	name=$1
	: >"$dir/log"
	"$bin/numafitd" --set machine=kep3545-8 --set nri.socketPath="$dir/nri.sock" --set runDirectory="$dir/run" \
		--set metrics.address= >"$dir/log" 2>&1 &
	daemon=$!
	tail -n +1 -f --pid="$daemon" "$dir/log" | grep -q -m1 'event=started'
	"$bin/numafit" status --run-directory "$dir/run" -o wide >"$dir/status" 2>&1
	"$bin/numafit" status --run-directory "$dir/run" -o json >"$dir/status.json" 2>&1
	stop_daemon
}
silent() { ! grep -q journal-not-ours "$dir/log"; }

begin "a run directory of its own"
see "is not worth a line" silent
run "its check" 0 check
see "has no warning of it" sh -c "! grep -q 'runDirectory' '$dir/out'"
see "nor has its status" sh -c "! grep -q 'could have written\|journal_writers' '$dir/status' '$dir/status.json'"

row() { # WHAT SAYS
	begin "$1"
	see "is said at the start" line log journal-not-ours "$2"
	see "is said by the status" line status "journal: others than numafitd could have written the journal" "$2"
	see "is in the status's JSON" line status.json '"journal_writers":' "$2"
	run "$1: the check" 0 check
	see "says so, too" line out "warning: runDirectory" "$2"
}
chmod 0777 "$dir/run"
row "a run directory that every user can write" "every user"
chmod 0700 "$dir/run"
chmod 0777 "$dir"
row "a directory above that every user can write" "$dir can be written by every user (mode 0777)"
chmod 1777 "$dir"
begin "a directory above that is sticky"
see "is not worth a line" silent
chmod 0700 "$dir"
chmod 0660 "$dir/run/journal"
run "a journal that its group can write" 0 check
see "is said" line out "warning: runDirectory" "/journal can be written by its group (mode 0660)"
begin "a journal that its group can write"
see "is said at the start" line log journal-not-ours "its group"
mv "$dir/run/journal" "$dir/elsewhere"
ln -s "$dir/elsewhere" "$dir/run/journal"
run "a journal that is a symbolic link" 0 check
see "is said" line out "warning: runDirectory" "is a symbolic link"
if [ "$(id -u)" -eq 0 ]; then
	rm "$dir/run/journal"
	cp "$dir/elsewhere" "$dir/run/journal"
	chown 12345 "$dir/run/journal"
	run "a journal of another user" 0 check
	see "is said" line out "warning: runDirectory" "belongs to user 12345"
fi
finish
