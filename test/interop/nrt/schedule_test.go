package interop

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	topology "github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha2"
	"github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha2/helper/numanode"
	"github.com/k8stopologyawareschedwg/podfingerprint"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/scheduler-plugins/pkg/noderesourcetopology/nodeconfig"
)

// What a scheduler makes of our object.

var strategies = []string{"LeastAllocated", "MostAllocated", "BalancedAllocation", "LeastNUMANodes"}

const (
	least       = "LeastNUMANodes"
	manyZones   = 16 // of more, the plugin's search for several never ends
	podsOfState = 20
	seed        = 20261121
	single      = "single-numa-node"
)

// machines, by what is special about them.
var machines = []struct {
	name  string
	zones int
	ids   []string // the kernel's, where they are no dense indexes
}{
	{"kep3545-8.machine", 8, nil},
	{"asymmetric.machine", 4, nil},
	{"snc4-2s.machine", 8, nil},
	{"hbm-flat.machine", 16, nil}, // memory without CPUs
	{"cxl.machine", 4, nil},
	{"sparse-nodes", 4, []string{"0", "1", "2", "8"}}, // a recorded tree, with two sizes of huge pages
	{"power9.machine", 8, []string{"0", "8", "250", "251", "252", "253", "254", "255"}},
	{"gb200.machine", 34, nil}, // NUMA nodes without anything
	{"altix-64.machine", 64, nil},
}

func TestThePluginReadsTheObjectAndScoresAsNumafitDoes(t *testing.T) {
	for _, m := range machines {
		t.Run(m.name, func(t *testing.T) {
			for _, scope := range []string{"container", "pod"} {
				r := newRig(t, m.name, "topologyManagerScope="+scope)
				object := r.await("is there", func(*topology.NodeResourceTopology) bool { return true })
				checkForm(t, object, m.zones, m.ids, scope)
				random := rand.New(rand.NewPCG(seed, uint64(m.zones)))
				scores := newNumafit(t)
				for _, fill := range []float64{0, 0.4, 0.85} {
					object = r.fill(object, fill, random)
					r.checkFingerprint(object)
					for _, strategy := range strategies {
						if strategy != least || m.zones <= manyZones {
							r.compare(object, strategy, scores, random)
						}
					}
				}
				r.stopDaemon()
			}
		})
	}
}

// checkForm insists on what readers of such objects rely on, by their own helpers.
func checkForm(t *testing.T, o *topology.NodeResourceTopology, zones int, ids []string, scope string) {
	t.Helper()
	if len(o.Zones) != zones {
		t.Fatalf("%d zones", len(o.Zones))
	}
	// LeastNUMANodes divides by the last one: less than there are makes scores below 0
	want := nodeconfig.TopologyManager{Scope: scope, Policy: single, MaxNUMANodes: max(zones, nodeconfig.DefaultMaxNUMANodes)}
	said := newSaid()
	got := nodeconfig.TopologyManagerFromNodeResourceTopology(logr.New(said), o)
	if !got.Equal(want) || len(*said.complaints) > 0 {
		t.Errorf("the plugin reads %v: %v", got, *said.complaints)
	}
	names := map[string]bool{}
	for _, r := range o.Zones[0].Resources {
		names[r.Name] = true
	}
	for i, z := range o.Zones {
		if id, err := numanode.NameToID(z.Name); err != nil || id != i || z.Type != "Node" {
			t.Errorf("zone %d: %s of type %s: %v", i, z.Name, z.Type, err)
		}
		if ids != nil && !slices.ContainsFunc(z.Attributes, func(a topology.AttributeInfo) bool { return a.Value == ids[i] }) && z.Name != "node-"+ids[i] {
			t.Errorf("%s does not tell its id %s: %s", z.Name, ids[i], asJSON(z.Attributes))
		}
		here := map[string]bool{}
		for _, r := range z.Resources {
			if here[r.Name] || r.Available.Cmp(r.Allocatable) > 0 || r.Allocatable.Cmp(r.Capacity) > 0 || r.Available.Sign() < 0 {
				t.Errorf("%s: %s", z.Name, asJSON(r))
			}
			here[r.Name] = true
		}
		if !maps.Equal(here, names) || !here["cpu"] || !here["memory"] {
			t.Errorf("%s has %v, another one %v", z.Name, here, names)
		}
		costs := map[string]bool{}
		for _, c := range z.Costs {
			costs[c.Name] = c.Value >= 10 && c.Value <= 255
		}
		for _, other := range o.Zones {
			if !costs[other.Name] {
				t.Errorf("%s: no cost of %s: %s", z.Name, other.Name, asJSON(z.Costs))
			}
		}
	}
}

// What the plugin takes for the node's rules is what they are, also from the deprecated field alone.
func TestThePluginReadsThePolicy(t *testing.T) {
	for _, policy := range []string{"none", "best-effort", "restricted", "single-numa-node"} {
		for _, scope := range []string{"container", "pod"} {
			r := newRig(t, "kep3545-8.machine", "topologyManagerPolicy="+policy, "topologyManagerScope="+scope,
				"nodeResourceTopology.topologyPolicies=true")
			object := r.await("is there", func(*topology.NodeResourceTopology) bool { return true })
			r.stopDaemon()
			want := nodeconfig.TopologyManager{Scope: scope, Policy: policy, MaxNUMANodes: nrNodes}
			if got := nodeconfig.TopologyManagerFromNodeResourceTopology(logr.Discard(), object); !got.Equal(want) {
				t.Errorf("%v is read as %v: %s", want, got, asJSON(object.Attributes))
			}
			if policy == "none" { // there is no word for it
				want = nodeconfig.TopologyManagerDefaults()
			}
			object.Attributes = nil
			if got := nodeconfig.TopologyManagerFromNodeResourceTopology(logr.Discard(), object); !got.Equal(want) {
				t.Errorf("%v is read as %v: %q", want, got, object.TopologyPolicies)
			}
		}
	}
}

// fill creates containers until so much of all CPUs is taken.
func (r *rig) fill(object *topology.NodeResourceTopology, share float64, random *rand.Rand) *topology.NodeResourceTopology {
	r.Helper()
	all, most := int64(0), int64(0)
	for _, z := range object.Zones {
		for _, of := range z.Resources {
			if of.Name == "cpu" {
				all += of.Allocatable.Value()
				most = max(most, of.Allocatable.Value())
			}
		}
	}
	for tries := 0; tries < 200 && sum(free(object, "cpu")) > all-int64(share*float64(all)); tries++ {
		cpus := 1 + random.Int64N(max(1, most*2/3))
		if after := r.run(fmt.Sprint("p", len(r.running)), cpus, (1+random.Int64N(8))<<28); after != nil {
			object = after
		}
	}
	return object
}

func (r *rig) checkFingerprint(o *topology.NodeResourceTopology) {
	r.Helper()
	f := podfingerprint.NewFingerprint(len(r.running))
	for _, c := range r.running {
		f.Add("default", r.pods[c.PodSandboxId].Name)
	}
	for _, a := range o.Attributes {
		if a.Name == podfingerprint.Attribute {
			if err := f.Check(a.Value); err != nil {
				r.Errorf("fingerprint %s, not %s, of %d pods: %v", a.Value, f.Sign(), len(r.running), err)
			}
			return
		}
	}
	r.Error("there is no fingerprint")
}

func nodeOf(o *topology.NodeResourceTopology) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: o.Name}}
	n.Status.Allocatable = v1.ResourceList{"pods": resource.MustParse("110")}
	for _, z := range o.Zones {
		for _, of := range z.Resources {
			all := n.Status.Allocatable[v1.ResourceName(of.Name)]
			all.Add(of.Allocatable)
			n.Status.Allocatable[v1.ResourceName(of.Name)] = all
		}
	}
	return n
}

// randomPod asks for something that a zone has, mostly.
func randomPod(o *topology.NodeResourceTopology, number int, random *rand.Rand) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("asked-", number), Namespace: "default", UID: "uid"}}
	guaranteed := random.IntN(4) > 0
	for c := range 1 + random.IntN(3) {
		zone := o.Zones[random.IntN(len(o.Zones))]
		list := v1.ResourceList{"cpu": *resource.NewQuantity(1+random.Int64N(12), resource.DecimalSI),
			"memory": *resource.NewQuantity((1+random.Int64N(32))<<28, resource.BinarySI)}
		for _, of := range zone.Resources {
			if n := of.Available.Value(); strings.HasPrefix(of.Name, "hugepages-") && n > 0 && random.IntN(3) == 0 {
				list[v1.ResourceName(of.Name)] = of.Available
			} else if of.Name == "cpu" && n > 0 && random.IntN(2) == 0 {
				list["cpu"] = *resource.NewQuantity(1+random.Int64N(n), resource.DecimalSI)
			}
		}
		requests := v1.ResourceRequirements{Requests: list, Limits: list.DeepCopy()}
		if !guaranteed {
			delete(requests.Limits, "cpu")
		}
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: fmt.Sprint("c", c), Resources: requests})
	}
	return p
}

// compare asks both about pods, and insists that the plugin has nothing to complain of and has looked
// at every zone.
func (r *rig) compare(o *topology.NodeResourceTopology, strategy string, scores *numafit, random *rand.Rand) {
	r.Helper()
	p := newPlugin(r.T, r.objects, strategy)
	node, text := nodeOf(o), r.objects.text(nodeName)
	for i := range podsOfState {
		pod := randomPod(o, i, random)
		theirs := p.ask(r.T, node, pod)
		ours := scores.ask(r.T, question{Name: pod.Name, Plugin: "NodeResourceTopologyMatch", Compat: true,
			Args:  map[string]any{"scoringStrategy": map[string]any{"type": strategy}},
			Nodes: []candidate{{node, text}}, Pod: pod})
		if theirs.String() != ours.String() {
			r.Errorf("%s: plugin %s, numafit %s, of pod %s on %s", strategy, theirs, ours, asJSON(pod.Spec), text)
		}
		count(strategy, theirs)
	}
	if *p.said.zones == 0 || *p.said.zones%len(o.Zones) != 0 {
		r.Errorf("%s: it has looked at %d zones of %d", strategy, *p.said.zones, len(o.Zones))
	}
	if len(*p.said.complaints) > 0 {
		r.Errorf("%s: it says %q of %s", strategy, *p.said.complaints, text)
	}
}

// counted are answers by what they were, so that a run shows that it has asked for something.
var counted = map[string]int{}

func count(strategy string, a answer) {
	what := "refused"
	if a.Fits {
		what = "fit"
	}
	counted[strategy+" "+what]++
}

func TestTheQuestionsHadAnswersOfEachKind(t *testing.T) {
	for _, s := range strategies {
		for _, what := range []string{"fit", "refused"} {
			if counted[s+" "+what] < podsOfState {
				t.Errorf("%s: %d pods %s", s, counted[s+" "+what], what)
			}
		}
	}
	fmt.Printf("figure: pods asked about: %v\n", counted)
}
