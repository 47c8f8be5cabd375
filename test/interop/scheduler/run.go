package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"numafit/test/interop/scheduler/upstream"
)

// totals count questions that passed and failed, and pairs of a node and a pod.
type totals struct {
	passed, failed, pairs int
	known                 map[string]int            // upstream's bug -> nodes that differ
	classes               map[string]map[string]int // axis -> class -> nodes
	worst                 int                       // the first case that differs
	first                 string                    // and how
}

func (t *totals) count(axis, class string) {
	if t.classes[axis] == nil {
		t.classes[axis] = map[string]int{}
	}
	t.classes[axis][class]++
}

func (f *form) ask(seed uint64, number int) asked {
	q := f.generate(caseRandom(seed, f, number))
	q.Name = fmt.Sprintf("%s-%d-%d", f.name, seed, number)
	return q
}

// result of one question: what is different, and upstream's bugs that it takes to explain it.
type result struct {
	theirs upstream.Answer
	fresh  []difference
	known  []string
}

func (s *sides) compare(q asked) (r result, err error) {
	if r.theirs, err = s.askUpstream(q, false); err != nil {
		return r, err
	}
	ours, err := s.askNumafit(q.question)
	if err != nil {
		return r, err
	}
	ours = compareOnly(r.theirs, ours)
	for _, d := range differences(q, r.theirs, ours) {
		bug, err := s.explain(q, r.theirs, ours, d)
		if err != nil {
			return r, err
		}
		if bug == "" {
			r.fresh = append(r.fresh, d)
		} else {
			r.known = append(r.known, bug)
		}
	}
	return r, nil
}

// run asks count questions of one form, several at a time. The first difference is the one of the
// lowest number, whoever finds it.
func run(o options, f *form, count int) totals {
	var (
		lock sync.Mutex
		wait sync.WaitGroup
		next atomic.Int64
		t    = totals{known: map[string]int{}, classes: map[string]map[string]int{}, worst: o.first + count}
	)
	for range max(1, o.workers) {
		wait.Add(1)
		go func() {
			defer wait.Done()
			s := newSides(o)
			defer s.stop()
			for {
				number := o.first + int(next.Add(1)) - 1
				if number >= o.first+count {
					return
				}
				q := f.ask(o.seed, number)
				r, err := s.compare(q)
				lock.Lock()
				t.add(q, number, r, err)
				lock.Unlock()
			}
		}()
	}
	wait.Wait()
	return t
}

func (t *totals) add(q asked, number int, r result, err error) {
	why := ""
	switch {
	case err != nil:
		why = err.Error()
	case len(r.fresh) > 0:
		why = r.fresh[0].of(q)
	}
	if why == "" {
		t.passed++
	} else {
		t.failed++
		if number < t.worst {
			t.worst, t.first = number, q.Name+": "+why
		}
	}
	for _, bug := range r.known {
		t.known[bug]++
	}
	t.describe(q, r.theirs)
}

func (t *totals) describe(q asked, a upstream.Answer) {
	if a.Error != "" {
		t.count("arguments", "refused")
		return
	}
	t.count("arguments", "taken")
	t.pairs += len(a.Nodes)
	for _, n := range a.Nodes {
		switch {
		case n.Panics != "":
			t.count("code", "panics")
		default:
			t.count("code", n.Code)
		}
		if q.Plugin == match && len(n.Why) > 0 {
			t.count("why", n.Why[0])
		}
		if n.Score != nil {
			t.count("score", scoreClass(*n.Score))
		}
	}
}

func scoreClass(score int64) string {
	switch {
	case score < 0:
		return "below 0"
	case score == 0, score == 100:
		return fmt.Sprint(score)
	case score > 100:
		return "above 100"
	}
	return "between"
}

func (t *totals) print(o options, f *form) {
	fmt.Printf("== %s, seed %d: %d passed, %d failed; %d pairs of a node and a pod\n", f.name, o.seed,
		t.passed, t.failed, t.pairs)
	for _, axis := range slices.Sorted(maps.Keys(t.classes)) {
		var classes []string
		for _, class := range slices.Sorted(maps.Keys(t.classes[axis])) {
			classes = append(classes, fmt.Sprintf("%s: %d", class, t.classes[axis][class]))
		}
		fmt.Printf("  %-10s  %s\n", axis, strings.Join(classes, "  "))
	}
	for _, bug := range slices.Sorted(maps.Keys(t.known)) {
		fmt.Printf("  known bug of upstream's, %d differences: %s\n", t.known[bug], bug)
	}
	if t.first != "" {
		fmt.Println("first difference:", t.first)
	}
}
