package main

import (
	"slices"
	"strconv"

	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/topology"
	"k8s.io/utils/cpuset"
)

// A row of a question's CPUs: what cpusFields says.
type cpuRow [5]int

var cpusFields = []string{"cpu", "core", "socket", "numa", "uncore"}

const (
	rowCPU = iota
	rowCore
	rowSocket
	rowNode
	rowUncore
)

// cpuRows is the part of a question that tells the machine's CPUs.
type cpuRows struct {
	CPUsFields []string `json:"cpus_fields"`
	CPUs       []cpuRow `json:"cpus"`
	NumCores   int      `json:"num_cores"`
	NumSockets int      `json:"num_sockets"`
}

func (m *cpuRows) topology() *topology.CPUTopology {
	t := &topology.CPUTopology{
		NumCPUs:    len(m.CPUs),
		NumCores:   m.NumCores,
		NumSockets: m.NumSockets,
		CPUDetails: topology.CPUDetails{},
	}
	for _, row := range m.CPUs {
		t.CPUDetails[row[rowCPU]] = topology.CPUInfo{
			CoreID: row[rowCore], SocketID: row[rowSocket],
			NUMANodeID: row[rowNode], UncoreCacheID: row[rowUncore],
		}
	}
	t.NumNUMANodes = t.CPUDetails.NUMANodes().Size()
	t.NumUncoreCache = t.CPUDetails.UncoreCaches().Size()
	return t
}

// cores of one node, as cadvisor reports them.
func (m *cpuRows) cores(node int) (cores []cpuCore) {
	at := map[int]int{}
	for _, row := range m.CPUs {
		if row[rowNode] != node {
			continue
		}
		i, known := at[row[rowCore]]
		if !known {
			i = len(cores)
			at[row[rowCore]] = i
			cores = append(cores, cpuCore{
				Id: row[rowCore], SocketID: row[rowSocket],
				UncoreCaches: []cpuCache{{Id: row[rowUncore]}},
			})
		}
		cores[i].Threads = append(cores[i].Threads, row[rowCPU])
	}
	return cores
}

func (m *cpuRows) all() (ids []int) {
	for _, row := range m.CPUs {
		ids = append(ids, row[rowCPU])
	}
	return ids
}

func (m *cpuRows) nodes() []int {
	return m.topology().CPUDetails.NUMANodes().List()
}

// randomNodes are count node ids, mostly without gaps.
func randomNodes(r *random, count int) []int {
	ids := make([]int, count)
	for i := range ids {
		ids[i] = i
	}
	if r.chance(20) {
		ids = r.Perm(bitsOfMask)[:count]
		slices.Sort(ids)
	}
	return ids
}

const (
	localDistance = 10
	farthest      = 254
)

func randomDistances(r *random, nodes []int) map[string][]uint64 {
	rows := map[string][]uint64{}
	levels := r.between(1, 4)
	symmetric := r.chance(80)
	socket := r.between(2, 4) // nodes of one
	for i, node := range nodes {
		row := make([]uint64, len(nodes))
		for j, other := range nodes {
			switch {
			case i == j:
				row[j] = localDistance
			case i > j && symmetric:
				row[j] = rows[strconv.Itoa(other)][i]
			case levels == 1:
				row[j] = 20
			case levels == 4: // as sockets have it
				row[j] = uint64(pick(r, 12, 12, 12, 13))
				if i/socket != j/socket {
					row[j] = uint64(22 + 10*max(i/socket-j/socket, j/socket-i/socket))
				}
			case levels == 2: // pairs of neighbours, as in one socket
				row[j] = uint64(pick(r, 12, 12, 32) + 20*(max(i/2, j/2)-min(i/2, j/2)))
			default:
				row[j] = uint64(r.between(localDistance+1, pick(r, 16, 40, farthest)))
			}
		}
		rows[strconv.Itoa(node)] = row
	}
	return rows
}

// Large enough for everything that the code distinguishes, small enough for upstream to be quick.
const cpusMax = 192

// randomCPUs spreads cores over the nodes: one or more nodes in a socket or, rarely, sockets in a
// node; one, two or four threads in a core, next to each other or as far apart as possible; some
// CPUs may be offline. On a fourth of the machines sockets and nodes cross.
func randomCPUs(r *random, nodes []int) cpuRows {
	if len(nodes) > 1 && r.chance(25) {
		return crossingCPUs(r, nodes)
	}
	m := cpuRows{CPUsFields: cpusFields}
	sockets := pick(r, 1, 1, 2, 2, 2, 4)
	if sockets > len(nodes) { // no hardware has a socket that reaches into two nodes of several
		sockets -= sockets % len(nodes)
	}
	threads := pick(r, 1, 2, 2, 2, 4)
	coresOfNode := r.between(1, max(1, min(12, cpusMax/threads/len(nodes))))
	uncoreCores := pick(r, coresOfNode, coresOfNode, max(1, coresOfNode/2), r.between(1, 4))
	cores := coresOfNode * len(nodes)
	apart := r.chance(60)
	for core := range cores {
		at := core / coresOfNode
		socket := at * sockets / len(nodes)
		if len(nodes) < sockets { // sockets in a node
			socket = core * sockets / cores
		}
		uncore := at*coresOfNode + core%coresOfNode/uncoreCores
		for thread := range threads {
			cpu := core*threads + thread
			if apart {
				cpu = core + thread*cores
			}
			m.CPUs = append(m.CPUs, cpuRow{cpu, core, socket, nodes[at], uncore})
		}
	}
	if r.chance(15) {
		m.CPUs = some(r, m.CPUs, r.between(1, len(m.CPUs)))
	}
	m.finish()
	return m
}

// crossingCPUs is a machine as a hypervisor may show it: sockets that reach into several nodes, and
// nodes of several sockets, in every way, and likewise caches; nodes of unequal size; ids with gaps.
func crossingCPUs(r *random, nodes []int) cpuRows {
	m := cpuRows{CPUsFields: cpusFields}
	threads := pick(r, 1, 1, 2, 2, 4)
	var nodeOf []int // of each core
	even := r.between(1, max(1, min(8, cpusMax/threads/len(nodes))))
	for _, node := range nodes {
		cores := even
		if r.chance(30) {
			cores = r.between(1, 8)
		}
		nodeOf = append(nodeOf, slices.Repeat([]int{node}, cores)...)
	}
	sockets := overlapping(r, len(nodeOf), pick(r, 1, 2, 2, 3, 4, len(nodes)))
	uncores := nodeOf
	if r.chance(30) {
		uncores = overlapping(r, len(nodeOf), r.between(1, 6))
	}
	apart := r.chance(60)
	for core, node := range nodeOf {
		for thread := range threads {
			cpu := core*threads + thread
			if apart {
				cpu = core + thread*len(nodeOf)
			}
			m.CPUs = append(m.CPUs, cpuRow{cpu, core, sockets[core], node, uncores[core]})
		}
	}
	if r.chance(15) {
		m.CPUs = some(r, m.CPUs, r.between(1, len(m.CPUs)))
	}
	m.finish()
	return m
}

// overlapping puts each core into one of count parts that know nothing of NUMA nodes: blocks that
// end in the middle of a node, one core after the other, or anywhere.
func overlapping(r *random, cores, count int) []int {
	ids := make([]int, count)
	for i := range ids {
		ids[i] = i
	}
	if r.chance(30) {
		ids = r.Perm(40)[:count]
	}
	parts, way, shift := make([]int, cores), r.IntN(3), r.IntN(cores)
	for core := range parts {
		part := (core + shift) % cores * count / cores
		switch way {
		case 1:
			part = core % count
		case 2:
			part = r.IntN(count)
		}
		parts[core] = ids[part]
	}
	return parts
}

// crosses: a socket has CPUs on several nodes, and one of these has CPUs of several sockets.
func (m *cpuRows) crosses() bool {
	details := m.topology().CPUDetails
	for _, socket := range details.Sockets().List() {
		nodes := details.NUMANodesInSockets(socket).List()
		if len(nodes) > 1 && slices.ContainsFunc(nodes,
			func(node int) bool { return details.SocketsInNUMANodes(node).Size() > 1 }) {
			return true
		}
	}
	return false
}

// finish sorts by CPU, names each core by its first CPU, as the kubelet does, and counts.
func (m *cpuRows) finish() {
	slices.SortFunc(m.CPUs, func(a, b cpuRow) int { return a[rowCPU] - b[rowCPU] })
	first, sockets := map[int]int{}, map[int]bool{}
	for i, row := range m.CPUs {
		if _, known := first[row[rowCore]]; !known {
			first[row[rowCore]] = row[rowCPU]
		}
		m.CPUs[i][rowCore] = first[row[rowCore]]
		sockets[row[rowSocket]] = true
	}
	m.NumCores, m.NumSockets = len(first), len(sockets)
}

func list(s cpuset.CPUSet) []int { return append([]int{}, s.List()...) }
