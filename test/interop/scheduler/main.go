// Program scheduler-diff asks real scheduler plugins and numafit the same random questions about
// nodes and a pod, and compares the answers. test/README.md says how.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"numafit/test/interop/scheduler/upstream"
)

type options struct {
	seed          uint64
	only          string
	first, count  int
	emit          int
	replay        string
	plugins, kube string
	numafit       []string
	workers       int
}

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 1, "the cases are a function of it; 0: any")
	flag.StringVar(&o.only, "form", "", "only this form: "+formNames())
	flag.IntVar(&o.first, "case", 0, "begin with this case")
	flag.IntVar(&o.count, "count", 0, "so many cases of each form")
	flag.IntVar(&o.emit, "emit", 0, "write so many lines with upstream's answers instead")
	flag.StringVar(&o.replay, "replay", "", "ask upstream what this file of JSON lines expects")
	flag.StringVar(&o.plugins, "plugins", "", "the program that asks scheduler-plugins")
	flag.StringVar(&o.kube, "kube", "", "the program that asks kube-scheduler's plugins")
	flag.IntVar(&o.workers, "workers", 2, "run so many sets of processes")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: scheduler-diff [options] NUMAFIT score -")
		flag.PrintDefaults()
	}
	flag.Parse()
	o.numafit = flag.Args()
	if o.seed == 0 {
		o.seed = rand.Uint64()
	}
	if len(o.numafit) == 0 || o.plugins == "" || o.kube == "" {
		flag.Usage()
		os.Exit(2)
	}
	if o.emit > 0 {
		must(emit(o))
		return
	}
	if o.replay != "" {
		os.Exit(replay(o))
	}
	os.Exit(runAll(o))
}

func formNames() string {
	var names []string
	for _, f := range forms {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "scheduler-diff:", err)
		os.Exit(1)
	}
}

func chosen(o options) (list []*form) {
	for _, f := range forms {
		if o.only == "" || o.only == f.name {
			list = append(list, f)
		}
	}
	return list
}

// pairsMin of a node and a pod a whole run must have compared to be worth its name.
const pairsMin = 20000

func runAll(o options) (exit int) {
	var sum totals
	for _, f := range chosen(o) {
		count := f.count
		if o.count > 0 {
			count = o.count
		}
		t := run(o, f, count)
		t.print(o, f)
		sum.passed += t.passed
		sum.failed += t.failed
		sum.pairs += t.pairs
	}
	if o.only == "" && o.count == 0 && sum.pairs < pairsMin {
		fmt.Printf("too few to prove anything: %d pairs of a node and a pod, wanted %d\n", sum.pairs, pairsMin)
		sum.failed++
	}
	fmt.Printf("%d passed, %d failed, 0 skipped\n", sum.passed, sum.failed)
	if sum.failed > 0 || sum.passed == 0 {
		return 1
	}
	return 0
}

// emit writes questions with upstream's answers, as `numafit score --check` takes them, but for
// those that upstream's bugs touch: as test data that can be checked without Go.
func emit(o options) error {
	s := newSides(o)
	defer s.stop()
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	list := chosen(o)
	for number, written := o.first, 0; written < o.emit; number++ {
		f := list[number%len(list)]
		q := f.ask(o.seed, number/len(list))
		q.Compat = q.Plugin == match
		expected, err := s.askUpstream(q, true)
		if err != nil {
			return err
		}
		if s.buggy(q, expected) {
			continue
		}
		line := text(q.question)
		fmt.Fprintf(out, "%s,\"expected\":%s}\n", line[:len(line)-1], text(withoutZones(expected)))
		written++
	}
	return nil
}

// buggy answers show a bug of upstream's, or may, whatever numafit says.
func (s *sides) buggy(q asked, a upstream.Answer) bool {
	for i, n := range a.Nodes {
		outside := n.Score != nil && q.Plugin == match && (*n.Score < 0 || *n.Score > 100)
		if outside || n.Panics != "" || hasTwice(zoneIDs(q.Nodes[i].Topology)) {
			return true
		}
	}
	isHuge := func(weight float64) bool { return weight > 1<<20 }
	return q.Plugin == fit && q.Pod.Spec.Resources != nil ||
		q.Plugin == allocatable && slices.ContainsFunc(weightsOf(q.reference.args), isHuge)
}
