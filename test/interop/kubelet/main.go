// Program kubelet-diff asks the kubelet's own code and numafit the same random questions and
// compares the answers. test/README.md says how.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"
)

var forms = append([]*form{mergeForm, cpuForm, memoryForm, nodeForm}, newForms...)

// What a run must have seen to be worth its name: merges that found nothing preferred, pods that
// were refused, and what is in the families, in percent of all merges.
const (
	nonPreferredFloor = 30
	refusedFloor      = 10
	mergesWithFloor   = 5
)

var mergesWith = []string{"any", "none", "sockets", "required nodes", "extra masks", "covers",
	"memory groups", "devices on several nodes", "reusable CPUs", "reusable memory", "reusable devices"}

// One CPU assignment takes milliseconds, and some of them do hang.
const cpuPatience = time.Second

type options struct {
	seed    uint64
	only    string
	first   int
	emit    int
	bytes   int
	replay  string
	numafit []string
	whole   bool
	workers int
}

func main() {
	setUp()
	cpuForm.patience = cpuPatience
	if len(os.Args) == 2 && os.Args[1] == answerVerb {
		serve(os.Stdin, os.Stdout)
		return
	}
	if len(os.Args) > 2 && os.Args[1] == benchVerb {
		bench(os.Args[2], os.Args[3:], os.Stdout)
		return
	}
	var o options
	counts := map[*form]*int{
		mergeForm:  flag.Int("merges", 200000, "merges of families of hints"),
		cpuForm:    flag.Int("cpus", 50000, "CPU assignments"),
		memoryForm: flag.Int("memories", 5000, "sequences of memory allocations"),
		nodeForm:   flag.Int("sequences", 5000, "sequences of whole admissions"),
	}
	for _, f := range newForms {
		counts[f] = flag.Int(f.name, f.usualCount(), f.purpose)
	}
	flag.Uint64Var(&o.seed, "seed", 1, "the cases are a function of it; 0: any")
	flag.StringVar(&o.only, "form", "", "only this form: "+strings.Join(formNames(), ", "))
	flag.IntVar(&o.first, "case", 0, "begin with this case")
	flag.IntVar(&o.emit, "emit", 0, "write so many cases of -form with upstream's answers")
	flag.IntVar(&o.bytes, "bytes", 1000, "write only questions up to this size")
	flag.StringVar(&o.replay, "replay", "", "ask upstream what this file of JSON lines expects")
	flag.BoolVar(&o.whole, "whole", false, "print the first difference as it is, not made small")
	flag.IntVar(&o.workers, "workers", 2, "run so many pairs of processes")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: kubelet-diff [options] NUMAFIT decide -")
		flag.PrintDefaults()
	}
	flag.Parse()
	o.numafit = flag.Args()
	if o.seed == 0 {
		o.seed = rand.Uint64()
	}
	switch {
	case o.replay != "":
		os.Exit(exitCode(replay(o)))
	case o.emit > 0:
		must(emit(o))
	case len(o.numafit) == 0:
		flag.Usage()
		os.Exit(2)
	default:
		os.Exit(exitCode(runAll(o, counts)))
	}
}

func exitCode(t totals) int {
	fmt.Printf("%d passed, %d failed, 0 skipped\n", t.passed, t.failed)
	if t.failed > 0 || t.passed == 0 {
		return 1
	}
	return 0
}

func runAll(o options, counts map[*form]*int) (sum totals) {
	for _, f := range forms {
		if *counts[f] == 0 || o.only != "" && o.only != f.name {
			continue
		}
		t := run(o, f, *counts[f])
		t.print(o, f)
		if f == mergeForm {
			t.mustReach("result", "preferred false", nonPreferredFloor)
			t.mustReach("result", "admit false", refusedFloor)
			for _, what := range mergesWith {
				t.mustReach("with", what, mergesWithFloor)
			}
		}
		for _, c := range f.wanted {
			t.mustSee(c)
		}
		sum.passed += t.passed
		sum.failed += t.failed
	}
	return sum
}

const newFormCount = 20000

func (f *form) usualCount() int {
	if f.short > 0 && os.Getenv("ALL") == "" {
		return f.short
	}
	return newFormCount
}

func formNamed(name string) *form {
	for _, f := range forms {
		if f.name == name {
			return f
		}
	}
	fmt.Fprintf(os.Stderr, "kubelet-diff: %q is no form; there are %s\n", name, strings.Join(formNames(), ", "))
	os.Exit(2)
	return nil
}

func formNames() (names []string) {
	for _, f := range forms {
		names = append(names, f.name)
	}
	return names
}

// formOfQuestion tells it by its keys: nil when it is none of ours.
func formOfQuestion(line []byte) *form {
	question, err := decode(line)
	for _, f := range forms {
		if err == nil && member(question, f.key) != nil {
			return f
		}
	}
	return nil
}
