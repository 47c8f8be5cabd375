package e2e

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// Who has which CPUs, by what runc was asked for and by nothing that numafitd says: from a container's
// create (or its first cpuset) to its delete.

// owner says who has the container's CPUs for itself, by the names of this part's pods; "": nobody, it
// shares the pool.
func owner(pod, container string) string {
	switch {
	case container == beside:
		return ""
	case strings.HasPrefix(pod, "claim-"):
		return pod
	case strings.HasPrefix(pod, "plain-"):
		return pod + "/" + container
	}
	return ""
}

// TestClusterDRAOracle: what follows finds what is wrong, and nothing else.
func TestClusterDRAOracle(t *testing.T) {
	const pool = `{"Op": "create", "ID": "p", "CPUs": "0-127", "Kind": "container", "Pod": "pool", "Name": "batch"}`
	created := func(id, cpus string) string {
		return fmt.Sprintf(`{"Op": "create", "ID": "%s", "CPUs": "%s", "Kind": "container", "Pod": "claim-%[1]s", "Name": "main"}`, id, cpus)
	}
	changed := func(op, id, cpus string) string {
		return fmt.Sprintf(`{"Op": "%s", "ID": "%s", "CPUs": "%s"}`, op, id, cpus)
	}
	for _, one := range []struct {
		what                 string
		atSomeTime, nowAmiss int
		lines                []string
	}{
		{"one after another", 0, 0, []string{created("a", "0-3"), changed("delete", "a", ""), created("b", "0-3")}},
		{"two claims", 1, 2, []string{created("a", "0-3"), created("b", "3-4")}},
		{"two claims for a moment", 1, 0, []string{created("a", "0-3"), created("b", "3-4"), changed("update", "b", "4-5")}},
		{"the pool gives CPUs up first", 0, 0, []string{pool, changed("update", "p", "4-127"), created("a", "0-3")}},
		{"the pool gives CPUs up too late", 1, 0, []string{pool, created("a", "0-3"), changed("update", "p", "4-127")}},
		{"the pool takes CPUs too early", 1, 2, []string{created("a", "0-3"), pool}},
		{"the node lost power", 0, 0, []string{created("a", "0-3"), changed(poweredOff, "", ""), created("b", "0-3")}},
		{"numafitd was away", 0, 0, []string{created("a", ""), created("b", "0-3"), changed("update", "a", "4-5")}},
		{"and did not come back", 0, 1, []string{created("a", ""), created("b", "0-3")}},
		{"and gave what is another's", 0, 2, []string{created("a", ""), created("b", "0-3"), changed("update", "a", "3")}},
	} {
		c := &cluster{node: &node{T: t, dir: t.TempDir()}}
		c.must(os.WriteFile(c.path(askedFile), []byte(strings.Join(one.lines, "\n")), 0o600))
		if l := c.lives(); len(l.overlaps) != one.atSomeTime || len(l.now()) != one.nowAmiss {
			t.Errorf("%s: at some time %v, now %v", one.what, l.overlaps, l.now())
		}
	}
}

// life is a container that runs.
type life struct {
	pod, container, cpus, mems string
	of                         set
	late                       bool // it was created while nobody placed containers
}

func (l *life) String() string {
	return fmt.Sprintf("%s/%s cpus %s mems %s", l.pod, l.container, l.cpus, l.mems)
}

// lives is what runs, and what ran on a CPU of somebody else's at any time.
type lives struct {
	running  map[string]*life // by id
	overlaps []string
	late     int
}

func (c *cluster) lives() lives {
	c.Helper()
	l := lives{running: map[string]*life{}}
	for _, a := range c.allAsked() {
		one := l.running[a.ID]
		switch {
		case a.Op == "delete":
			delete(l.running, a.ID)
			continue
		case a.Op == poweredOff:
			clear(l.running)
			continue
		case a.Op == "create" && a.Kind == "container":
			one = &life{pod: a.Pod, container: a.Name, late: a.CPUs == ""}
			l.running[a.ID] = one
		case one == nil: // a sandbox, or one that has ended
			continue
		}
		if one.late && a.Op == "create" {
			l.late++
		}
		if a.CPUs != "" {
			one.cpus, one.of = a.CPUs, c.set(a.CPUs)
		}
		if a.Mems != "" {
			one.mems = a.Mems
		}
		if !one.late {
			l.overlaps = append(l.overlaps, l.overlapsOf(a.ID, func(other *life) bool { return !other.late })...)
		}
	}
	return l
}

// overlapsOf are the CPUs that the container has in common with others that matter and are not its owner's.
func (l lives) overlapsOf(id string, matters func(*life) bool) (found []string) {
	one := l.running[id]
	mine := owner(one.pod, one.container)
	for _, other := range slices.Sorted(maps.Keys(l.running)) {
		o := l.running[other]
		if other == id || !matters(o) || owner(o.pod, o.container) == mine {
			continue
		}
		for cpu := range one.of {
			if o.of[cpu] {
				found = append(found, fmt.Sprintf("CPU %d: %v, and %v", cpu, one, o))
				break
			}
		}
	}
	return found
}

// now is what is amiss with what runs now, with those that came late.
func (l lives) now() (amiss []string) {
	for id, one := range l.running {
		if owner(one.pod, one.container) != "" && len(one.of) == 0 {
			amiss = append(amiss, fmt.Sprintf("%v has no cpuset", one))
		}
		amiss = append(amiss, l.overlapsOf(id, func(*life) bool { return true })...)
	}
	return amiss
}

func (l lives) of(pod, container string) (found []*life) {
	for _, one := range l.running {
		if one.pod == pod && one.container == container {
			found = append(found, one)
		}
	}
	return found
}

// checkNothingIsShared insists that nobody ever ran on CPUs of somebody else's, as far as numafitd was there; and
// that soon nobody does.
func (c *cluster) checkNothingIsShared() lives {
	c.Helper()
	c.awaitOrder("everybody to be on CPUs of its own", func() string {
		c.endLost()
		return strings.Join(c.lives().now(), "\n")
	})
	l := c.lives()
	for i, overlap := range l.overlaps {
		if i == 10 {
			c.Errorf("and %d more", len(l.overlaps)-i)
			break
		}
		c.Errorf("at one time: %s", overlap)
	}
	return l
}

// life is the one of that container of that pod; it has to be there, and to be the only one.
func (c *cluster) life(pod, container string) *life {
	c.Helper()
	found := c.lives().of(pod, container)
	if len(found) != 1 {
		c.Fatalf("of container %s of %s these run: %v", container, pod, found)
	}
	return found[0]
}

// checkOnNode insists on so many CPUs of that NUMA node, and on its memory.
func (c *cluster) checkOnNode(one *life, nr, numaNode int) {
	c.Helper()
	if !one.isOnNode(nr, numaNode) {
		c.Errorf("%v is to have %d CPUs and the memory of NUMA node %d", one, nr, numaNode)
	}
}

func (l *life) isOnNode(nr, numaNode int) bool {
	for cpu := range l.of {
		if nodeOf(cpu) != numaNode {
			return false
		}
	}
	return len(l.of) == nr && l.mems == fmt.Sprint(numaNode)
}
