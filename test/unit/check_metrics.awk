# Whether the standard input is Prometheus' text format 0.0.4, as strictly as promtool's linter and
# more: HELP and TYPE once and first, families in one piece, names, units and labels as they are to
# be, no series twice, histograms whose buckets add up. Each complaint is a line; the status is 1.
# usage: awk -f test/unit/check_metrics.awk <metrics
function complain(what) {
	print "line " NR ": " what ": " $0
	bad = 1
}
function begin_family(name) {
	end_family()
	if (name in families)
		complain("the family came before")
	families[name] = 1
	family = name
	type = ""
	nr_samples = 0
	if (name !~ /^[a-z_][a-z0-9_]*$/ || name ~ /__/)
		complain("no such name")
	if (name ~ /_(ms|us|ns|milliseconds|microseconds|nanoseconds|minutes|hours|kb|mb|gb|kilobytes|megabytes|percent)(_|$)/)
		complain("not a base unit")
	if (name ~ /_(counter|gauge|histogram|summary|count|sum|bucket)$/)
		complain("the type is in the name")
}
function end_family() {
	if (family != "" && !nr_samples)
		complain("the family before has no sample")
	if (type == "histogram")
		for (series in counts)
			end_histogram(series)
	split("", counts); split("", sums); split("", last_le); split("", last_bucket)
}
function end_histogram(series) {
	if (last_le[series] != "+Inf")
		complain("no bucket for +Inf before, of " family series)
	if (last_bucket[series] != counts[series])
		complain("the last bucket before is not the count, of " family series)
	if (!(series in sums))
		complain("no sum before, of " family series)
}
# The labels at the start of rest into label[], name by name; rest is what follows. False: wrong.
function parse_labels(   name, value, c) {
	split("", label)
	nr_labels = 0
	if (substr(rest, 1, 1) != "{")
		return 1
	rest = substr(rest, 2)
	while (match(rest, /^[a-zA-Z_][a-zA-Z0-9_]*="/)) {
		name = substr(rest, 1, RLENGTH - 2)
		rest = substr(rest, RLENGTH + 1)
		value = ""
		while ((c = substr(rest, 1, 1)) != "\"") {
			if (c == "")
				return 0
			if (c == "\\") {
				c = substr(rest, 1, 2)
				if (c != "\\\\" && c != "\\\"" && c != "\\n")
					return 0
			}
			value = value c
			rest = substr(rest, length(c) + 1)
		}
		if (name in label || name ~ /^__/ || name ~ /[A-Z]/)
			return 0
		label[name] = value
		names[++nr_labels] = name
		rest = substr(rest, 2)
		if (substr(rest, 1, 1) == "}") {
			rest = substr(rest, 2)
			return 1
		}
		if (substr(rest, 1, 1) != ",")
			return 0
		rest = substr(rest, 2)
	}
	return 0
}
function series_without_le(   i, s) {
	s = "{"
	for (i = 1; i <= nr_labels; i++)
		if (names[i] != "le")
			s = s names[i] "=" label[names[i]] ","
	return s "}"
}
function number(text) { return text == "+Inf" ? 1e308 : text + 0 }
function check_bucket(name, series, value) {
	if (name == family "_bucket") {
		if (!("le" in label))
			complain("a bucket without a bound")
		if (series in last_le && number(last_le[series]) >= number(label["le"]))
			complain("bounds do not ascend")
		if (series in last_bucket && last_bucket[series] > value)
			complain("buckets are not cumulative")
		last_le[series] = label["le"]
		last_bucket[series] = value
	} else if (name == family "_sum") {
		sums[series] = value
	} else if (name == family "_count") {
		counts[series] = value
	} else {
		complain("not of this histogram")
	}
}
{ nr_lines++ }
/^# HELP / {
	begin_family($3)
	if (NF < 4)
		complain("no help")
	next
}
/^# TYPE / {
	if ($3 != family || type != "" || nr_samples)
		complain("TYPE does not follow its HELP")
	type = $4
	if (NF != 4 || (type != "counter" && type != "gauge" && type != "histogram"))
		complain("no such type")
	if ((type == "counter") != (family ~ /_total$/))
		complain("a counter's name ends with _total, and no other")
	if (type == "histogram" && family !~ /_(seconds|bytes)$/)
		complain("a histogram without a unit")
	next
}
{
	nr_samples++
	if (!match($0, /^[a-zA-Z_:][a-zA-Z0-9_:]*/)) {
		complain("neither a comment nor a sample")
		next
	}
	name = substr($0, 1, RLENGTH)
	rest = substr($0, RLENGTH + 1)
	if (!parse_labels() || substr(rest, 1, 1) != " ") {
		complain("labels")
		next
	}
	value = substr(rest, 2)
	if (value !~ /^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$/ || (type != "gauge" && value ~ /^-/))
		complain("value")
	series = series_without_le()
	if (type == "" || (type != "histogram" && name != family))
		complain("not of this family")
	if (type != "histogram" && "le" in label)
		complain("le is for histograms")
	if ((name, series, label["le"]) in seen)
		complain("the same series twice")
	seen[name, series, label["le"]] = 1
	if (type == "histogram")
		check_bucket(name, series, value + 0)
}
END {
	end_family()
	if (!nr_lines) {
		print "nothing at all"
		bad = 1
	}
	exit bad
}
