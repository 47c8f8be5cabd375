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
	max    float64
}

// row is a line of JSON as test/bench/run writes them: one for numafitd, one for numafitd with the
// pool by updates and one for the constant plugin, each beside the plugin that does nothing.
type row struct {
	Name    string   `json:"name"`
	Unit    string   `json:"unit"`
	N       int      `json:"n"`
	Median  float64  `json:"median"`
	P99     float64  `json:"p99"`
	Max     float64  `json:"max"`
	Ratio   float64  `json:"ratio,omitempty"` // of the medians, ours to the peer's
	Answers int      `json:"answers_with_updates,omitempty"`
	Updates *float64 `json:"updates,omitempty"` // in all of them, where answers have such
	Peer    *figure  `json:"peer,omitempty"`
}

func figureOf(p *plugin, series string) *figure {
	if p == nil {
		return nil
	}
	values := slices.Sorted(slices.Values(p.series[series]))
	if len(values) == 0 {
		return nil
	}
	last := len(values) - 1
	return &figure{p.title, values[last*50/100], values[last*99/100], values[last]}
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
		case unit != "ns":
			return fmt.Sprintf("%.1f", v)
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

// column is a plugin's place in the table.
type column struct {
	p            *plugin // nil: it is not there
	title        string
	suffix       string // how the names of its rows of JSON end
	row, compare bool   // it has such rows; its ratio is in the table
}

func columns() []column {
	return []column{{ours, "numafitd", "", true, true}, {byUpdates, "by updates", "-by-updates", true, true},
		{p: nothingGo, title: nothingGo.title}, {constC, constC.title, "-constant", true, false}}
}

func (c column) header() string {
	text := fmt.Sprintf(" %21s", c.title)
	if c.compare {
		text += "     x"
	}
	return text
}

// cell is what the table has of a series; the row of JSON is nil where there is none.
func (c column) cell(series, unit, updates string) (string, *row) {
	f, peer := figureOf(c.p, series), figureOf(nothingGo, series)
	ratio := ""
	if c.compare {
		ratio = fmt.Sprintf(" %5s", "-")
	}
	if f == nil || !c.row {
		return " " + human(f, unit) + ratio, nil
	}
	r := &row{Name: "nri-" + series + c.suffix, Unit: unit, N: len(c.p.series[series]), Median: f.Median, P99: f.P99, Max: f.max,
		Peer: peer}
	if peer != nil && peer.Median > 0 {
		r.Ratio = f.Median / peer.Median
		if c.compare {
			ratio = fmt.Sprintf(" %5.2f", r.Ratio)
		}
	}
	if all := c.p.series[updates]; updates != "" && c.p.decides() {
		total := sum(all)
		r.Updates = &total
		r.Answers = len(slices.DeleteFunc(slices.Clone(all), func(n float64) bool { return n == 0 }))
	}
	return " " + human(f, unit) + ratio, r
}

// print one series; updates names the series of other containers' updates in its answers.
func (t *table) print(series, unit, updates string) {
	line, notes, any := fmt.Sprintf("%-27s", series), "", false
	for _, c := range columns() {
		text, r := c.cell(series, unit, updates)
		line += text
		if r == nil {
			continue
		}
		any = true
		t.write(*r)
		if r.Updates != nil {
			notes += fmt.Sprintf("  %.0f updates", *r.Updates)
		}
	}
	if any {
		fmt.Println(line + notes)
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
	fmt.Printf("\nbehind github.com/containerd/nri %s (median, p99; x: beside the plugin that does nothing)\n%-27s", *nriVersion,
		"case-PRESENT")
	for _, c := range columns() {
		fmt.Print(c.header())
	}
	fmt.Println()
	for _, kind := range []string{"shared", "exclusive", "wishes", "without-wishes", "claims", "without-claims"} {
		for _, what := range []string{"create", "create-besides", "create-moving", "create-cpu", "lifecycle-cpu"} {
			for _, n := range present {
				series := fmt.Sprint(kind, "-", n)
				if what == "create-besides" && kind == "shared" {
					continue // there is nothing besides
				}
				updates := ""
				if what == "create" || what == "create-moving" {
					updates = "updates-" + series
				}
				t.print(what+"-"+series, "ns", updates)
			}
		}
		if kind == "shared" || kind == "exclusive" {
			t.print("calls-"+kind, "calls", "")
		}
	}
	for _, n := range present {
		t.print(fmt.Sprint("idle-cpus-", n), "cpus", "")
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
		for _, kind := range []string{"shared", "exclusive"} {
			if p.calls[kind] != nil {
				fmt.Printf("%s: system calls of a %s create: %s\n", p.title, kind, callsText(p.calls[kind]))
			}
		}
	}
	for _, line := range leftOut {
		fmt.Println(line)
	}
}
