package e2e

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
)

// What a pod's author wishes for, through CRI and the runtime's NRI: what runc is asked for, at first
// and when the shared pool has moved.

func TestWishes(t *testing.T) {
	n := newNode(t, onEight("podWishes.allowed=cpus,cores,numa-nodes,spread", "podsAPI.enabled=false", "containerEnvironment=true",
		"namespaces=names=default allowed=cpus=untouched"))
	wishes := []struct {
		pod, qos, key, value string
		milli                int64
		own                  int    // CPUs of its own
		within               string // it runs on no others; "": nothing of that
		shares               bool   // it runs on the pool's CPUs as well
	}{
		{"shared", guaranteed, "numafit.io/cpus", "shared", 2000, 0, "", true},
		{"both", guaranteed, "cpus.numafit.io/main", "own+shared", 3500, 3, "", true},
		{"untouched", guaranteed, "numafit.io/cpus", "untouched", 2000, 0, "", true},
		{"there", guaranteed, "numafit.io/numa-nodes", "5", 2000, 2, "40-47,104-111", false},
		{"thread", guaranteed, "numafit.io/cores", "one-thread", 4000, 4, "", false},
		{"spread", burstable, "numafit.io/spread", "one-node", 500, 0, "", true},
	}
	for _, w := range wishes {
		_, err := n.tryAnnotatedPod(w.pod, w.qos, notes{w.key: w.value}, want{name: "main", milli: w.milli, memory: 64 * mi})
		n.must(err)
	}
	look := func() string {
		s := n.status()
		for _, w := range wishes {
			id := n.pods[w.pod].containers["main"]
			cpus, mems := n.placed(id)
			h := n.held(id)
			if cpus != h.CPUs || mems != h.Mems {
				return fmt.Sprintf("%s: decided cpus %s mems %s, in force cpus %s mems %s", w.pod, h.CPUs, h.Mems, cpus, mems)
			}
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/root/run/numafit/self", n.pid(id))) // as it sees it
			if says := line(string(text), "NUMAFIT_CPUS="); says != cpus {
				return fmt.Sprintf("%s: its file says %q, it has %s: %v", w.pod, says, cpus, err)
			}
			own, pool := 0, 0
			for cpu := range n.set(cpus) {
				if w.within != "" && !n.set(w.within)[cpu] {
					return fmt.Sprintf("%s runs on %s, and CPU %d is not among %s", w.pod, cpus, cpu, w.within)
				}
				if n.set(s.Pool)[cpu] {
					pool++
				} else {
					own++
				}
			}
			if w.value == "one-thread" {
				own *= 2 // the others are idle
			}
			if own != w.own || h.Exclusive != (w.own > 0) || (pool > 0) != w.shares {
				return fmt.Sprintf("%s runs on %s, %d of them in no pool, the pool is %s", w.pod, cpus, own, s.Pool)
			}
		}
		return ""
	}
	n.awaitOrder("each to be as its pod wishes", look)
	if cpus, _ := n.placed(n.pods["spread"].containers["main"]); len(n.set(cpus)) > 16 {
		t.Errorf("one NUMA node's part of the pool is %s", cpus)
	}
	before := n.status().Pool
	n.startPod("db", guaranteed, db...) // the pool moves
	if now := n.status().Pool; now == before {
		t.Errorf("the pool is %s as before", now)
	}
	n.awaitOrder("each to be as its pod wishes, with less of a pool", look)
	owner := map[int]string{}
	for _, p := range n.pods {
		for _, id := range p.containers {
			h := n.held(id)
			cpus, _ := n.placed(id)
			for cpu := range n.set(cpus) {
				if !h.Exclusive || n.set(n.status().Pool)[cpu] {
					continue
				}
				if owner[cpu] != "" {
					t.Errorf("CPU %d is of %s and of %s", cpu, owner[cpu], p.name)
				}
				owner[cpu] = p.name
			}
		}
	}
	n.killDaemon()
	n.startDaemon()
	n.awaitOrder("each to be as its pod wishes, after a restart", look)

	file := fmt.Sprintf("/proc/%d/root/run/numafit/self", n.pid(n.pods["both"].containers["main"]))
	if err := os.WriteFile(file, nil, 0); !errors.Is(err, syscall.EROFS) {
		t.Errorf("a container's file can be written in it: %v", err)
	}
	_, err := n.tryAnnotatedPod("wrong", guaranteed, notes{"numafit.io/cores": "half"}, want{name: "main", milli: 2000, memory: 64 * mi})
	if err == nil {
		t.Error("a wish that is none is passed over")
	}
}
