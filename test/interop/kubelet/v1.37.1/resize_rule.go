package main

import (
	"math"
	"reflect"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	v1qos "k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	memory "k8s.io/kubernetes/pkg/kubelet/cm/memorymanager/state"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager/bitmask"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/utils/cpuset"
)

// What numafit does where v1.37.1 leaves a container what it has: the table of test/README.md, done
// with the kubelet's own ways to take CPUs and with all sets of NUMA nodes, one by one. What it
// comes to is put into the managers' books, so that what follows is answered by them.

type resizeRow string

const (
	rowStays       resizeRow = "the same: nothing that the managers give changes"
	rowGrows       resizeRow = "more CPUs, beside those that it has"
	rowShrinks     resizeRow = "fewer CPUs, of those that it has"
	rowToPool      resizeRow = "no whole CPUs any more: into the shared pool"
	rowFromPool    resizeRow = "whole CPUs for the first time: out of the shared pool"
	rowMemory      resizeRow = "another amount of memory, on the same NUMA nodes"
	rowNoCPUs      resizeRow = "refused: not so many CPUs are free"
	rowNotAligned  resizeRow = "refused: the policy would not have let such CPUs in"
	rowHalfCores   resizeRow = "refused: no whole cores"
	rowNoMemory    resizeRow = "refused: not so much memory is free where it is"
	rowPoolIsEmpty resizeRow = "refused: the shared pool would be empty"
)

var rowsOfTable = []resizeRow{rowStays, rowGrows, rowShrinks, rowToPool, rowFromPool, rowMemory, rowNoCPUs,
	rowNotAligned, rowHalfCores, rowNoMemory, rowPoolIsEmpty}

// change is one container of a pod that is to have other resources.
type change struct {
	*resizing
	pod *v1.Pod // as it is to be
	c   *v1.Container
}

func (c *change) uid() string { return string(c.pod.UID) }

func (c *change) decide() ([]resizeRow, *lifecycle.PodAdmitResult) {
	present, _ := c.cpuState.GetCPUSet(c.uid(), c.c.Name)
	next, which, refused := c.cpusFor(present)
	if refused != nil {
		return []resizeRow{which}, refused
	}
	blocks, more, refused := c.memoryFor()
	if refused != nil {
		return []resizeRow{rowNoMemory}, refused
	}
	var rows []resizeRow
	if which != rowStays {
		rows = append(rows, which)
		c.put(present, next)
	}
	if more {
		rows = append(rows, rowMemory)
		c.putMemory(blocks)
	}
	if rows == nil {
		rows = []resizeRow{rowStays}
	}
	return rows, nil
}

func refuse(reason, message string) *lifecycle.PodAdmitResult {
	return &lifecycle.PodAdmitResult{Reason: reason, Message: message}
}

func resizeFailed(why string) *lifecycle.PodAdmitResult {
	return refuse("UnexpectedAdmissionError", "Resize failed due to "+why)
}

// CPUs

func (c *change) wanted() int {
	cpus := c.c.Resources.Requests[v1.ResourceCPU]
	if v1qos.GetPodQOS(c.pod) != v1.PodQOSGuaranteed || cpus.Value()*1000 != cpus.MilliValue() {
		return 0
	}
	return int(cpus.Value())
}

func (c *change) cpusFor(present cpuset.CPUSet) (cpuset.CPUSet, resizeRow, *lifecycle.PodAdmitResult) {
	want := c.wanted()
	switch {
	case want == present.Size():
		return present, rowStays, nil
	case want == 0:
		return cpuset.New(), rowToPool, nil
	case want < present.Size():
		nodes := c.nearMemory(present, c.narrowest(present, nil, want), want)
		next, refused := c.take(present.Intersection(c.cpusOf(nodes)), want)
		return next, rowShrinks, refused
	}
	next, which, refused := c.grow(present, want)
	if refused == nil && present.IsEmpty() {
		which = rowFromPool
	}
	return next, which, refused
}

func (c *change) grow(present cpuset.CPUSet, want int) (cpuset.CPUSet, resizeRow, *lifecycle.PodAdmitResult) {
	free := c.cpuState.GetDefaultCPUSet().Difference(c.reserved())
	more := want - present.Size()
	if c.cpuOptions["full-pcpus-only"] {
		if err := c.wholeCores(free, more); err != nil {
			return present, rowHalfCores, refuse(cpumanager.ErrorSMTAlignment, err.Error())
		}
		taken := c.cpuTopology.CPUDetails.CPUs().Difference(free)
		free = free.Difference(c.coresOf(taken))
	}
	around := c.around(present)
	nodes := c.narrowest(free.Union(present), around, want)
	if nodes == nil {
		return present, rowNoCPUs, resizeFailed("not enough cpus available to satisfy request")
	}
	near := free.Intersection(c.cpusOf(around))
	first, refused := c.take(near, min(more, near.Size()))
	if refused != nil {
		return present, rowNoCPUs, refused
	}
	rest := free.Intersection(c.cpusOf(nodes)).Difference(c.cpusOf(around))
	second, refused := c.take(rest, more-first.Size())
	if refused != nil {
		return present, rowNoCPUs, refused
	}
	next := present.Union(first).Union(second)
	if !c.letsIn(next) {
		return present, rowNotAligned, refuse("TopologyAffinityError", "Resources cannot be allocated with Topology locality")
	}
	if c.cpuState.GetDefaultCPUSet().Difference(next).IsEmpty() {
		return present, rowPoolIsEmpty, refuse("UnexpectedAdmissionError", "the shared pool would be left with 0 CPUs, sharedPoolMinimum is 1")
	}
	return next, rowGrows, nil
}

// around are the NUMA nodes that the container is on: of its CPUs, else of its memory.
func (c *change) around(present cpuset.CPUSet) []int {
	if !present.IsEmpty() {
		return c.cpuTopology.CPUDetails.KeepOnly(present).NUMANodes().List()
	}
	return c.memoryNodes().Intersection(c.cpuTopology.CPUDetails.NUMANodes()).List()
}

func (c *change) memoryNodes() cpuset.CPUSet {
	on := cpuset.New()
	for _, b := range memoryOf(c.memory, c.pod, c.c) {
		on = on.Union(cpuset.New(b.NUMAAffinity...))
	}
	return on
}

// nearMemory are as many NUMA nodes, of those of its memory alone where these have CPUs enough, else
// all of these with others: what it keeps lies beside its memory where that is not wider.
func (c *change) nearMemory(present cpuset.CPUSet, nodes []int, want int) []int {
	memory := c.memoryNodes()
	if memory.IsEmpty() {
		return nodes
	}
	on := c.cpuTopology.CPUDetails.KeepOnly(present).NUMANodes().Intersection(memory).List()
	beside := present.Intersection(c.cpusOf(on))
	other := c.narrowest(present, on, want)
	if beside.Size() >= want {
		other = c.narrowest(beside, nil, want)
	}
	if len(other) == len(nodes) {
		return other
	}
	return nodes
}

func (c *change) cpusOf(nodes []int) cpuset.CPUSet {
	return c.cpuTopology.CPUDetails.CPUsInNUMANodes(nodes...)
}

func (c *change) coresOf(cpus cpuset.CPUSet) cpuset.CPUSet {
	details := c.cpuTopology.CPUDetails
	return details.CPUsInCores(details.KeepOnly(cpus).Cores().List()...)
}

// wholeCores is what full-pcpus-only asks of the CPUs that are added (enforceSMTAlignment).
func (c *change) wholeCores(free cpuset.CPUSet, more int) error {
	group := c.cpuTopology.CPUsPerCore()
	physical := free.Difference(c.coresOf(c.reserved())).Size()
	switch {
	case more%group != 0:
		return cpumanager.SMTAlignmentError{RequestedCPUs: more, CpusPerCore: group}
	case more > physical:
		return cpumanager.SMTAlignmentError{RequestedCPUs: more, CpusPerCore: group,
			AvailablePhysicalCPUs: physical, CausedByPhysicalCPUs: true}
	}
	return nil
}

// narrowest set of NUMA nodes, those of with among them, that has so many of the CPUs; of several
// the closest, then the lowest.
func (c *change) narrowest(cpus cpuset.CPUSet, with []int, want int) (best []int) {
	least := math.MaxInt
	c.eachSet(func(mask bitmask.BitMask) {
		nodes := mask.GetBits()
		if !cpuset.New(with...).IsSubsetOf(cpuset.New(nodes...)) ||
			cpus.Intersection(c.cpusOf(nodes)).Size() < want || best != nil && len(nodes) > len(best) {
			return
		}
		distance := c.distance(nodes)
		if best == nil || len(nodes) < len(best) || distance < least {
			best, least = nodes, distance
		}
	})
	return best
}

// eachSet of NUMA nodes with CPUs, in the order of their numbers.
func (c *change) eachSet(see func(bitmask.BitMask)) {
	nodes := c.cpuTopology.CPUDetails.NUMANodes().List()
	for number := 1; number < 1<<len(nodes); number++ {
		mask, _ := bitmask.NewBitMask()
		for i, node := range nodes {
			if number&(1<<i) != 0 {
				must(mask.Add(node))
			}
		}
		see(mask)
	}
}

func (c *change) distance(nodes []int) (sum int) {
	var ids []int
	for _, node := range c.q.Machine.Nodes {
		ids = append(ids, node.ID)
	}
	for _, a := range nodes {
		for j, id := range ids {
			for _, b := range nodes {
				if id == b {
					sum += int(c.q.Machine.Distances[strconv.Itoa(a)][j])
				}
			}
		}
	}
	return sum
}

// take is the policy's own takeByTopology.
func (c *change) take(from cpuset.CPUSet, count int) (cpuset.CPUSet, *lifecycle.PodAdmitResult) {
	if count == 0 {
		return cpuset.New(), nil
	}
	strategy := cpumanager.CPUSortingStrategyPacked
	if c.cpuOptions["distribute-cpus-across-cores"] {
		strategy = cpumanager.CPUSortingStrategySpread
	}
	group := 1
	if c.cpuOptions["full-pcpus-only"] {
		group = c.cpuTopology.CPUsPerCore()
	}
	var got cpuset.CPUSet
	var err error
	if c.cpuOptions["distribute-cpus-across-numa"] {
		got, err = takeDistributed(c.cpuTopology, from, count, group, strategy, c.cpuOptions["align-by-socket"])
	} else {
		got, err = takePacked(klog.Background(), c.cpuTopology, from, count, strategy, c.cpuOptions["prefer-align-cpus-by-uncorecache"])
	}
	if err != nil {
		return got, resizeFailed(err.Error())
	}
	c.notice(got.IsSubsetOf(from), "")
	c.fewer = c.fewer || got.Size() < count
	return got, nil
}

// letsIn: the policy would have admitted a container on the NUMA nodes of these CPUs.
func (c *change) letsIn(cpus cpuset.CPUSet) bool {
	on := c.cpuTopology.CPUDetails.KeepOnly(cpus).NUMANodes()
	switch c.q.Settings.TopologyManagerPolicy {
	case "single-numa-node":
		return on.Size() == 1
	case "restricted":
		return c.prefers(on, cpus.Size())
	}
	return true
}

// prefers: of a machine of which all is free the CPU manager prefers these nodes for so many CPUs.
func (c *change) prefers(on cpuset.CPUSet, want int) (preferred bool) {
	mask, err := bitmask.NewBitMask(on.List()...)
	must(err)
	all := c.cpuTopology.CPUDetails.CPUs()
	for _, h := range generateHints(reflect.ValueOf(c.cpuPolicy()).UnsafePointer(), all, cpuset.New(), want) {
		preferred = preferred || h.Preferred && h.NUMANodeAffinity.IsEqual(mask)
	}
	return preferred
}

func (c *change) put(before, next cpuset.CPUSet) {
	c.cpuState.SetDefaultCPUSet(c.cpuState.GetDefaultCPUSet().Union(before).Difference(next))
	if next.IsEmpty() {
		c.cpuState.Delete(c.uid(), c.c.Name)
	} else {
		c.cpuState.SetCPUSet(c.uid(), c.c.Name, next)
	}
}

// Memory

func (c *change) memoryFor() (next []memory.Block, changes bool, refused *lifecycle.PodAdmitResult) {
	machine := c.memory.State().GetMachineState()
	for _, b := range c.memory.State().GetMemoryBlocks(c.uid(), c.c.Name) {
		amount := c.c.Resources.Requests[b.Type]
		size := uint64(amount.Value())
		left := uint64(0)
		for _, node := range b.NUMAAffinity {
			left += machine[node].MemoryMap[b.Type].Free
		}
		if size > b.Size && size-b.Size > left {
			return nil, false, resizeFailed(strconv.FormatUint(size-b.Size, 10) +
				" bytes more where the container's NUMA nodes have " + strconv.FormatUint(left, 10) + " free")
		}
		changes = changes || size != b.Size
		b.Size = size
		next = append(next, b)
	}
	return next, changes, nil
}

// putMemory gives back what the container has and books it anew on the same nodes.
func (c *change) putMemory(next []memory.Block) {
	s := (*field[memory.State](c.memory, "state"))
	(*field[memorymanager.Policy](c.memory, "policy")).RemoveContainer(klog.Background(), s, c.uid(), c.c.Name)
	machine := s.GetMachineState()
	for _, b := range next {
		left := b.Size
		for _, node := range b.NUMAAffinity {
			machine[node].NumberOfAssignments++
			machine[node].Cells = b.NUMAAffinity
			on := machine[node].MemoryMap[b.Type]
			part := min(left, on.Free)
			on.Free -= part
			on.Reserved += part
			left -= part
		}
	}
	s.SetMachineState(machine)
	s.SetMemoryBlocks(c.uid(), c.c.Name, next)
}
