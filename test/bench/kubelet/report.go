package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
)

type figure struct {
	Name   string  `json:"name"`
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
}

// row is a line of JSON as test/bench/run writes them.
type row struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit"`
	N      int     `json:"n"`
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
	Peer   *figure `json:"peer,omitempty"`
}

func figureOf(s series, name string) *figure {
	values := slices.Sorted(slices.Values(s[name]))
	if len(values) == 0 {
		return nil
	}
	last := len(values) - 1
	return &figure{"do-nothing (Go)", values[last*50/100], values[last*99/100]}
}

func text(v float64, unit string) string {
	switch {
	case unit == "bytes":
		return fmt.Sprintf("%.2f MiB", v/(1<<20))
	case unit != "ns":
		return fmt.Sprintf("%.4g", v)
	case v < 1e6:
		return fmt.Sprintf("%.1f us", v/1e3)
	}
	return fmt.Sprintf("%.2f ms", v/1e6)
}

type table struct{ json *os.File }

func (t *table) write(name, unit string, n int, ours, peer *figure) {
	if t.json == nil {
		return
	}
	line, err := json.Marshal(row{"kubelet-" + name, unit, n, ours.Median, ours.P99, peer})
	check(err)
	_, err = fmt.Fprintf(t.json, "%s\n", line)
	check(err)
}

// requests: each case's median and p99, and the medians' ratio.
func (t *table) requests(every, peer series) {
	fmt.Printf("\nas the kubelet asks (median, p99)\n%-16s %23s %23s  ours/nothing\n", "case", "numafitd", "do-nothing (Go)")
	for _, name := range []string{"allocate", "allocate-again", "preferred", "cpu-per-pod", "create", "create-to-seen", "remove-to-seen"} {
		ours, theirs := figureOf(every, name), figureOf(peer, name)
		if ours == nil {
			continue
		}
		fmt.Printf("%-16s %11s %11s", name, text(ours.Median, "ns"), text(ours.P99, "ns"))
		if theirs != nil {
			fmt.Printf(" %11s %11s  %.2f", text(theirs.Median, "ns"), text(theirs.P99, "ns"), ours.Median/theirs.Median)
		}
		fmt.Println()
		t.write(name, "ns", len(every[name]), ours, theirs)
	}
	fmt.Println("  cpu-per-pod: of the plugin's processor time for preferred, allocate and allocate-again, and for what they bring about")
}

func (t *table) footprints(alone, every, peer series) {
	fmt.Printf("\nwhat it costs to be there\n%-16s %11s %13s %16s\n", "idle", "NRI only", "every service", "do-nothing (Go)")
	for _, line := range []struct{ name, unit string }{{"pss", "bytes"}, {"rss", "bytes"}, {"dirty", "bytes"},
		{"threads", "threads"}, {"wakeups", "per s"}, {"binary", "bytes"}, {"rss-after", "bytes"}} {
		fmt.Printf("%-16s", line.name)
		theirs := figureOf(peer, line.name)
		for _, side := range []struct {
			suffix string
			width  int
			series series
		}{{"-nri", 11, alone}, {"", 13, every}} {
			value := "-"
			if f := figureOf(side.series, line.name); f != nil {
				value = text(f.Median, line.unit)
				t.write(line.name+side.suffix, line.unit, len(side.series[line.name]), f, theirs)
			}
			fmt.Printf(" %*s", side.width, value)
		}
		fmt.Printf(" %16s\n", text(theirs.Median, line.unit))
	}
	fmt.Println("  pss: pages that other programs have, too, count in part (libc's mostly); rss: in full, as in an image of its own")
}

func report(alone, every, peer series) {
	t := &table{}
	if *jsonFile != "" {
		file, err := os.OpenFile(*jsonFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		check(err)
		defer file.Close()
		t.json = file
	}
	t.requests(every, peer)
	t.footprints(alone, every, peer)
}
