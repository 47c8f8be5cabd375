package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// figure is a row's, as test/bench/run writes them.
type figure struct {
	Name   string  `json:"name"`
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
}

type row struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit"`
	N      int     `json:"n"`
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
	Peer   *figure `json:"peer,omitempty"`
}

type table struct {
	json *os.File
	peer string
}

func newTable() *table {
	t := &table{peer: "scheduler-plugins " + moduleVersion("sigs.k8s.io/scheduler-plugins")}
	if *jsonFile != "" {
		file, err := os.OpenFile(*jsonFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		check(err)
		t.json = file
	}
	return t
}

func (t *table) write(name, unit string, values []float64, peer []float64) {
	if t.json == nil {
		return
	}
	r := row{Name: "extender-" + name, Unit: unit, N: len(values), Median: at(values, 50), P99: at(values, 99)}
	if len(peer) > 0 {
		r.Peer = &figure{t.peer, at(peer, 50), at(peer, 99)}
	}
	line, err := json.Marshal(r)
	check(err)
	_, err = fmt.Fprintf(t.json, "%s\n", line)
	check(err)
}

func at(values []float64, percent int) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)-1)*percent/100]
}

func duration(ns float64) string {
	switch {
	case ns < 1e3:
		return fmt.Sprintf("%.0f ns", ns)
	case ns < 1e6:
		return fmt.Sprintf("%.2f us", ns/1e3)
	}
	return fmt.Sprintf("%.2f ms", ns/1e6)
}

func size(bytes float64) string { return fmt.Sprintf("%.1f MiB", bytes/(1<<20)) }

// strategy prints what was asked by one strategy: the time of a request, which other programs add to,
// what of it is the extender's own, and the processor time that each node takes, beside the plugin's.
func (t *table) strategy(name string, nodes, fit int, ours, theirs series) {
	fmt.Printf("\n%s: %d nodes of %d zones, %d of them fit\n%-20s %11s %11s %11s %13s  %s\n", name, nodes, benchZones, fit,
		"case", "p50", "p99", "CPU p99", "CPU per node", t.peer)
	for _, c := range []struct{ name, peer string }{{"filter", "filter"}, {"prioritize", "prioritize"},
		{"filter-objects", "filter"}, {"prioritize-objects", "prioritize"}} {
		values, cpu, peer := ours[c.name], ours[c.name+" cpu"], theirs[c.peer]
		asked := nodes
		if strings.HasPrefix(c.name, "prioritize") {
			asked = fit
		}
		fmt.Printf("%-20s %11s %11s %11s %13s  %s, %.0f times ours\n", c.name, duration(at(values, 50)), duration(at(values, 99)),
			duration(at(cpu, 99)*float64(asked)), duration(at(cpu, 50)), duration(at(peer, 50)), at(peer, 50)/at(cpu, 50))
		t.write(name+"-"+c.name, "ns", values, nil)
		t.write(name+"-"+c.name+"-cpu", "ns", cpu, peer)
	}
	fmt.Printf("%-20s %11s; %s after requests of %s; %.1f wake-ups per s when idle\n", "memory (RSS)", size(at(ours["rss"], 50)),
		size(at(ours["rss-after"], 50)), size(at(ours["bytes"], 50)), at(ours["wakeups"], 50))
	t.write(name+"-rss", "bytes", ours["rss"], nil)
	t.write(name+"-rss-after", "bytes", ours["rss-after"], nil)
}
