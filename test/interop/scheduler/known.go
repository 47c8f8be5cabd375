package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"numafit/test/interop/scheduler/upstream"
)

// Upstream's bugs that numafit does not repeat, each told by a predicate: a difference that none of
// them explains fails the run.
const (
	bugGap   = "NodeResourceTopologyMatch: zone ids with a gap: a list is indexed by NUMA id (panic)"
	bugTwice = "NodeResourceTopologyMatch: of zones with one NUMA id each may give another resource"
	bugID64  = "NodeResourceTopologyMatch: NUMA id 64 is let in, there is room for 64 (panic)"
	bugZero  = "NodeResourceTopologyMatch: a Guaranteed container that asks for nothing is divided by " +
		"its weights, which are none (panic)"
	bugNaN = "NodeResourceTopologyMatch: BalancedAllocation of fewer than two resources is not a " +
		"number, and becomes the smallest int64"
	bugDecimals = "NodeResourceTopologyMatch: amounts that Kubernetes keeps as decimals are changed " +
		"in place by LeastNUMANodes and the sums"
	bugDistance = "LeastNUMANodes: the distance counts on nodes that do not prefer the closest NUMA nodes"
	bugPlace    = "LeastNUMANodes: containers take from the zone whose place in the list is the NUMA id"
	bugOwn      = "NodeResourcesFit scores a pod without its spec.resources, with which it filters"
	bugRange    = "NodeResourcesAllocatable: amounts times weights, or 100 times the range of scores, are " +
		"beyond int64"
)

// explain names the bug behind a difference, "" when there is none.
func (s *sides) explain(q asked, theirs, ours upstream.Answer, d difference) (string, error) {
	if d.at < 0 {
		return "", nil
	}
	t, o := theirs.Nodes[d.at], ours.Nodes[d.at]
	if bug := knownPanic(q, d.at, t, o); bug != "" {
		return bug, nil
	}
	switch q.reference.plugin {
	case match:
		return s.explainMatch(q, d.at, t, o)
	case fit:
		if q.Pod.Spec.Resources != nil && q.Plugin == fit && onlyScore(t, o) {
			return bugOwn, nil
		}
	case allocatable:
		if t.Raw != nil && beyond(q, ours) {
			return bugRange, nil
		}
	}
	return "", nil
}

// onlyScore: nothing else is different.
func onlyScore(t, o upstream.Node) bool {
	t.Score = o.Score
	return text(t) == text(o)
}

// beyond int64, which numafit's raw scores never are.
func beyond(q asked, a upstream.Answer) bool {
	low, high, weight := math.Inf(1), math.Inf(-1), float64(0)
	for _, n := range a.Nodes {
		low, high = min(low, float64(*n.Raw)), max(high, float64(*n.Raw))
	}
	for _, w := range weightsOf(q.reference.args) {
		weight += w
	}
	const nearly = 0.999 * math.MaxInt64
	return (high-low)*100 > nearly || max(high, -low)*weight > nearly
}

func weightsOf(args any) (weights []float64) {
	o, _ := args.(object)
	specs, _ := o["resources"].(list)
	for _, spec := range specs {
		s, _ := spec.(object)
		if w, ok := s["weight"].(int64); ok {
			weights = append(weights, float64(w))
		}
	}
	return weights
}

func knownPanic(q asked, at int, t, o upstream.Node) string {
	outside := strings.Contains(t.Panics, "index out of range")
	ids := zoneIDs(q.Nodes[at].Topology)
	switch {
	case t.Panics == "" || o.Code == "":
		return ""
	case outside && slices.Contains(ids, 64):
		return bugID64
	case outside && slices.ContainsFunc(ids, func(id int) bool { return id >= len(ids) }):
		return bugGap
	case strings.Contains(t.Panics, "divide by zero") && slices.Contains(asksOf(q.Pod), 0):
		return bugZero
	}
	return ""
}

func (s *sides) explainMatch(q asked, at int, t, o upstream.Node) (string, error) {
	whole, err := s.askUpstream(q, true)
	if err != nil {
		return "", err
	}
	if w := whole.Nodes[at]; text(w) != text(t) {
		if text(w) == text(o) || knownPanic(q, at, w, o) != "" {
			return bugDecimals, nil
		}
		t = w
	}
	const noScore = math.MinInt64 / 1000 // the mean over containers is of that size, too
	if t.Score != nil && *t.Score < noScore && onlyScore(t, o) && slices.Min(asksOf(q.Pod)) < 2 {
		return bugNaN, nil
	}
	topology := q.Nodes[at].Topology
	if hasTwice(zoneIDs(topology)) {
		return bugTwice, nil
	}
	if q.Compat {
		return "", nil
	}
	compat := q.question
	compat.Compat = true
	again, err := s.askNumafit(compat)
	if err != nil {
		return "", err
	}
	only := compareOnly(upstream.Answer{Nodes: slices.Repeat([]upstream.Node{t}, len(again.Nodes))}, again)
	if text(only.Nodes[at]) != text(t) {
		return "", nil
	}
	switch ids := zoneIDs(topology); {
	case !prefersClosest(topology):
		return bugDistance, nil
	case !slices.IsSorted(ids):
		return bugPlace, nil
	}
	return "", nil
}

// zoneIDs as the plugin reads them, in order.
func zoneIDs(t *topology) (ids []int) {
	if t == nil {
		return nil
	}
	for _, z := range t.Zones {
		number, named := strings.CutPrefix(z.Name, "node-")
		id, err := strconv.Atoi(number)
		if z.Type == zoneType && named && err == nil && id >= 0 && id <= 64 {
			ids = append(ids, id)
		}
	}
	return ids
}

func hasTwice(ids []int) bool {
	sorted := slices.Sorted(slices.Values(ids))
	return len(slices.Compact(sorted)) < len(ids)
}

// asksOf are the numbers of resources that the containers, and the pod as a whole, ask for.
func asksOf(p pod) (counts []int) {
	all := amounts{}
	for name := range p.Spec.Overhead {
		all[name] = nil
	}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		if c.Resources == nil {
			counts = append(counts, 0)
			continue
		}
		counts = append(counts, len(c.Resources.Requests))
		for name := range c.Resources.Requests {
			all[name] = nil
		}
	}
	return append(counts, len(all))
}

func prefersClosest(t *topology) bool {
	for _, a := range slices.Backward(t.Attributes) {
		if a.Name == attributeClosest {
			return a.Value == "true"
		}
	}
	return false
}

func (d difference) of(q asked) string {
	if d.at < 0 {
		return fmt.Sprint(d, "\n  args ", text(q.Args), "\n  asked ", text(q.reference.args))
	}
	one := q.question
	one.Nodes = one.Nodes[d.at : d.at+1]
	return fmt.Sprint(d, "\n  ", text(one), "\n  asked ", q.reference.plugin, " ", text(q.reference.args))
}
