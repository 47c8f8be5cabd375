package interop

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Where pods land, and what is left on them.

const seed = 20261121

// verdict is what `numafit score` says of a node.
type verdict struct {
	Name  string
	Fits  bool
	Why   []string
	Score *int64
}

// score asks `numafit score` about the pod and the machines, with the objects of the API server.
func (r *rig) score(p *v1.Pod, args any, machines []*machine) []verdict {
	r.Helper()
	var nodes []any
	for _, m := range machines {
		node, err := r.kube.CoreV1().Nodes().Get(background, m.name, metav1.GetOptions{})
		if err != nil {
			r.Fatal(err)
		}
		topology, err := r.topologies().Get(background, m.name, metav1.GetOptions{})
		if err != nil {
			r.Fatal(err)
		}
		nodes = append(nodes, map[string]any{"node": node, "topology": topology.Object})
	}
	out, err := r.numafit(asJSON(map[string]any{"plugin": "NodeResourceTopologyMatch", "args": args, "pod": p, "nodes": nodes}), "score", "-")
	var answer struct {
		Result struct{ Nodes []verdict }
		Error  string
	}
	if err == nil {
		err = json.Unmarshal([]byte(out), &answer)
	}
	if err != nil || len(answer.Result.Nodes) != len(machines) {
		r.Fatalf("numafit score: %v %s", err, out)
	}
	return answer.Result.Nodes
}

// randomZones are uneven, so that nodes differ.
func randomZones(random *rand.Rand) (list []*zone) {
	for range 1 << (1 + random.IntN(3)) {
		list = append(list, &zone{all: amounts{"cpu": 2 + random.Int64N(15), "memory": (2 + random.Int64N(30)) * gi,
			"example.com/gpu": random.Int64N(3)}})
	}
	return list
}

func randomAsk(name string, random *rand.Rand) ask {
	of := amounts{"cpu": 1 + random.Int64N(6), "memory": (1 + random.Int64N(6)) * gi}
	if random.IntN(4) == 0 {
		of["example.com/gpu"] = 1
	}
	return ask{name, of}
}

// wanted are the machines where the pod may go: those that fit, of these the best.
func (r *rig) wanted(p *v1.Pod, args any, machines []*machine) (names []string) {
	best := int64(-1)
	for i, v := range r.score(p, args, machines) {
		if v.Fits && machines[i].hasRoom(p) && *v.Score > best {
			best, names = *v.Score, nil
		}
		if v.Fits && machines[i].hasRoom(p) && *v.Score == best {
			names = append(names, v.Name)
		}
	}
	return names
}

// hasRoom is what kube-scheduler's own plugin says: there is enough on the node as a whole.
func (m *machine) hasRoom(p *v1.Pod) bool {
	m.rig.lock.Lock()
	defer m.rig.lock.Unlock()
	sum := amounts{}
	for _, z := range m.zones {
		sum.add(z.free, 1)
	}
	for _, c := range p.Spec.Containers {
		sum.add(asked(c), -1)
	}
	for _, n := range sum {
		if n < 0 {
			return false
		}
	}
	return true
}

func TestPodsLandWhereScoreSays(t *testing.T) {
	const nodes, pods = 6, 40
	for _, c := range []struct{ name, policy, scope string }{
		{"LeastAllocated", "single-numa-node", "container"},
		{"MostAllocated", "single-numa-node", "pod"},
		{"BalancedAllocation", "single-numa-node", "container"},
		{"LeastNUMANodes", "single-numa-node", "pod"},
		{"LeastNUMANodes", "best-effort", "container"},
	} {
		t.Run(c.name+" "+c.policy, func(t *testing.T) {
			r := newRig(t)
			s := strategy(c.name)
			r.withExtender(s.with(settings{"scoreMax": 100}), nil)
			random := rand.New(rand.NewPCG(seed, uint64(len(c.name+c.policy))))
			var machines []*machine
			for i := range nodes {
				machines = append(machines, r.machine(fmt.Sprint("n", i), randomZones(random), func(m *machine) {
					m.policy, m.scope = c.policy, c.scope
				}))
			}
			placed, chosen := 0, 0
			for i := range pods {
				var asks []ask
				for n := range 1 + random.IntN(2) {
					asks = append(asks, randomAsk(fmt.Sprint("c", n), random))
				}
				draft := podOf(fmt.Sprint("p", i), asks...)
				draft.Status.QOSClass = v1.PodQOSGuaranteed
				names := r.wanted(draft, s.args(), machines)
				p := r.create(draft)
				if len(names) == 0 {
					r.unschedulable(p)
					r.delete(p)
					continue
				}
				placed++
				if len(names) < nodes {
					chosen++
				}
				p = r.bound(p)
				if !slices.Contains(names, p.Spec.NodeName) {
					t.Fatalf("%s is on %s, and numafit score says %v\n%s", asJSON(asks), p.Spec.NodeName, names, r.tail())
				}
				r.said(p)
			}
			if placed < pods/4 || chosen < placed/2 {
				t.Errorf("only %d pods were placed, %d of them for a reason", placed, chosen)
			}
			r.nothingWasRefused()
		})
	}
}

// said waits until the node's report contains the pod, or the node has refused it.
func (r *rig) said(p *v1.Pod) {
	r.Helper()
	r.eventually("the report contains "+p.Name, func() bool {
		r.lock.Lock()
		defer r.lock.Unlock()
		m := r.machines[p.Spec.NodeName]
		return len(m.refused) > 0 || m.pods[p.UID] != nil && m.pods[p.UID].said
	})
}

func TestTheBindingCarriesAHintThatTheNodeTakes(t *testing.T) {
	for _, c := range []struct {
		name, policy, scope string
		pod                 *v1.Pod
		containers          []string
		zones               int
	}{
		{"one-container", "single-numa-node", "container", guaranteed("p", 3), []string{"web"}, 1},
		{"two-containers", "restricted", "container", podOf("p", ask{"a", amounts{"cpu": 4, "memory": gi}},
			ask{"b", amounts{"cpu": 2, "memory": 2 * gi}}), []string{"a", "b"}, 1},
		{"pod-scope", "single-numa-node", "pod", podOf("p", ask{"a", amounts{"cpu": 2, "memory": gi}},
			ask{"b", amounts{"cpu": 2, "memory": gi}}), []string{"*"}, 1},
		{"two-zones", "best-effort", "container", guaranteed("p", 6), []string{"web"}, 2},
		{"devices", "restricted", "container", podOf("p", ask{"gpu", amounts{"example.com/gpu": 2}}), []string{"gpu"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.withExtender(strategy("LeastNUMANodes"), nil)
			m := r.machine("n", zonesOf(8, amounts{"cpu": 4, "memory": 8 * gi, "example.com/gpu": 2}), func(m *machine) {
				m.policy, m.scope, m.generation = c.policy, c.scope, 4711
			})
			start := time.Now()
			p := r.bound(r.create(c.pod))
			r.said(p)
			out, err := r.numafit(p.Annotations[hintKey], "hint", "check", "--node", m.name, "--uid", string(p.UID),
				"--gen", "4711", "--machine", filepath.Join(os.Getenv("MACHINES"), "kep3545-8.machine"), "-")
			if err != nil || !strings.HasPrefix(out, "accepted\n") {
				t.Errorf("numafit hint check: %v %s of %s", err, out, p.Annotations[hintKey])
			}
			h, err := hintOf(p)
			if err != nil || h == nil {
				t.Fatal(err, "no hint")
			}
			if h.Scope != c.scope || h.TTL <= 0 || h.At < start.UnixMilli()-1000 || h.At > time.Now().UnixMilli()+1000 {
				t.Errorf("scope %q, made at %d, good for %d s", h.Scope, h.At, h.TTL)
			}
			var names []string
			sum := amounts{}
			for name, of := range h.Containers {
				names = append(names, name)
				if len(of.Res) != c.zones {
					t.Errorf("%s is on %d zones: %s", name, len(of.Res), asJSON(of))
				}
				for _, z := range of.Res {
					for resource, q := range z.Resources {
						sum.add(amounts{resource: q.Value()}, 1)
					}
				}
			}
			if slices.Sort(names); !slices.Equal(names, c.containers) {
				t.Errorf("it is for %q", names)
			}
			for _, of := range c.pod.Spec.Containers {
				sum.add(asked(of), -1)
			}
			for resource, n := range sum {
				if n != 0 {
					t.Errorf("of %s there is %d too much", resource, n)
				}
			}
			r.nothingWasRefused()
		})
	}
}

// Beside a plugin that filters and scores, the extender binds and does no more.
func TestWhoOnlyBindsLeavesAHintToo(t *testing.T) {
	r := newRig(t)
	r.withExtender(strategy("LeastAllocated"), way{"filterVerb": "", "prioritizeVerb": "", "preemptVerb": ""})
	r.machine("n", zonesOf(2, amounts{"cpu": 8, "memory": 16 * gi}), func(m *machine) { m.delay = never })
	for i := range 4 {
		if p := r.bound(r.create(guaranteed(fmt.Sprint("p", i), 4))); p.Annotations[hintKey] == "" {
			t.Errorf("%s has no hint", p.Name)
		}
	}
	r.nothingWasRefused()
}

func TestAPodThatNUMANodesDoNotMatterToHasNoHint(t *testing.T) {
	r := newRig(t)
	r.withExtender(strategy("LeastAllocated"), nil)
	r.machine("n", zonesOf(2, amounts{"cpu": 4, "memory": 8 * gi}), nil)
	burstable := guaranteed("burstable", 1)
	burstable.Spec.Containers[0].Resources.Limits = nil
	for _, p := range []*v1.Pod{burstable, podOf("best-effort", ask{"c", nil})} {
		if p = r.bound(r.create(p)); p.Annotations[hintKey] != "" {
			t.Errorf("%s has %s", p.Name, p.Annotations[hintKey])
		}
	}
}

func TestANodeWithoutATopologyTakesPodsWithoutAHint(t *testing.T) {
	r := newRig(t)
	r.withExtender(strategy("LeastAllocated"), nil)
	r.noReports = true
	r.machine("n", zonesOf(2, amounts{"cpu": 4, "memory": 8 * gi}), nil)
	if p := r.bound(r.create(guaranteed("p", 2))); p.Annotations[hintKey] != "" {
		t.Errorf("it has %s", p.Annotations[hintKey])
	}
}

func TestWhyAPodCannotBePlacedIsOneShortText(t *testing.T) {
	const nodes, longest = 12, 120
	r := newRig(t)
	r.withExtender(strategy("LeastAllocated"), nil)
	for i := range nodes {
		r.machine(fmt.Sprint("n", i), zonesOf(2+i%3, amounts{"cpu": 4 + int64(i%2), "memory": 8 * gi}), nil)
	}
	r.eventually("the extender knows them", func() bool {
		p := r.create(guaranteed("large", 6))
		why := r.unschedulable(p)
		r.delete(p)
		return strings.HasPrefix(why, fmt.Sprint(nodes, " ")) && strings.Count(why, ",") == 0 && len(why) < longest
	})
}

func TestFullObjectsDoAsWellAsNames(t *testing.T) {
	const pods = 20
	for _, names := range []bool{true, false} {
		t.Run(fmt.Sprint("nodeCacheCapable-", names), func(t *testing.T) {
			r := newRig(t)
			s := strategy("MostAllocated")
			r.withExtender(s.with(settings{"scoreMax": 100}), way{"nodeCacheCapable": names})
			var machines []*machine
			for i := range 4 {
				machines = append(machines, r.machine(fmt.Sprint("n", i), []*zone{{all: amounts{"cpu": 8 + int64(i), "memory": 16 * gi}},
					{all: amounts{"cpu": 9 + int64(i), "memory": 16 * gi}}}, nil))
			}
			large := r.create(guaranteed("large", 13))
			if why := r.unschedulable(large); !strings.HasPrefix(why, "4 numafit: ") {
				t.Errorf("a pod that is too large: %s", why)
			}
			r.delete(large)
			for i := range pods {
				draft := guaranteed(fmt.Sprint("p", i), 2)
				draft.Status.QOSClass = v1.PodQOSGuaranteed
				where := r.wanted(draft, s.args(), machines)
				p := r.bound(r.create(draft))
				if h, err := hintOf(p); err != nil || h == nil || !slices.Contains(where, p.Spec.NodeName) {
					t.Errorf("%s is on %s, not on %v; hint %v, %v", p.Name, p.Spec.NodeName, where, h, err)
				}
				r.said(p)
			}
			r.nothingWasRefused()
		})
	}
}
