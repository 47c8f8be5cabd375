package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"numafit/test/interop/scheduler/upstream"
)

// sides are those who are asked: numafit, and each program of upstream's.
type sides struct {
	numafit peer
	program map[string]*peer
}

func newSides(o options) *sides {
	return &sides{peer{argv: o.numafit}, map[string]*peer{
		inPlugins: {argv: []string{o.plugins}}, inKube: {argv: []string{o.kube}}}}
}

func (s *sides) stop() {
	s.numafit.stop()
	for _, p := range s.program {
		p.stop()
	}
}

func (s *sides) askNumafit(q question) (a upstream.Answer, err error) {
	var line struct {
		Result *upstream.Answer
		Error  string
	}
	if err = s.numafit.ask(q, &line); err != nil {
		return a, err
	}
	if line.Result == nil {
		return a, fmt.Errorf("numafit cannot read the question: %s", line.Error)
	}
	return *line.Result, nil
}

// compareOnly leaves of numafit's answer what upstream's tells: raw scores, and the zones of the
// filter. A container that asks for nothing that zones have gets zone 0 there, and none here.
func compareOnly(theirs, ours upstream.Answer) upstream.Answer {
	ours.Nodes = slices.Clone(ours.Nodes)
	for i := range ours.Nodes {
		o, zones := &ours.Nodes[i], map[string][]int{}
		if i >= len(theirs.Nodes) {
			break
		}
		t := theirs.Nodes[i]
		for name := range t.Zones {
			if zones[name] = o.Zones[name]; len(zones[name]) == 0 {
				zones[name] = []int{0}
			}
		}
		if o.Zones = zones; t.Raw == nil {
			o.Raw = nil
		}
	}
	return ours
}

func (s *sides) askUpstream(q asked, whole bool) (a upstream.Answer, err error) {
	err = s.program[q.program].ask(struct {
		Plugin     string      `json:"plugin"`
		Args       any         `json:"args"`
		Nodes      []candidate `json:"nodes"`
		Pod        pod         `json:"pod"`
		Whole      bool        `json:"whole"`
		Unfiltered bool        `json:"unfiltered"`
	}{q.reference.plugin, q.reference.args, q.Nodes, q.Pod, whole, q.Plugin == generic}, &a)
	for i := range a.Nodes {
		if q.strategy == leastNUMANodes { // numafit tells the zones of the score
			a.Nodes[i].Zones = nil
		}
		if q.Plugin == generic { // has no raw scores, and no pod that is not scored
			a.Nodes[i].Raw, a.PreScore = nil, ""
		}
	}
	return a, err
}

// difference of two answers about one node, or about the arguments.
type difference struct {
	at                 int // the node, or -1
	what, theirs, ours string
}

func (d difference) String() string {
	return fmt.Sprintf("%s: upstream %s, numafit %s", d.what, d.theirs, d.ours)
}

func text(v any) string {
	t, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(t)
}

// differences, at most one for each node.
func differences(q asked, theirs, ours upstream.Answer) (all []difference) {
	if theirs.Error != "" || ours.Error != "" {
		if faults(theirs.Error) != faults(ours.Error) {
			all = append(all, difference{-1, "error", text(theirs.Error), text(ours.Error)})
		}
		return all
	}
	if theirs.PreScore != ours.PreScore || len(theirs.Nodes) != len(ours.Nodes) {
		return []difference{{-1, "answer", text(theirs), text(ours)}}
	}
	for i, t := range theirs.Nodes {
		o := ours.Nodes[i]
		if text(t) != text(o) {
			all = append(all, difference{i, "nodes[" + fmt.Sprint(i) + "]", text(t), text(o)})
		}
	}
	return all
}

var fault = regexp.MustCompile(
	`[\w.\[\]]+: ((Invalid|Unsupported|Required|Duplicate) value|Forbidden)`)

// faults are what an error says of places, its wording is not; of the decoder's it is all.
func faults(err string) string {
	if found := fault.FindAllString(err, -1); found != nil {
		return strings.Join(found, ", ")
	}
	return err
}
