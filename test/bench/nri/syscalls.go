package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	nri "github.com/containerd/nri/pkg/adaptation"
)

// maker makes the i-th container of a kind, with its pod.
type maker func(kind string, i int) (*nri.PodSandbox, *nri.Container)

// The system calls of one create: strace counts those of a plugin's whole life, twice, once with
// more creates than the other time. The difference is theirs. Nothing is timed here.

const fewCreates, moreCreates = 50, 250

// canTrace is nil where a program can be traced from here.
func canTrace() error {
	text, err := exec.Command("strace", "-f", "-c", "-o", "/dev/null", "true").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w %s", err, strings.TrimSpace(string(text)))
	}
	return nil
}

// countCalls counts a life's calls by their names.
func countCalls(p *plugin, creates int, container maker) map[string]float64 {
	file := filepath.Join(p.dir, p.name+".calls")
	untraced := p.command
	defer func() { p.command = untraced }()
	os.Remove(file)
	// -D: the plugin stays the process that was started, and strace is beside it
	p.command = append([]string{"strace", "-D", "-f", "-c", "-o", file}, untraced...)
	p.start(8, true)
	for i := range creates {
		pod, c := container("traced", i)
		p.cgroups.addCgroup(pod.Linux.CgroupParent)
		p.create("traced", pod, c)
	}
	p.stop()
	return readCalls(p, file)
}

// readCalls waits until strace has written its sums.
func readCalls(p *plugin, file string) map[string]float64 {
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(time.Millisecond) {
		text, _ := os.ReadFile(file)
		if !strings.Contains(string(text), " total\n") {
			continue
		}
		calls := map[string]float64{}
		for _, line := range strings.Split(string(text), "\n") {
			f := strings.Fields(line) // % time, seconds, usecs/call, calls, errors if there are any, name
			if len(f) < 5 {
				continue
			}
			if n, err := strconv.Atoi(f[3]); err == nil {
				calls[f[len(f)-1]] = float64(n)
			}
		}
		return calls
	}
	p.fail("was traced, but strace has no sums")
	return nil
}

// addCalls measures each plugin, and says which calls ours makes.
func addCalls(kind string, container maker) {
	for _, p := range plugins {
		few, more := countCalls(p, fewCreates, container), countCalls(p, moreCreates, container)
		p.calls[kind] = map[string]float64{}
		for name, n := range more {
			if each := (n - few[name]) / (moreCreates - fewCreates); each > 0.05 {
				p.calls[kind][name] = each
			}
		}
		p.add("calls-"+kind, p.calls[kind]["total"])
	}
}

// callsText is "write 3.0, read 1.0", the most frequent first.
func callsText(calls map[string]float64) string {
	var parts []string
	for _, name := range slices.SortedFunc(maps.Keys(calls), func(a, b string) int {
		return cmp.Or(cmp.Compare(calls[b], calls[a]), cmp.Compare(a, b))
	}) {
		if name != "total" {
			parts = append(parts, fmt.Sprintf("%s %.1f", name, calls[name]))
		}
	}
	return strings.Join(parts, ", ")
}
