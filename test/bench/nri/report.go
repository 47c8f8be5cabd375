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

// row is a line of JSON as test/bench/run writes them: one for numafitd, and one for the constant
// plugin, each beside the plugin that does nothing.
type row struct {
	Name    string  `json:"name"`
	Unit    string  `json:"unit"`
	N       int     `json:"n"`
	Median  float64 `json:"median"`
	P99     float64 `json:"p99"`
	Answers int     `json:"answers_with_updates,omitempty"`
	Updates float64 `json:"updates,omitempty"` // in all of them
	Peer    *figure `json:"peer,omitempty"`
}

func figureOf(p *plugin, series string) *figure {
	values := slices.Sorted(slices.Values(p.series[series]))
	if len(values) == 0 {
		return nil
	}
	last := len(values) - 1
	return &figure{p.title, values[last*50/100], values[last*99/100]}
}

func sum(values []float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}

func human(f *figure, unit string) string {
	text := func(v float64) string {
		switch {
		case unit == "bytes":
			return fmt.Sprintf("%.1f MiB", v/(1<<20))
		case v < 1e6:
			return fmt.Sprintf("%.1f us", v/1e3)
		}
		return fmt.Sprintf("%.2f ms", v/1e6)
	}
	if f == nil {
		return fmt.Sprintf("%10s %10s", "-", "-")
	}
	return fmt.Sprintf("%10s %10s", text(f.Median), text(f.P99))
}

type table struct{ json *os.File }

// print one series; updates names the series of other containers' updates in its answers.
func (t *table) print(series, unit, updates string) {
	var all []*figure
	for _, p := range plugins {
		all = append(all, figureOf(p, series))
	}
	ours, peer := all[0], all[1]
	if ours == nil {
		return
	}
	line := fmt.Sprintf("%-29s", series)
	for _, f := range all {
		line += " " + human(f, unit)
	}
	if peer != nil {
		line += fmt.Sprintf("  %.2f", ours.Median/peer.Median)
	}
	given := slices.DeleteFunc(slices.Clone(plugins[0].series[updates]), func(n float64) bool { return n == 0 })
	if len(given) > 0 {
		line += fmt.Sprintf("  %d of %d answers with %.0f updates", len(given), len(plugins[0].series[series]), sum(given))
	}
	fmt.Println(line)
	t.write(row{"nri-" + series, unit, len(plugins[0].series[series]), ours.Median, ours.P99, len(given), sum(given), peer})
	if all[2] != nil {
		t.write(row{"nri-" + series + "-constant", unit, len(plugins[2].series[series]), all[2].Median, all[2].P99, 0, 0, peer})
	}
}

func (t *table) write(r row) {
	if t.json == nil {
		return
	}
	text, err := json.Marshal(r)
	check(err)
	_, err = fmt.Fprintf(t.json, "%s\n", text)
	check(err)
}

func report(present []int) {
	t := &table{}
	if *jsonFile != "" {
		file, err := os.OpenFile(*jsonFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		check(err)
		defer file.Close()
		t.json = file
	}
	fmt.Printf("\nbehind github.com/containerd/nri %s (median, p99)\n%-29s", *nriVersion, "case-PRESENT")
	for _, p := range plugins {
		fmt.Printf(" %21s", p.title)
	}
	fmt.Println("  ours/nothing")
	for _, kind := range []string{"shared", "exclusive"} {
		for _, what := range []string{"create", "create-moving", "create-cpu", "lifecycle-cpu"} {
			for _, n := range present {
				series := fmt.Sprint(kind, "-", n)
				updates := ""
				if what == "create" || what == "create-moving" {
					updates = "updates-" + series
				}
				t.print(what+"-"+series, "ns", updates)
			}
		}
	}
	for _, kind := range []string{"again-", "first-"} {
		for _, n := range present {
			if n >= syncFrom {
				t.print(fmt.Sprint("sync-", kind, n), "ns", fmt.Sprint("updates-sync-", kind, n))
				t.print(fmt.Sprint("sync-cpu-", kind, n), "ns", "")
			}
		}
	}
	for _, line := range []string{"rss-", "pss-"} {
		t.print(line+"idle", "bytes", "")
		t.print(fmt.Sprint(line, "after-", present[len(present)-1]), "bytes", "")
	}
	for _, p := range plugins {
		fmt.Printf("%s: slowest request %.1f ms\n", p.title, p.slowest.Seconds()*1e3)
	}
}
