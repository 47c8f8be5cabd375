package main

import (
	"fmt"
	"strconv"
	"strings"
)

// Which CPUs a plugin of ours has given to whom: nobody may have what another one has for itself,
// and none may be left that nobody can use.

type cpuSet [machineCPUs]bool

func parseCPUs(list string) (s cpuSet) {
	for _, part := range strings.Split(list, ",") {
		if part == "" {
			continue
		}
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		lo, err := strconv.Atoi(first)
		check(err)
		hi, err := strconv.Atoi(last)
		check(err)
		for ; lo <= hi; lo++ {
			s[lo] = true
		}
	}
	return s
}

func (s cpuSet) count() (nr int) {
	for _, has := range s {
		if has {
			nr++
		}
	}
	return nr
}

func (p *plugin) decides() bool { return p == ours || p == byUpdates }

// take insists on an answer of the right size, in CPUs that nobody has.
func (p *plugin) take(id, list string) {
	if !p.decides() {
		return
	}
	given := parseCPUs(list)
	if nr := given.count(); nr != exclusiveCPUs {
		p.fail("was asked for %d CPUs, and gave %q", exclusiveCPUs, list)
	}
	for other, had := range p.own {
		for cpu, has := range parseCPUs(had) {
			if has && given[cpu] {
				p.fail("gave CPU %d to %s and to %s", cpu, other, id)
			}
		}
	}
	p.own[id] = list
}

// pool is what shared containers may run on: all that one of them has in force.
func (p *plugin) pool() (all cpuSet) {
	if p == ours {
		return parseCPUs(p.cgroups.cpus("/kubepods/burstable"))
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	lists := map[string]bool{}
	for _, cpu := range p.given {
		lists[cpu.GetCpus()] = true
	}
	for list := range lists {
		for cpu, has := range parseCPUs(list) {
			all[cpu] = all[cpu] || has
		}
	}
	return all
}

// addIdle counts, now and then, the CPUs that are in no container's cpuset.
func (p *plugin) addIdle(i, present int) {
	if !p.decides() || p.claims || (i+1)%idleEvery != 0 {
		return
	}
	used := p.pool()
	for id, list := range p.own {
		for cpu, has := range parseCPUs(list) {
			if has && p == ours && used[cpu] {
				p.fail("lets shared containers run on CPU %d, which is %s's", cpu, id)
			}
			used[cpu] = used[cpu] || has
		}
	}
	p.add(fmt.Sprint("idle-cpus-", present), float64(machineCPUs-used.count()))
}
