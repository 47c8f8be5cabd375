package main

import (
	"fmt"
	"slices"
	"strconv"
)

const podLevelFormName = "podlevel"

// randomPodLevel is a node whose pods mostly have resources of their own, shared out by its managers.
func randomPodLevel(r *random) *nodeQuestion {
	q := randomNode(r)
	q.Settings.TopologyManagerScope = pick(r, "pod", "pod", "container")
	for _, gate := range []string{"PodLevelResources", "PodLevelResourceManagers"} {
		q.Settings.FeatureGates[gate] = "true"
	}
	for i := range q.Steps {
		if p := q.Steps[i].Pod; p != nil {
			p.Spec.Resources = nil
			if r.chance(75) {
				p.ownResources(r)
			}
		}
	}
	return q
}

// ownResources are those of all containers at once, or more, so that some of them may name none: as
// the API server lets them in.
func (p *pod) ownResources(r *random) {
	for _, all := range [][]podContainer{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range all {
			all[i].Resources = lessNamed(r, all[i].Resources)
		}
	}
	total := map[string]uint64{}
	for _, name := range []string{"cpu", "memory", "hugepages-2Mi", "hugepages-1Gi"} {
		sum, most := uint64(0), uint64(0)
		for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
			amount := amountOf(name, c.Resources.Requests)
			if c.RestartPolicy == "" && slices.ContainsFunc(p.Spec.InitContainers,
				func(i podContainer) bool { return i.Name == c.Name }) {
				most = max(most, sum+amount)
			} else {
				sum += amount
			}
		}
		total[name] = max(sum, most)
	}
	const milli = 1000
	cpus := (total["cpu"]+milli-1)/milli + uint64(pick(r, 0, 0, 1, 1, 2, 4))
	text := map[string]string{"cpu": strconv.FormatUint(max(1, cpus), 10),
		"memory": strconv.FormatUint(max(mebi, total["memory"]+uint64(pick(r, 0, 1, 1, 128))*mebi), 10)}
	if r.chance(8) {
		text["cpu"] = fmt.Sprintf("%dm", max(1, cpus)*milli+uint64(r.between(1, milli-1)))
	}
	for _, name := range []string{"hugepages-2Mi", "hugepages-1Gi"} {
		if total[name] > 0 {
			text[name] = strconv.FormatUint(total[name]+uint64(r.between(0, 1))*pageBytes[name], 10)
		}
	}
	if r.chance(6) {
		delete(text, pick(r, "cpu", "memory"))
	}
	p.Spec.Resources = &amounts{text, text}
	if r.chance(4) {
		p.Spec.Resources = &amounts{}
	}
}

// amountOf in thousandths of a CPU, or in bytes.
func amountOf(name string, of map[string]string) uint64 {
	if of[name] == "" {
		return 0
	}
	q := bytesOf(of[name])
	if name == "cpu" {
		return uint64(q.MilliValue())
	}
	return uint64(q.Value())
}

// lessNamed: all, nothing but devices, or without CPUs or memory.
func lessNamed(r *random, from amounts) amounts {
	drop := pick(r, nil, nil, nil, []string{"cpu", "memory", "hugepages-2Mi", "hugepages-1Gi"},
		[]string{"cpu", "memory", "hugepages-2Mi", "hugepages-1Gi"}, []string{"cpu"}, []string{"memory", "hugepages-2Mi", "hugepages-1Gi"})
	without := func(all map[string]string) map[string]string {
		left := map[string]string{}
		for name, amount := range all {
			if !slices.Contains(drop, name) {
				left[name] = amount
			}
		}
		return left
	}
	return amounts{without(from.Requests), without(from.Limits)}
}
