package e2e

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A case of a node in a virtual machine: pods of all randomPods come and go at random.

type podKind struct {
	name             string
	qos              string
	init, containers []want
}

// randomPods are those, for 8 CPUs of which a container that has its own takes two at most.
var randomPods = []podKind{
	{"whole", guaranteed, nil, []want{{name: "two", milli: 2000, memory: 32 * mi}}},
	{"one", guaranteed, nil, []want{{name: "one", milli: 1000, memory: 32 * mi}}},
	{"part", guaranteed, nil, []want{{name: "part", milli: 300, memory: 32 * mi}}},
	{"more", guaranteed, nil, []want{{name: "more", milli: 1100, memory: 32 * mi}}},
	{"both", guaranteed, nil, []want{{name: "one", milli: 1000, memory: 32 * mi}, {name: "part", milli: 200, memory: 32 * mi},
		{name: "other", milli: 1000, memory: 32 * mi}}},
	{"burst", burstable, nil, []want{{name: "a", milli: 100}, {name: "b"}}},
	{"best", bestEffort, nil, []want{{name: "best"}}},
	{"init", guaranteed, []want{{name: "side", milli: 1000, memory: 32 * mi, sidecar: true},
		{name: "init", milli: 1000, memory: 32 * mi, args: []string{"exit 0"}}},
		[]want{{name: "main", milli: 500, memory: 32 * mi}}},
	{"first", burstable, []want{{name: "first", milli: 100, args: []string{"exit 0"}}}, []want{{name: "then", milli: 100}}},
}

// After each step all run where they are to, and no task outside a container may run on a CPU that is this
// container's own. SEED=N makes others, STEPS=N as many.
func TestInsideRandomPods(t *testing.T) {
	n := inside(t)
	seed, steps := number(t, "SEED", 1), number(t, "STEPS", 10)
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	var there []string
	kinds := map[string]podKind{}
	for step := range steps {
		said := ""
		if len(there) > 0 && random.IntN(3) == 0 || len(there) == 7 {
			i := random.IntN(len(there))
			n.dropStatic(there[i])
			said = "without " + there[i]
			there = slices.Delete(there, i, i+1)
		} else {
			kind := randomPods[random.IntN(len(randomPods))]
			name := fmt.Sprintf("%s%d", kind.name, step)
			before := n.status()
			n.putPod(name, kind.qos, kind.init, kind.containers)
			if words := n.runsOrNot(name); words != "" {
				n.dropStatic(name)
				said = name + " is refused: " + words
				if kind.allOwnCPUs() <= n.surelyFree(before) && kind.milli()+requested(kinds, there) <= allocatable {
					t.Errorf("%s, and there was room:\n%s", said, picture(before))
				}
			} else {
				there = append(there, name)
				kinds[name] = kind
				said = "with " + name
			}
		}
		s := n.checkAll()
		n.checkOwnersAreAlone(s)
		for _, name := range there {
			for _, w := range kinds[name].containers {
				if is, asked := n.exclusive(n.pods[name], w.name), kinds[name].ownCPUs(w); is != asked {
					t.Errorf("%s/%s is to have %d CPUs of its own, and has %d", name, w.name, asked, is)
				}
			}
		}
		t.Logf("step %d of seed %d: %s; pool %s", step, seed, said, s.Pool)
		if t.Failed() {
			return
		}
	}
}

const allocatable = (nrAllCPUs - 1) * 1000 // of the kubelet's, which has CPU 0 reserved

// ownCPUs is how many CPUs of its own a container of such a pod asks for.
func (k podKind) ownCPUs(w want) int {
	if k.qos == guaranteed && w.milli%1000 == 0 {
		return int(w.milli / 1000)
	}
	return 0
}

// allOwnCPUs is how many all its containers ask for together, though some run before the others.
func (k podKind) allOwnCPUs() (nr int) {
	for _, w := range slices.Concat(k.init, k.containers) {
		nr += k.ownCPUs(w)
	}
	return nr
}

// milli is what all its containers ask for together.
func (k podKind) milli() (milli int64) {
	for _, w := range slices.Concat(k.init, k.containers) {
		milli += w.milli
	}
	return milli
}

func requested(kinds map[string]podKind, pods []string) (milli int64) {
	for _, name := range pods {
		milli += kinds[name].milli()
	}
	return milli
}

// surelyFree is how many CPUs a pod may ask for without being refused for want of them: a NUMA node with two free has
// room for a container with one or two.
func (n *node) surelyFree(s status) (nr int) {
	n.Helper()
	for _, node := range s.Nodes {
		if node.CPUs-node.Held-node.Reserved >= 2 {
			nr += 2
		}
	}
	return nr
}

func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	nr, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return nr
}

// runsOrNot waits until the pod runs, or the kubelet or numafitd has refused it, and why.
func (n *node) runsOrNot(name string) (words string) {
	n.Helper()
	n.await(name+" to run or to be refused", func() bool {
		s := n.podStatus(name)
		if s != nil && s.Phase == "Failed" {
			words = s.Reason + ": " + s.Message
		} else if n.refusal(name) != "" {
			words = n.refusal(name)
		}
		n.look()
		return words != "" || s.runsAs(n.pods[name])
	})
	return words
}

// checkOwnersAreAlone insists, by the kernel's account of all tasks of pods, that the CPUs of their own that
// containers have are nobody else's, and all others the pool's.
func (n *node) checkOwnersAreAlone(s status) {
	n.Helper()
	owner, pool := map[int]string{}, n.set(allCPUs)
	containers := map[string]bool{}
	for _, h := range s.running() {
		dir := cpusetCgroup(n.pid(h.ID))
		containers[dir] = true
		for cpu := range n.set(h.CPUs) {
			if h.Exclusive {
				owner[cpu] = dir
			}
		}
	}
	for _, h := range s.Containers { // those that wait, too
		for cpu := range n.set(h.CPUs) {
			if h.Exclusive {
				delete(pool, cpu)
			}
		}
	}
	if is := n.set(s.Pool); !slices.Equal(sortedKeys(is), sortedKeys(pool)) {
		n.Errorf("the pool is %s, and nobody has %v:\n%s", s.Pool, sortedKeys(pool), picture(s))
	}
	nr := 0
	for _, pod := range podCgroups() {
		filepath.WalkDir(pod, func(dir string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil
			}
			text, _ := os.ReadFile(dir + "/cgroup.threads")
			for _, task := range strings.Fields(string(text)) {
				mask := allowed(task)
				if mask == "" {
					continue // it has ended
				}
				nr++
				for cpu := range n.set(mask) {
					mine := owner[cpu] == dir || !containers[dir] && filepath.Dir(owner[cpu]) == pod // its sandbox sleeps
					if owner[cpu] != "" && !mine {
						n.Errorf("task %s in %s may run on %s, and CPU %d is that of %s alone:\n%s", task, dir, mask, cpu, owner[cpu], picture(s))
					}
				}
			}
			return nil
		})
	}
	if nr < len(s.running()) {
		n.Errorf("%d tasks were looked at, and %d containers run", nr, len(s.running()))
	}
}
