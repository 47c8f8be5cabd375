#!/bin/sh
# numafit-sim --cluster: the table of a small cluster's day is the one that was reviewed, its counts
# add up, and the plot is well-formed. That no CPU is held twice, the program checks itself.
# usage: BUILD=build/debug test/unit/test_cluster_sim.sh
set -u
test=cluster-sim
. test/unit/script_rig.sh
sim=$bin/numafit-sim
golden=test/golden/cluster_sim.txt

see() { # WHAT COMMAND...
	what=$1
	shift
	"$@" >>"$dir/out" 2>&1
	report $? "$what"
}

# run WHAT STATUS OPTION...: what it prints is in $dir/out and $dir/err
run() {
	what=$1 wanted=$2
	shift 2
	"$sim" "$@" >"$dir/out" 2>"$dir/err"
	[ $? -eq "$wanted" ]
	report $? "$what"
}

timeless() { sed 's/ *[^ ]*$//' "$@"; } # the last column is of the clock
says() { grep -qF -e "$1" "$dir/err"; }
same() { timeless "$1" | cmp - "$2"; }

# Of each row: placed + never = pods, no more pods refused than refusals, shares within 0 and 100.
add_up() {
	awk -v pods="$1" 'NR > 1 && ($2 + $7 != pods || $4 > $3 || $8 < 0 || $8 > 100 || $10 <= 0 ||
		$10 > 100 || $11 < 0 || $11 > 100) { print "row " NR; bad = 1 }
		END { exit bad || NR < 2 }' "$dir/out"
}

# Of the rows of the extender: as many as $1 refusals, and a hint for what is pinned and placed.
extender() {
	awk -v most="$1" '/^(least|most|balanced)/ && ($3 > most || $12 == 0 || $14 > 0) {
		print; bad = 1 } END { exit bad }' "$dir/out"
}

# A document with one root whose elements end in order, with attributes in quotes and no stray & < >.
well_formed() {
	awk 'BEGIN { RS = "<" }
	NR == 1 { if ($0 != "") fail("text before the first tag"); next }
	{
		at = index($0, ">")
		if (!at) fail("a tag without an end: " $0)
		tag = substr($0, 1, at - 1)
		text = substr($0, at + 1)
		if (text ~ />|&/) fail("stray character: " text)
		if (tag ~ /^\?xml .*\?$/) { if (NR != 2) fail("declaration"); next }
		if (tag ~ /^\//) {
			if (!depth || open[depth--] != substr(tag, 2)) fail("ends out of order: " tag)
			next
		}
		if (tag !~ /^[a-z]+( [a-zA-Z0-9-]+="[^"<&]*")*\/?$/) fail("bad tag: " tag)
		if (!depth && roots++) fail("a second root")
		name = tag
		sub(/[ \/].*/, "", name)
		if (tag !~ /\/$/) open[++depth] = name
	}
	function fail(why) { print why; bad = 1; exit 1 }
	END { exit bad || depth || roots != 1 }' "$1"
}

for policy in restricted single-numa-node best-effort; do
	run "a day of 20 nodes with 4 NUMA nodes, $policy" 0 --cluster 20x4 --policy $policy
	cp "$dir/out" "$dir/$policy"
	see "$policy: the counts add up" add_up 400
	{
		[ $policy = restricted ] || echo
		echo "policy $policy"
		timeless "$dir/$policy"
	} >>"$dir/tables"
	[ $policy = best-effort ] || see "$policy: what the extender places, no node refuses" extender 0
done
if [ "${UPDATE:-}" ]; then
	cp "$dir/tables" "$golden"
fi
see "the tables are those of $golden (UPDATE=1 writes it anew)" diff "$golden" "$dir/tables"

timeless "$dir/restricted" >"$dir/restricted.timeless"
run "one strategy after the other" 0 --cluster 20x4 --jobs 1
see "is the same day" same "$dir/out" "$dir/restricted.timeless"
run "another seed" 0 --cluster 20x4 --seed 2
see "is another day" sh -c "! sed 's/ *[^ ]*\$//' '$dir/out' | cmp -s - '$dir/restricted.timeless'"
run "reports that come two minutes late" 0 --cluster 20x4 --delay 120000 --strategies least-numa-nodes
see "add up as well" add_up 400
see "and what was bound meanwhile is not given twice" extender 0

run "an SVG" 0 --cluster 20x4 --svg "$dir/day.svg"
see "without the table" test ! -s "$dir/out"
see "is well-formed" well_formed "$dir/day.svg"
# Of each panel (a rect with a frame) its curve: 96 points, within it and apart from the frame and from
# all other panels; in each row of panels one curve at least goes through more than half of the height.
# With N strategies and so many measures.
all_visible() { # FILE N MEASURES
	awk -v strategies="$2" -v measures="$3" '
	function attribute(name) { return match($0, " " name "=\"[^\"]*\"") ? substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 4) : "" }
	function fail(why) { print NR ": " why; bad = 1 }
	/<rect/ && attribute("fill") == "none" {
		x = attribute("x") + 0; y = attribute("y") + 0; w = attribute("width") + 0; h = attribute("height") + 0
		for (i = 0; i < panels; i++)
			if (x < px[i] + pw[i] && px[i] < x + w && y < py[i] + ph[i] && py[i] < y + h) fail("panels overlap")
		px[panels] = x; py[panels] = y; pw[panels] = w; ph[panels++] = h
		next
	}
	/<polyline/ {
		curves++
		if (attribute("stroke") == "" || attribute("stroke") == "white") fail("no colour")
		if (split(attribute("points"), point, " ") != 96) fail("points")
		least = 1e9; most = 0
		for (i = 1; i <= 96; i++) {
			split(point[i], at, ",")
			if (at[1] < x || at[1] > x + w || at[2] < y + 2 || at[2] > y + h - 2) fail("a point is not in its panel")
			least = at[2] < least ? at[2] : least
			most = at[2] > most ? at[2] : most
		}
		range = (most - least) / h
		seen[y] = range > seen[y] ? range : seen[y] + 0
	}
	END {
		for (row in seen) { rows++; if (seen[row] < 0.3) fail("an axis that is not for its data") }
		if (rows != measures || panels != measures * strategies || curves != panels) fail(rows " rows, " panels " panels, " curves " curves")
		exit bad
	}' "$1"
}
see "shows a curve for each strategy and measure" all_visible "$dir/day.svg" 8 5
for measure in "Pods refused" "Pods that wait" "Fragmentation" "CPUs that running pods ask for" \
	"Containers that nodes have moved"; do
	see "has the measure $measure" grep -q ">$measure" "$dir/day.svg"
done
run "an SVG of one strategy" 0 --cluster 20x4 --strategies least-numa-nodes --svg "$dir/one.svg"
see "is well-formed" well_formed "$dir/one.svg"
see "has four panels" test "$(grep -c '<polyline' "$dir/one.svg")" -eq 4
sed 's/points="\([0-9.]*\),[0-9.]*/points="\1,5000/' "$dir/day.svg" >"$dir/broken.svg"
! all_visible "$dir/broken.svg" 8 5 >/dev/null
report $? "(the check sees a point that is nowhere)"
sed 's/<\/svg>//' "$dir/day.svg" >"$dir/broken.svg"
see "(the check sees one that is cut)" sh -c "! grep -q '</svg>' '$dir/broken.svg'"
! well_formed "$dir/broken.svg" >/dev/null
report $? "(and calls it broken)"
run "an SVG and a table" 0 --cluster 20x4 --strategies stock --svg "$dir/day.svg" --table
see "are both there" grep -q '^stock ' "$dir/out"
script -qec "$sim --cluster 20x4 --svg $dir/tty.svg" /dev/null >"$dir/out" </dev/null
report $? "a terminal for the progress"
see "which is one line" test "$(tr -cd '\n' <"$dir/out" | wc -c)" -eq 0
see "that counts" sh -c "tr '\\r' '\\n' <'$dir/out' | grep -q '^numafit-sim: 100 %, '"
run "an SVG where none can be written" 3 --cluster 1x1 --svg "$dir/none/day.svg"

# Two pods of one NUMA node each on a node that has two, then one that comes while both are full.
cat >"$dir/trace" <<'END'
# seconds lifetime family QoS containers CPU memory huge pages
0    3600 a Guaranteed 1 14 8Gi
60   3600 b Guaranteed 1 16 8Gi 512Mi 1Gi   # the other one
120  3600 c Guaranteed 1 4  1Gi
200  60   web Burstable 2 500m 64Mi
END
run "a trace" 0 --cluster 1x2 --trace "$dir/trace" --strategies least-numa-nodes
see "adds up" add_up 4
see "all are placed, c once a has ended, both hints followed" awk 'NR == 2 { exit !($2 == 4 && $5 >= 1 &&
	$7 == 0 && $8 == 100 && $9 == 10 && $12 == 3) }' "$dir/out"

refuses() { # LINE TEXT-OF-THE-ERROR
	printf '0 1 a Guaranteed 1 1 1Gi\n%s\n' "$1" >"$dir/trace"
	run "a line \"$1\"" 2 --cluster 1x1 --trace "$dir/trace"
	see "is refused: $2" says "line 2: $2"
}
refuses '0 1 a Guaranteed 1 1' '6 words, at least 7 are expected'
refuses '0 1 a Guaranteed 1 1 1Gi 0 0 0' 'more than 9 words'
refuses '86400 1 a Guaranteed 1 1 1Gi' 'arrival: it is not within a day'
refuses 'x 1 a Guaranteed 1 1 1Gi' 'arrival: '
refuses '0 -1 a Guaranteed 1 1 1Gi' 'lifetime: '
refuses '0 1 a-family-with-a-name Guaranteed 1 1 1Gi' 'family: '
refuses '0 1 a BestEffort 1 1 1Gi' 'QoS class: "BestEffort" is neither Guaranteed nor Burstable'
refuses '0 1 a Guaranteed 0 1 1Gi' 'containers: there is one at least'
refuses '0 1 a Guaranteed 9 1 1Gi' 'containers: '
refuses '0 1 a Guaranteed 1 1 1Gx' 'memory: '
: >"$dir/trace"
run "an empty trace" 2 --cluster 1x1 --trace "$dir/trace"
run "a trace that is not there" 3 --cluster 1x1 --trace "$dir/none"
see "is named" says "$dir/none: "

# Nodes that move containers. Rows NAME and NAME-moves, without the clock and the columns of moves.
rest_of() { awk -v name="$1" '$1 == name { $1 = ""; for (i = 15; i <= 20; i++) $i = ""; print }' "$dir/out"; }
is_base() { # BASE MOVES
	[ "$(rest_of "$1")" ] && [ "$(rest_of "$1")" = "$(rest_of "$2")" ]
}
row() { awk -v name="$1" "\$1 == name { n++; if (!($2)) exit 1 } END { exit n != 1 }" "$dir/out"; }

one_node="--cluster 1x8 --pods 200"
run "a day of one node, with and without moves" 0 $one_node --strategies stock,stock-moves
see "adds up" add_up 200
refused=$(awk '$1 == "stock" { print $3 }' "$dir/out")
see "has fewer refusals with moves than without ($refused)" row stock-moves "\$3 < $refused && \$15 > 0"
see "says what was moved: 1 GiB at least, and a second for each 10^9 bytes" row stock-moves \
	'$17 > 0 && $18 >= $17 && $19 >= $18 * 1.07 && $19 <= $18 * 1.08 + $17'
see "moves nothing without" row stock '$15 + $16 + $17 + $18 + $19 == 0'
for none in "--moves 0" "--moves-per-hour 0" "--move-bytes 0" "--movable 0" "--move-trials 0"; do
	run "nodes that move nothing ($none)" 0 $one_node --strategies stock,stock-moves,stock-packed,packed-moves $none
	see "live the day of those that cannot" is_base stock stock-moves
	see "(packed, too)" is_base stock-packed packed-moves
done
run "moves that take a hundred times longer" 0 $one_node --strategies stock-moves --move-rate 10M
see "add up as well" add_up 200
see "and take that long" row stock-moves '$17 > 0 && $19 >= $18 * 107'
run "half of the pods may move" 0 $one_node --strategies stock-moves --movable 50
see "add up as well" add_up 200
run "moves, and admission as best effort" 0 --cluster 20x4 --policy best-effort --strategies packed-moves
see "put some pods on fewer NUMA nodes" row packed-moves '$16 > 0'

usage() { # WHAT TEXT OPTION...
	what=$1 text=$2
	shift 2
	run "$what" 2 "$@"
	see "is refused: $text" says "$text"
}
usage "a cluster without NUMA nodes" "NODESxNUMA is expected" --cluster 20
usage "a cluster of nothing" "there is nothing" --cluster 0x4
usage "a cluster too large" "--cluster" --cluster 20001x4
usage "a strategy that there is not" '"fastest" is no strategy' --cluster 2x2 --strategies stock,fastest
usage "a strategy twice" "stock is there twice" --cluster 2x2 --strategies stock,stock
usage "a policy that there is not" '"any" is not one of none|best-effort' --cluster 2x2 --policy any
usage "more moves than a plan has" "--moves" --cluster 2x2 --moves 9
usage "moves that never end" "nothing would ever be moved" --cluster 2x2 --move-rate 0
usage "an interval of more than a day" "--move-interval" --cluster 2x2 --move-interval 86401
usage "more pods than all" "101 is more than 100" --cluster 2x2 --movable 101
usage "bytes that are none" "--move-bytes" --cluster 2x2 --move-bytes -1
usage "a cluster and a socket" "goes without --socket" --cluster 2x2 --socket "$dir/s"
finish
