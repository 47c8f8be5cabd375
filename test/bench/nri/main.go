// nri-bench measures numafitd behind the NRI runtime side that containerd and CRI-O embed, with the
// shared pool by cgroups and by updates, beside a plugin that does nothing and one that pins to a
// constant. Each has a runtime side of its own, and they are asked in turns, so that whatever else
// the machine does hits all alike.
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

	nri "github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/log"
)

const (
	exclusiveCPUs = 2
	syncFrom      = 1000 // containers: where Synchronize is measured
	machineCPUs   = 1024
	idleEvery     = 10 // containers come or go, between two looks at which CPUs nobody can use
)

var (
	numafitd   = flag.String("numafitd", "", "the daemon")
	constant   = flag.String("constant", "", "the plugin that pins to a constant")
	nothing    = flag.String("nothing", "", "the plugin that does nothing")
	dir        = flag.String("dir", "", "where logs, sockets and numafitd's journal are: on a tmpfs, as /run is")
	machine    = flag.String("machine", "", "what numafitd is to believe that it runs on")
	nrShared   = flag.Int("shared", 300, "creates of shared containers to measure")
	nrOwn      = flag.Int("exclusive", 200, "creates of exclusive containers to measure")
	nrRestarts = flag.Int("restarts", 5, "of each kind, where Synchronize is measured")
	sizes      = flag.String("present", "8,100,250,1000,5000", "how many containers are there before")
	jsonFile   = flag.String("json", "", "append each row to this file")
	nriVersion = flag.String("nri", "", "the runtime side's version, for the report")
)

// All that are asked. ours has the pool by cgroups, where that can be made up: else it is nil, and
// only byUpdates is measured.
var (
	plugins                            []*plugin
	ours, byUpdates, nothingGo, constC *plugin
	leftOut                            []string // which rows there are none of, and why
)

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
// Plugins are started one after another.
type listener chan string

func (l listener) Infof(_ context.Context, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if strings.HasPrefix(text, `plugin "50-`) && strings.Contains(text, `" connected`) {
		l <- text
	}
}
func (listener) Debugf(context.Context, string, ...any) {}
func (listener) Warnf(context.Context, string, ...any)  {}
func (listener) Errorf(_ context.Context, format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !strings.Contains(text, "WASM") { // which is left out
		fmt.Fprintln(os.Stderr, "runtime:", text)
	}
}

// place is a plugin's place: the directory that it sees as its root, and how programs are started in it.
type place struct {
	root    string // "" but for those that are confined
	command func(program string) []string
}

func (a place) daemon(title, name string, settings ...string) *plugin {
	run := "/run-" + name
	if a.root == "" {
		run = filepath.Join(*dir, run)
	}
	p := &plugin{title: title, name: name, pins: true, journal: a.root + run, run: run, command: a.command(*numafitd)}
	for _, s := range append(settings, "runDirectory="+run, "metrics.address=", "reservedSystemCPUs=0", "podWishes.allowed="+wishes) {
		p.command = append(p.command, "--set", s)
	}
	return p
}

// makePlugins has those in C share their libraries, wherever they are.
func makePlugins() {
	at, here := place{command: func(program string) []string { return []string{program} }}, *dir
	s := newSystem(*dir, *numafitd, *constant)
	if err := s.canConfine(*numafitd); err != nil {
		leftOut = append(leftOut, fmt.Sprint("no rows with the pool by cgroups: numafitd cannot be confined to a directory: ", err))
	} else {
		at, here = place{s.dir, s.command}, "/"
		ours = at.daemon("numafitd", "cgroups", "machine=this", "sharedPool.enforce=cgroup", "nri.socketPath=/cgroups.sock")
		ours.confined, ours.cgroups, ours.twin = true, s, newTree(filepath.Join(*dir, "twin"))
		plugins = append(plugins, ours)
	}
	text, err := os.ReadFile(*machine)
	check(err)
	s.put(filepath.Base(*machine), string(text))
	byUpdates = at.daemon("by updates", "updates", "machine="+filepath.Join(here, filepath.Base(*machine)),
		"sharedPool.enforce=updates", "nri.socketPath="+filepath.Join(here, "updates.sock"))
	nothingGo = &plugin{title: "do-nothing (Go)", name: "nothing", command: []string{*nothing, filepath.Join(*dir, "nothing.sock")}}
	constC = &plugin{title: "constant (C)", name: "constant", pins: true,
		command: append(at.command(*constant), filepath.Join(here, "constant.sock"))}
	// never two of numafitd's in a row: the second would find its code in the processor's caches
	plugins = append(plugins, nothingGo, byUpdates, constC)
	connected := make(chan string, 1)
	log.Set(listener(connected))
	for _, p := range plugins {
		p.dir, p.connected = *dir, connected
		p.series, p.calls, p.own = map[string][]float64{}, map[string]map[string]float64{}, map[string]string{}
		if p != ours { // what the kubelet and the runtime do for it takes as long as for ours
			p.cgroups = newTree(filepath.Join(*dir, p.name+"-tree"))
		}
	}
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

// kind is what containers are created for a series.
type kind struct {
	name   string
	create func(kind string, i int) (*nri.PodSandbox, *nri.Container)
}

// createExclusive lets the containers pile up, as on a node that fills: of several kinds in turns.
func createExclusive(present int, kinds ...kind) {
	used := map[*plugin][]float64{}
	for i := range *nrOwn {
		for _, p := range plugins {
			kind := kinds[i%len(kinds)]
			pod, c := kind.create("own", i)
			from := p.cpuTime()
			cpus, _ := p.begin(fmt.Sprint(kind.name, "-", present), pod, c)
			used[p] = append(used[p], p.cpuTime()-from)
			p.take(c.Id, cpus)
			p.addIdle(i, present)
		}
	}
	for i := range *nrOwn {
		for _, p := range plugins {
			kind := kinds[i%len(kinds)]
			pod, c := kind.create("own", i)
			from := p.cpuTime()
			p.end(pod, c)
			p.add(fmt.Sprint("lifecycle-cpu-", kind.name, "-", present), used[p][i]+p.cpuTime()-from)
			delete(p.own, c.Id)
			p.addIdle(i, present)
		}
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

func countAllCalls() {
	if err := canTrace(); err != nil {
		leftOut = append(leftOut, fmt.Sprint("no rows of system calls: strace does not work here: ", err))
		return
	}
	fmt.Fprintln(os.Stderr, "counting system calls")
	addCalls("shared", shared)
	addCalls("exclusive", exclusive)
}

func main() {
	flag.Parse()
	nri.SetPluginRequestTimeout(patience)
	nri.SetPluginRegistrationTimeout(patience)
	makePlugins()
	for _, p := range plugins {
		p.startRuntime()
		p.start(0, true)
	}
	addMemory("idle")
	stopAll()
	countAllCalls()
	var present []int
	for _, text := range strings.Split(*sizes, ",") {
		n, err := strconv.Atoi(text)
		check(err)
		fmt.Fprintln(os.Stderr, "asking plugins with", n, "containers present")
		present = append(present, n)
		restart(n)
		createShared(n)
		createExclusive(n, kind{"exclusive", exclusive})
		createExclusive(n, kind{"wishes", wishing}, kind{"without-wishes", exclusive})
		addMemory(fmt.Sprint("after-", n))
		createWithClaims(n)
		stopAll()
	}
	report(present)
}
