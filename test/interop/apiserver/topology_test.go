package interop

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	topology "github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// NodeResourceTopology objects, in the types of their own module.

const topologyGroup = "topology.node.k8s.io"

var topologyResource = schema.GroupVersionResource{Group: topologyGroup, Version: "v1alpha2",
	Resource: "noderesourcetopologies"}

func (c *controlPlane) topologies() dynamic.ResourceInterface {
	return c.dynamic.Resource(topologyResource)
}

func typed(object *unstructured.Unstructured) (*topology.NodeResourceTopology, error) {
	t := &topology.NodeResourceTopology{}
	return t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, t)
}

// topology is the node's as the API server has it now.
func (r *rig) topology() *topology.NodeResourceTopology {
	r.Helper()
	object, err := r.topologies().Get(background, r.name, metav1.GetOptions{})
	if err != nil {
		r.Fatal(err)
	}
	t, err := typed(object)
	if err != nil {
		r.Fatal(err)
	}
	return t
}

// await watches the node's until it is as wanted. A nil one: it is not there.
func (r *rig) await(what string, wanted func(t *topology.NodeResourceTopology) bool) *topology.NodeResourceTopology {
	r.Helper()
	end := time.Now().Add(patience)
	var last *topology.NodeResourceTopology
	for time.Now().Before(end) {
		if t, ok := r.watchFor(end, wanted); ok {
			return t
		} else if t != nil {
			last = t
		}
	}
	r.Fatalf("no topology that %s; the last one is %s", what, asJSON(last))
	return nil
}

// watchFor is one watch of await's; it ends when the server ends it, or is not there.
func (r *rig) watchFor(end time.Time, wanted func(t *topology.NodeResourceTopology) bool) (last *topology.NodeResourceTopology, found bool) {
	w, err := r.topologies().Watch(background, metav1.ListOptions{FieldSelector: "metadata.name=" + r.name,
		AllowWatchBookmarks: true})
	if err != nil {
		time.Sleep(20 * time.Millisecond) // there is no such kind, or no server
		return nil, wanted(nil)
	}
	defer w.Stop()
	timer := time.NewTimer(time.Until(end))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return last, false
		case e, ok := <-w.ResultChan():
			if !ok || e.Type == watch.Error {
				return last, false
			}
			switch t, err := typed(e.Object.(*unstructured.Unstructured)); {
			case err != nil:
				r.Fatal(err)
			case e.Type == watch.Deleted, e.Type == watch.Bookmark && last == nil:
				if last = nil; wanted(nil) {
					return nil, true
				}
			case e.Type == watch.Added, e.Type == watch.Modified:
				if last = t; wanted(t) {
					return t, true
				}
			}
		}
	}
}

func attribute(list topology.AttributeList, name string) string {
	for _, a := range list {
		if a.Name == name {
			return a.Value
		}
	}
	return ""
}

func quantity(z topology.Zone, resource string) (of topology.ResourceInfo, ok bool) {
	for _, r := range z.Resources {
		if r.Name == resource {
			return r, true
		}
	}
	return of, false
}

// available is how much of the resource each zone has left.
func available(t *topology.NodeResourceTopology, resource string) (list []int64) {
	for _, z := range t.Zones {
		of, _ := quantity(z, resource)
		list = append(list, of.Available.Value())
	}
	return list
}

// freeCPUs is whether zone n has so many left.
func freeCPUs(n int, nr int64) func(t *topology.NodeResourceTopology) bool {
	return func(t *topology.NodeResourceTopology) bool {
		return t != nil && len(t.Zones) > n && available(t, "cpu")[n] == nr
	}
}

func exists(t *topology.NodeResourceTopology) bool { return t != nil }

// differences between what the object says and what `numafit status` does.
func differences(t *topology.NodeResourceTopology, s status) (list []string) {
	complain := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if len(t.Zones) != len(s.Nodes) {
		complain("%d zones, %d NUMA nodes", len(t.Zones), len(s.Nodes))
		return list
	}
	for name, want := range map[string]any{"fragmentation": float64(s.Fragmentation.Ratio) / 1000,
		"free-cpus": s.Fragmentation.Free, "largest-free-cpus": s.Fragmentation.Largest} {
		if got := attribute(t.Attributes, "numafit.io/"+name); got != fmt.Sprint(want) {
			complain("%s is %q, status %v", name, got, want)
		}
	}
	for i, z := range t.Zones {
		if n := s.Nodes[i]; z.Name != fmt.Sprint("node-", i) || z.Type != "Node" {
			complain("zone %d is %s of type %s", i, z.Name, z.Type)
		} else if of, _ := quantity(z, "cpu"); of.Capacity.Value() != n.CPUs ||
			of.Allocatable.Value() != n.CPUs-n.CPUsReserved || of.Available.Value() != n.CPUs-n.CPUsReserved-n.CPUsHeld {
			complain("%s: cpu %s, status %+v", z.Name, asJSON(of), n)
		}
		for _, m := range s.Nodes[i].Memory {
			of, ok := quantity(z, m.Type)
			if !ok || of.Allocatable.Value() != m.Allocatable || of.Available.Value() != m.Free ||
				of.Capacity.Cmp(of.Allocatable) < 0 {
				complain("%s: %s %s, status %+v", z.Name, m.Type, asJSON(of), m)
			}
		}
		if len(z.Costs) != len(t.Zones) {
			complain("%s: %d costs", z.Name, len(z.Costs))
		}
	}
	return list
}

// agrees insists that the object comes to say what `numafit status` does.
func (r *rig) agrees() *topology.NodeResourceTopology {
	r.Helper()
	s := r.status()
	var wrong []string
	t := r.await("agrees with numafit status", func(t *topology.NodeResourceTopology) bool {
		if t == nil {
			return false
		}
		wrong = differences(t, s)
		return len(wrong) == 0
	})
	if len(wrong) > 0 {
		r.Errorf("the topology and numafit status: %s", strings.Join(wrong, "; "))
	}
	return t
}

// applyAs writes fields of the object as another field manager.
func (r *rig) applyAs(manager string, force bool, fields map[string]any) error {
	object := map[string]any{"apiVersion": topologyGroup + "/v1alpha2", "kind": "NodeResourceTopology",
		"metadata": map[string]any{"name": r.name}}
	for k, v := range fields {
		object[k] = v
	}
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	_, err = r.topologies().Patch(background, r.name, types.ApplyPatchType, text,
		metav1.PatchOptions{FieldManager: manager, Force: &force})
	return err
}
