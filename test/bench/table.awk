# Joins what the benchmarks printed (bench.h says how) with instruction counts (case, instructions;
# sorted) and peers (case, who, runs, median, answer, remark), and prints the table; with -v json=FILE
# also one line of JSON a row. Fails when a peer's answer is another one than ours.
BEGIN { FS = "\t" }
FNR == 1 && !header++ {
	read_counts(counts)
	read_peers(peers)
	printf "%-25s %9s %9s %6s %12s  %s\n", "case", "median", "p99", "runs", "instr", "beside it"
}
/^ / { print; next }
{
	row($1, $2, $3, $4, $5, $6, $7)
}
END { exit differ }

function read_counts(file,    line, field) {
	while ((getline line <file) > 0) {
		split(line, field, "\t")
		count[field[1], ++counted[field[1]]] = field[2]
	}
}

function read_peers(file,    line, field) {
	while ((getline line <file) > 0) {
		split(line, field, "\t")
		who[field[1]] = field[2]
		peer_median[field[1]] = field[4]
		peer_answer[field[1]] = field[5]
		remark[field[1]] = field[6]
	}
}

function row(name, unit, n, median, p99, incumbents, answer,    instr, notes) {
	medians[name] = median
	instr = instructions(name)
	notes = incumbents == "-" ? "" : incumbents " of " n " by the incumbent"
	notes = notes beside(name, median, answer)
	printf "%-25s %9s %9s %6d %12s  %s\n", name, human(median, unit), human(p99, unit), n, instr, notes
	if (json)
		print as_json(name, unit, n, median, p99, incumbents, instr) >>json
}

function instructions(name) {
	return name in counted ? count[name, int((counted[name] + 1) / 2)] : "-"
}

function beside(name, median, answer,    base, text) {
	base = name
	if (sub(/-closest$/, "", base) && base in medians) {
		text = sprintf("%.2f of %s", median / medians[base], base)
		if (base in counted && name in counted)
			text = text sprintf(", %.2f of its instr", instructions(name) / instructions(base))
		return text
	}
	if (!(name in who))
		return ""
	text = sprintf("%s: %s, %d times ours; %s", who[name], human(peer_median[name], "ns"),
		peer_median[name] / median, remark[name])
	if (answer != peer_answer[name]) {
		text = text "; ANSWERS DIFFER: " peer_answer[name] ", ours: " answer
		differ = 1
	}
	return text
}

function human(value, unit) {
	if (unit != "ns")
		return value
	if (value < 1e3)
		return value " ns"
	if (value < 1e6)
		return sprintf("%.2f us", value / 1e3)
	return value < 1e9 ? sprintf("%.2f ms", value / 1e6) : sprintf("%.2f s", value / 1e9)
}

function as_json(name, unit, n, median, p99, incumbents, instr,    text) {
	text = sprintf("{\"name\":\"%s\",\"unit\":\"%s\",\"n\":%d,\"median\":%.0f,\"p99\":%.0f", name, unit,
		n, median, p99)
	if (instr != "-")
		text = text sprintf(",\"instr\":%.0f", instr)
	if (incumbents != "-")
		text = text sprintf(",\"incumbent\":%d", incumbents)
	if (name in who)
		text = text sprintf(",\"peer\":{\"name\":\"%s\",\"median\":%.0f}", who[name], peer_median[name])
	return text "}"
}
