package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	topology "github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"sigs.k8s.io/scheduler-plugins/pkg/noderesourcetopology"

	"numafit/test/interop/scheduler/upstream"
)

// The cases of test/bench/bench_score.c: the same nodes, from the same seed, and the same pods, so
// that the sums of scores are the same.

const (
	benchNodes  = 5000
	benchZones  = 8
	benchSocket = 4
	benchSeed   = 20261121
)

var benchResources = []struct {
	name               string
	most, small, large int64
}{
	{"cpu", 32, 4, 4},
	{"memory", 128 << 30, 8 << 30, 8 << 30},
	{"hugepages-2Mi", 8 << 30, 1 << 30, 1 << 30},
	{"example.com/gpu", 2, 1, 17},
	{"example.com/nic", 4, 1, 1},
}

var benchCases = []struct {
	name, strategy string
	large          bool
}{
	{"score-least-allocated", "LeastAllocated", false},
	{"score-least-numa-one", "LeastNUMANodes", false},
	{"score-least-numa-none", "LeastNUMANodes", true},
}

// xorshift is the C benchmark's stream of numbers (xorshift64*).
type xorshift uint64

func (x *xorshift) below(n uint64) int64 {
	*x ^= *x >> 12
	*x ^= *x << 25
	*x ^= *x >> 27
	return int64(uint64(*x) * 2685821657736338717 >> 33 % n)
}

func distance(a, b int) int64 {
	switch {
	case a == b:
		return 10
	case a/benchSocket == b/benchSocket:
		return 12
	}
	return 32
}

func benchTopology(name string, random *xorshift) *topology.NodeResourceTopology {
	t := &topology.NodeResourceTopology{
		TypeMeta:   metav1.TypeMeta{APIVersion: "topology.node.k8s.io/v1alpha2", Kind: "NodeResourceTopology"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Attributes: topology.AttributeList{{Name: "topologyManagerPolicy", Value: "single-numa-node"}},
	}
	for z := range benchZones {
		zone := topology.Zone{Name: fmt.Sprint("node-", z), Type: "Node"}
		for to := range benchZones {
			zone.Costs = append(zone.Costs, topology.CostInfo{Name: fmt.Sprint("node-", to), Value: distance(z, to)})
		}
		for _, r := range benchResources {
			free := r.most / 4 * random.below(5)
			if r.most < 4 {
				free = r.most
			}
			all := *resource.NewQuantity(r.most, resource.DecimalSI)
			zone.Resources = append(zone.Resources, topology.ResourceInfo{Name: r.name, Capacity: all,
				Allocatable: all, Available: *resource.NewQuantity(free, resource.DecimalSI)})
		}
		t.Zones = append(t.Zones, zone)
	}
	return t
}

func benchPod(large bool) *v1.Pod {
	list := v1.ResourceList{}
	for _, r := range benchResources {
		q := r.small
		if large {
			q = r.large
		}
		list[v1.ResourceName(r.name)] = *resource.NewQuantity(q, resource.DecimalSI)
	}
	return &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{
		{Name: "c", Resources: v1.ResourceRequirements{Requests: list, Limits: list}}}}}
}

func text(object any) []byte {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return text
}

func moduleVersion(path string) string {
	info, _ := debug.ReadBuildInfo()
	for _, dep := range info.Deps {
		if dep.Path == path {
			return dep.Version
		}
	}
	return "?"
}

// bench prints for each of the cases: name, who, runs, ns for a node, answer, remark.
func bench(out io.Writer) {
	random := xorshift(benchSeed)
	q := &upstream.Question{Plugin: noderesourcetopology.Name}
	infos := make([]*framework.NodeInfo, benchNodes)
	for i := range infos {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)}}
		infos[i] = framework.NewNodeInfo()
		infos[i].SetNode(node)
		q.Nodes = append(q.Nodes, upstream.Candidate{Node: text(node), Topology: text(benchTopology(node.Name, &random))})
	}
	for _, c := range benchCases {
		// its cache of topologies, or each would come over the network each time
		q.Args = fmt.Appendf(nil, `{"cacheResyncPeriodSeconds":3600,"scoringStrategy":{"type":%q}}`, c.strategy)
		plugin, err := newPlugin(context.Background(), q)
		if err != nil {
			panic(err)
		}
		pod, sum := benchPod(c.large), int64(0)
		start := time.Now()
		for _, info := range infos {
			score, status := plugin.(framework.ScorePlugin).Score(context.Background(), nil, pod, info)
			if !status.IsSuccess() {
				panic(status)
			}
			sum += score
		}
		fmt.Fprintf(out, "%s\t%s\t1\t%d\tsum %d\tits topologies are cached\n", c.name,
			"scheduler-plugins "+moduleVersion("sigs.k8s.io/scheduler-plugins"),
			time.Since(start).Nanoseconds()/benchNodes, sum)
	}
}
