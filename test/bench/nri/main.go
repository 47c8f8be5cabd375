// nri-bench measures numafitd behind the NRI runtime side that containerd and CRI-O embed, beside a
// plugin that does nothing and one that pins to a constant. Each has a runtime side of its own, and
// they are asked in turns, so that whatever else the machine does hits all alike.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/containerd/nri/pkg/log"
)

const (
	exclusiveCPUs = 2
	syncFrom      = 1000 // containers: where Synchronize is measured
	machineCPUs   = 1024
)

var (
	numafitd   = flag.String("numafitd", "", "the daemon")
	constant   = flag.String("constant", "", "the plugin that pins to a constant")
	nothing    = flag.String("nothing", "", "the plugin that does nothing")
	dir        = flag.String("dir", "", "where logs, sockets and numafitd's journal are: on a tmpfs, as /run is")
	machine    = flag.String("machine", "", "what numafitd is to believe that it runs on")
	nrShared   = flag.Int("shared", 500, "creates of shared containers to measure")
	nrOwn      = flag.Int("exclusive", 400, "creates of exclusive containers to measure")
	nrRestarts = flag.Int("restarts", 9, "of each kind, where Synchronize is measured")
	sizes      = flag.String("present", "8,100,1000,5000", "how many containers are there before")
	jsonFile   = flag.String("json", "", "append each row to this file")
	nriVersion = flag.String("nri", "", "the runtime side's version, for the report")
)

var plugins []*plugin

func check(err error) {
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "nri-bench:", err)
	for _, p := range plugins {
		if p.process != nil && p.process.Process != nil {
			p.process.Process.Kill()
		}
	}
	os.Exit(1)
}

// listener is the runtime sides' logger: they show in no other way that a plugin is in their chain.
type listener map[string]chan string

func (l listener) Infof(_ context.Context, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if _, name, ok := strings.Cut(text, `plugin "50-`); ok && strings.Contains(name, `" connected`) {
		name, _, _ = strings.Cut(name, `"`)
		l[name] <- name
	}
}
func (listener) Debugf(context.Context, string, ...any) {}
func (listener) Warnf(context.Context, string, ...any)  {}
func (listener) Errorf(_ context.Context, format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !strings.Contains(text, "WASM") { // which is left out
		fmt.Fprintln(os.Stderr, "runtime:", text)
	}
}

// makePlugins: the one that is measured first, then its peers.
func makePlugins() {
	run := filepath.Join(*dir, "run")
	plugins = []*plugin{
		{title: "numafitd", name: "numafit", pins: true, journal: run,
			command: []string{*numafitd, "--set", "machine=" + *machine, "--set", "runDirectory=" + run, "--set", "metrics.address=",
				"--set", "reservedSystemCPUs=0"}},
		{title: "do-nothing (Go)", name: "nothing", command: []string{*nothing}},
		{title: "constant (C)", name: "constant", pins: true, command: []string{*constant}},
	}
	connected := listener{}
	for _, p := range plugins {
		p.dir, p.series, p.connected = *dir, map[string][]float64{}, make(chan string, 1)
		connected[p.name] = p.connected
	}
	plugins[0].command = append(plugins[0].command, "--set", "nri.socketPath="+plugins[0].socket())
	plugins[1].command = append(plugins[1].command, plugins[1].socket())
	plugins[2].command = append(plugins[2].command, plugins[2].socket())
	log.Set(connected)
}

// restart starts the plugins beside so many containers: on a node that they have never seen, then
// once more as after an update of the plugin. They are left running.
func restart(present int) {
	rounds := 1
	if present >= syncFrom {
		rounds = *nrRestarts
	}
	for round := range rounds {
		for _, p := range plugins {
			p.start(present, true)
			addSync(p, fmt.Sprint("first-", present))
			p.stop()
			p.start(present, false)
			addSync(p, fmt.Sprint("again-", present))
			if round+1 < rounds {
				p.stop()
			}
		}
	}
	runtime.GC() // of what was made to be reported; no create sees it
}

func addSync(p *plugin, series string) {
	p.add("sync-"+series, float64(p.sync.took))
	p.add("sync-cpu-"+series, p.sync.used)
	p.add("updates-sync-"+series, float64(p.sync.updates))
}

func createShared(present int) {
	series := fmt.Sprint("shared-", present)
	for i := range *nrShared {
		for _, p := range plugins {
			pod, c := shared("new", i)
			used := p.cpuTime()
			p.begin(series, pod, c)
			p.end(pod, c)
			p.add("lifecycle-cpu-"+series, p.cpuTime()-used)
		}
	}
}

// createExclusive lets the containers pile up, as on a node that fills.
func createExclusive(present int) {
	series := fmt.Sprint("exclusive-", present)
	used, taken := map[*plugin][]float64{}, [machineCPUs]bool{}
	for i := range *nrOwn {
		for _, p := range plugins {
			pod, c := exclusive("own", i)
			from := p.cpuTime()
			cpus, _ := p.begin(series, pod, c)
			used[p] = append(used[p], p.cpuTime()-from)
			if p == plugins[0] {
				take(&taken, cpus)
			}
		}
	}
	for i := range *nrOwn {
		for _, p := range plugins {
			pod, c := exclusive("own", i)
			from := p.cpuTime()
			p.end(pod, c)
			p.add("lifecycle-cpu-"+series, used[p][i]+p.cpuTime()-from)
		}
	}
}

// take insists on an answer of the right size, in CPUs that nobody has.
func take(taken *[machineCPUs]bool, list string) {
	nr := 0
	for _, part := range strings.Split(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		lo, err := strconv.Atoi(first)
		check(err)
		hi, err := strconv.Atoi(last)
		check(err)
		for ; lo <= hi; lo++ {
			if taken[lo] {
				check(fmt.Errorf("CPU %d is given twice", lo))
			}
			taken[lo] = true
			nr++
		}
	}
	if nr != exclusiveCPUs {
		check(fmt.Errorf("%d CPUs asked for, %q given", exclusiveCPUs, list))
	}
}

func addMemory(when string) {
	for _, p := range plugins {
		for _, line := range []string{"Rss", "Pss"} {
			p.add(strings.ToLower(line)+"-"+when, p.memory(line))
		}
	}
}

func stopAll() {
	for _, p := range plugins {
		p.stop()
	}
}

func main() {
	flag.Parse()
	makePlugins()
	for _, p := range plugins {
		p.startRuntime()
		p.start(0, true)
	}
	addMemory("idle")
	stopAll()
	var present []int
	for _, text := range strings.Split(*sizes, ",") {
		n, err := strconv.Atoi(text)
		check(err)
		fmt.Fprintln(os.Stderr, "asking plugins with", n, "containers present")
		present = append(present, n)
		restart(n)
		createShared(n)
		createExclusive(n)
		addMemory(fmt.Sprint("after-", n))
		stopAll()
	}
	report(present)
}
