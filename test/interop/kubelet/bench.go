package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/utils/cpuset"
)

// Upstream's side of `make bench`: the same questions as those of test/bench, where upstream can
// answer them in seconds. Each is a line of peersFields, with tabs between them.
const benchVerb = "bench"

// case of test/bench, who answered it, how often, median in ns, the answer (to be the same), remark.
type peerRow struct {
	name, who string
	times     []time.Duration
	answer    string
	remark    string
}

var peers = map[string]func(version string) peerRow{
	"merge-8x4-nonpreferred": func(version string) peerRow { return benchMerge(version, false) },
	"merge-8x4-preferred":    func(version string) peerRow { return benchMerge(version, true) },
	"decide-typical":         benchAdmit,
}

func bench(version string, names []string, out io.Writer) {
	const kubeletGCPercent = 100 // Go's default, which the kubelet does not change
	debug.SetGCPercent(kubeletGCPercent)
	for _, name := range names {
		if peer := peers[name]; peer != nil {
			r := peer(version)
			slices.Sort(r.times)
			fmt.Fprintf(out, "%s\t%s\t%d\t%d\t%s\t%s\n", name, r.who, len(r.times),
				r.times[len(r.times)/2].Nanoseconds(), r.answer, r.remark)
		}
	}
}

const (
	benchNodes  = 8
	mergeHints  = 1<<benchNodes - 1
	mergeLists  = 3 // a fourth would take a quarter of an hour
	mergeRuns   = 3
	admitRuns   = 100
	admitPlaced = 60
)

// benchMerge merges lists that name every set of nodes, as the kubelet does after it has asked its
// managers.
func benchMerge(version string, preferred bool) (r peerRow) {
	q := &topologyManager{Policy: topologymanager.PolicyBestEffort}
	for node := range benchNodes {
		q.Nodes = append(q.Nodes, node)
	}
	var list []hint
	for set := 1; set <= mergeHints; set++ {
		var mask []int
		for node := range benchNodes {
			if set&(1<<node) != 0 {
				mask = append(mask, node)
			}
		}
		list = append(list, hint{mask, preferred && len(mask) == 1})
	}
	var providers []map[string][]hint
	for range mergeLists {
		providers = append(providers, map[string][]hint{"r": list})
	}
	policy, err := q.newPolicy()
	must(err)
	hints := upstreamHints(providers)
	var allocated uint64
	for range mergeRuns {
		var best topologymanager.TopologyHint
		before := allocatedBytes()
		r.time(func() { best, _ = policy.Merge(klog.Background(), hints) })
		allocated = allocatedBytes() - before
		r.answer = fmt.Sprintf("nodes %s preferred %d", cpuset.New(bitsOf(best)...), number(best.Preferred))
	}
	r.who = fmt.Sprintf("kubelet %s, %d lists", version, mergeLists)
	slices.Sort(r.times)
	r.remark = fmt.Sprintf("%.1f GB allocated; %d lists: %.0f s, extrapolated (x%d)",
		float64(allocated)/1e9, mergeLists+1,
		(r.times[len(r.times)/2] * mergeHints).Seconds(), mergeHints)
	return r
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

func allocatedBytes() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func (r *peerRow) time(what func()) {
	start := time.Now()
	what()
	r.times = append(r.times, time.Since(start))
}

// benchAdmit admits the pod of test/bench/bench_core.c on its machine, among its containers.
func benchAdmit(version string) (r peerRow) {
	k, err := typicalNode().start()
	must(err)
	k.unwatched = true
	for i := range admitPlaced {
		p := benchPod(fmt.Sprintf("c%02d", i), 1, 2)
		if i%2 == 1 {
			p.Spec.Containers[0].Resources.Limits = map[string]string{"cpu": "2", "memory": "4Gi"}
		}
		answer := map[string]any{}
		if k.admit(p.kubernetes(), answer); answer["admit"] != true {
			must(fmt.Errorf("bench: %v", answer))
		}
	}
	for range admitRuns {
		p := benchPod("one", 8, 16).kubernetes()
		k.active.add(p)
		r.time(func() { admit(k.topology, p) })
		one := k.container(p, &p.Spec.Containers[0])
		r.answer = fmt.Sprintf("nodes %s preferred %d cpus %s", cpuset.New(one.Affinity...),
			number(one.Preferred), cpuset.New(one.CPUs...))
		k.active.remove(string(p.UID))
		for _, m := range []topologymanager.HintProvider{k.cpus, k.memory} {
			collect(m)
		}
	}
	r.who = "kubelet " + version
	r.remark = "its topology, CPU, memory and device managers"
	return r
}

// typicalNode has two sockets, eight NUMA nodes and 128 CPUs, two of which are the system's.
func typicalNode() *nodeQuestion {
	const sockets, cores, gib, local, near, far = 2, 8, 1 << 30, 10, 12, 32
	const nodeMemory = 64 * gib
	q := &nodeQuestion{}
	q.Machine.Distances = map[string][]uint64{}
	for node := range benchNodes {
		q.Machine.Nodes = append(q.Machine.Nodes, memoryNode{ID: node, Memory: nodeMemory})
		socket := func(n int) int { return n * sockets / benchNodes }
		var row []uint64
		for other := range benchNodes {
			switch {
			case other == node:
				row = append(row, local)
			case socket(other) == socket(node):
				row = append(row, near)
			default:
				row = append(row, far)
			}
		}
		q.Machine.Distances[strconv.Itoa(node)] = row
		for core := node * cores; core < (node+1)*cores; core++ {
			for _, cpu := range []int{core, core + benchNodes*cores} {
				q.Machine.CPUs = append(q.Machine.CPUs, cpuRow{cpu, core, socket(node), node, node})
			}
		}
	}
	q.Machine.finish()
	q.Settings = nodeSettings{
		TopologyManagerPolicy: topologymanager.PolicyRestricted,
		TopologyManagerScope:  topologymanager.ContainerTopologyScope,
		CPUManagerPolicy:      "static",
		MemoryManagerPolicy:   "Static",
		ReservedMemory:        []nodeReserve{{0, map[string]string{"memory": "1Gi"}}},
		SystemReserved:        map[string]string{"memory": "1Gi", "cpu": "2"},
		ReservedSystemCPUs:    "0,64",
	}
	return q
}

// benchPod has one container, and limits that equal its requests.
func benchPod(name string, cpus, gib int) *pod {
	p := &pod{}
	p.Metadata.Name, p.Metadata.Namespace, p.Metadata.UID = name, "bench", name
	all := map[string]string{"cpu": strconv.Itoa(cpus), "memory": fmt.Sprintf("%dGi", gib)}
	p.Spec.Containers = []podContainer{{Name: "main", Resources: amounts{all, all}}}
	return p
}
