#!/bin/sh
# Alerts and dashboards as they are written: the manual's table and the rules say the same, each alert leads to
# where the runbook names it, and every metric is one of numafitd's or numafit-extender's.
# usage: BUILD=build/debug test/unit/test_monitoring.sh
set -u
test=monitoring
. test/unit/script_rig.sh
rule=deploy/components/alerts/prometheusrule.yaml
page=deploy/docs/operating.md
tab=$(printf '\t')

same() { # WHAT WANTED GOT (files)
	diff "$2" "$3" >"$dir/out" 2>&1
	report $? "$1"
}
run "a reader of YAML" 0 ${CC:-cc} -o "$dir/flat" test/unit/yaml_values.c -lyaml
name=

# Each alert as a line: its name and a field, parted by tabs

"$dir/flat" <$rule | awk '
	match($1, /spec\.groups\.[0-9]+\.rules\.[0-9]+\./) {
		field = substr($1, RSTART + RLENGTH)
		value = substr($0, length($1) + 2)
		if (field == "alert") alert = value
		print alert "\t" field "\t" value
	}' >"$dir/fields"
field() { awk -F '\t' -v field="$1" '$2 == field { print $1 "\t" $3 }' "$dir/fields"; }
field alert | cut -f 1 >"$dir/alerts"
see "there are many alerts" [ "$(wc -l <"$dir/alerts")" -ge 15 ]
see "each name once" [ -z "$(sort "$dir/alerts" | uniq -d)" ]
for each in expr for labels.severity annotations.summary annotations.description annotations.runbook_url; do
	field $each | awk -F '\t' '$2 != "" { print $1 }' >"$dir/got"
	same "each has: $each" "$dir/alerts" "$dir/got"
done
field labels.severity | cut -f 2 | sort -u | tr '\n' ' ' >"$dir/got"
see "severities are three" is got "critical info warning "

# The table of the manual

awk -F ' *[|] *' '/^## / { on = $0 == "## Alerts" } on && /^\| `/ { gsub(/`/, ""); print $2 "\t" $3 "\t" $4 "\t" $5 }' $page >"$dir/got"
field expr >"$dir/exprs"
field for | cut -f 2 >"$dir/fors"
field labels.severity | cut -f 2 | paste "$dir/exprs" "$dir/fors" - >"$dir/want"
same "the manual's table has the same names, expressions, times and severities, in the same order" "$dir/want" "$dir/got"

# The runbook: an alert's address is a heading of it, and what is below names the alert

awk '
	/^## / { on = $0 == "## Runbook" }
	on && /^### / { at = tolower(substr($0, 5)); gsub(/[^a-z0-9 _-]/, "", at); gsub(/ /, "-", at) }
	on { line = $0; while (match(line, /`Numafit[A-Za-z]+`/)) {
		print substr(line, RSTART + 1, RLENGTH - 2) "\t" at
		line = substr(line, RSTART + RLENGTH)
	} }' $page | sort >"$dir/named"
field annotations.runbook_url | sed "s|$tab.*/deploy/docs/operating.md#|$tab|" | sort >"$dir/want"
same "each alert leads to the heading below which the runbook names it" "$dir/want" "$dir/named"
see "all addresses have one beginning" [ "$(field annotations.runbook_url | cut -f 2 | sed 's|deploy/docs/.*||' | sort -u | wc -l)" -eq 1 ]
see "which the manual names, to be replaced" grep -qF "$(field annotations.runbook_url | sed -n '1s|.*\(https://.*/\)deploy/docs/.*|\1|p')" $page

# What the manual's command makes of it

command=$(grep '^sed .*deploy/components/alerts/' $page)
run "the manual's command makes a rule file" 0 sh -ec "${command%>*}"
"$dir/flat" <"$dir/out" | sed 's/^0\.//' >"$dir/got"
"$dir/flat" <$rule | sed -n 's/^0\.spec\.//p' >"$dir/want"
name=
same "with all that is below spec, and no more" "$dir/want" "$dir/got"

# Metrics

sed -n 's/^\t\(METRIC_ROW\|OBJECT\|EACH\|NOW\|TOTAL\)("\([a-z_]*\)",.*/\1 \2/p' src/daemon-files/metrics_text.c |
	awk '{ print ($1 == "METRIC_ROW" ? "" : $1 == "OBJECT" ? "numafit_apiserver_" : "numafit_") $2 ($1 == "TOTAL" ? "_total" : "") }' >"$dir/metrics"
sed -n 's/^\tROW("\([a-z_]*\)",.*/numafit_extender_\1/p' src/numafit-extender/extender_metrics_text.c >>"$dir/metrics"
sort -u "$dir/metrics" >"$dir/have"
see "numafitd has metrics" [ "$(grep -vc extender "$dir/have")" -ge 60 ]
see "numafit-extender has some, too" [ "$(grep -c extender "$dir/have")" -ge 15 ]
for file in $rule $page deploy/components/dashboards/*.json; do
	grep -oE '(numafit|process)_[a-z0-9_]+' "$file" | sed 's/_bucket$//' | sort -u >"$dir/want"
	see "$file names metrics" [ "$(wc -l <"$dir/want")" -ge 15 ]
	comm -23 "$dir/want" "$dir/have" >"$dir/out"
	[ ! -s "$dir/out" ]
	report $? "$file: every one of them is there"
done
for file in deploy/components/dashboards/*.json; do
	see "$file is in the ConfigMap" grep -qw "${file##*/}" deploy/components/dashboards/kustomization.yaml
done
finish
