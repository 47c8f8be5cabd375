package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

type totals struct {
	passed, failed int
	known          map[string]int            // upstream's bug -> differences
	classes        map[string]map[string]int // axis -> class -> cases
	first          string                    // the first difference, as small as it gets
}

func newTotals() totals {
	return totals{known: map[string]int{}, classes: map[string]map[string]int{}}
}

func (t *totals) count(axis, class string) {
	if t.classes[axis] == nil {
		t.classes[axis] = map[string]int{}
	}
	t.classes[axis][class]++
}

// errUndecided: numafit does not know the form at all.
var errUndecided = errors.New("numafit does not decide this form")

// pair asks both sides the same question.
type pair struct {
	form              *form
	upstream, numafit peer
}

func newPair(o options, f *form) *pair {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return &pair{f, peer{argv: []string{self, answerVerb}}, peer{argv: o.numafit}}
}

func (p *pair) stop() {
	p.upstream.stop()
	p.numafit.stop()
}

func (p *pair) tellUpstream(question []byte) error {
	err := p.upstream.tell(fmt.Appendf(nil, `{"form":"%s","question":%s}`, p.form.name, question))
	if err != nil {
		p.upstream.stop()
	}
	return err
}

func (p *pair) askUpstream(question []byte) (value, error) {
	if err := p.tellUpstream(question); err != nil {
		return nil, err
	}
	return p.hearUpstream()
}

func (p *pair) hearUpstream() (value, error) {
	line, err := p.upstream.hear()
	if err != nil {
		return nil, err
	}
	v, err := decode(line)
	if member(v, "upstream_hangs") != nil {
		p.upstream.stop()
	}
	return v, err
}

func (p *pair) askNumafit(question []byte) (value, error) {
	line, err := p.numafit.ask(question)
	if err != nil {
		return nil, err
	}
	v, err := decode(line)
	if err != nil {
		return nil, err
	}
	why, refused := member(v, "error").(string)
	if strings.Contains(why, "not decided yet") {
		return nil, fmt.Errorf("%w: %s", errUndecided, why)
	}
	if refused {
		return map[string]any{"unreadable": why}, nil
	}
	return member(v, "result"), nil
}

type outcome struct {
	asked          []byte // the question
	upstream, ours value
	difference     string // "": none
	known          string // upstream's bug that explains the difference
}

func (p *pair) compare(question []byte) (o outcome, err error) {
	if p.form.settle != nil {
		if question, err = p.form.settle(question, p.askNumafit); err != nil {
			return o, err
		}
	}
	o.asked = question
	if err = p.tellUpstream(question); err != nil {
		return o, err
	}
	if o.ours, err = p.askNumafit(question); err != nil {
		p.upstream.stop() // it has an answer that nobody waits for
		return o, err
	}
	if o.upstream, err = p.hearUpstream(); err != nil {
		return o, err
	}
	theirs, mine := o.upstream, o.ours
	if p.form.comparable != nil {
		theirs, mine = p.form.comparable(question, theirs, mine)
	}
	if o.difference = difference("result", theirs, mine); o.difference != "" {
		o.known = p.form.known(question, o.upstream, o.ours)
	}
	return o, nil
}

// question is one as the form makes it, and as JSON.
func question(o options, f *form, number int) (made any, text []byte) {
	const unnamed = `{"name":"","kubernetesVersion":"",`
	made = f.generate(caseRandom(o.seed, f, number))
	text, ok := bytes.CutPrefix(encode(made), []byte(unnamed))
	if !ok {
		panic("the first keys of a question are its name and version")
	}
	return made, fmt.Appendf(nil, `{"name":"%s-%d-%d","kubernetesVersion":"%s",%s`, f.name, o.seed, number,
		kubernetesVersion, text)
}

// run asks count questions of one form, several at a time. The first difference is the one of the
// lowest number, whoever finds it.
func run(o options, f *form, count int) totals {
	var (
		lock  sync.Mutex
		wait  sync.WaitGroup
		next  atomic.Int64
		t     = newTotals()
		worst = count
	)
	for range max(1, o.workers) {
		wait.Go(func() {
			p := newPair(o, f)
			defer p.stop()
			for {
				number := o.first + int(next.Add(1)) - 1
				if number >= o.first+count {
					return
				}
				made, q := question(o, f, number)
				result, err := p.compare(q)
				lock.Lock()
				if err == nil {
					t.add(f, made, result)
				} else {
					t.failed++
				}
				earlier := number-o.first < worst
				if earlier && (err != nil || result.isNew()) {
					worst = number - o.first
				}
				lock.Unlock()
				if errors.Is(err, errUndecided) {
					next.Store(int64(count))
				}
				if text := p.report(o, q, number, result, err); earlier && text != "" {
					lock.Lock()
					if worst == number-o.first {
						t.first = text
					}
					lock.Unlock()
				}
			}
		})
	}
	wait.Wait()
	return t
}

func (o outcome) isNew() bool { return o.difference != "" && o.known == "" }

func (t *totals) add(f *form, question any, o outcome) {
	f.describe(question, o.upstream, t.count)
	switch {
	case o.known != "":
		t.known[o.known]++
		t.passed++
	case o.difference != "":
		t.failed++
	default:
		t.passed++
	}
}

func (p *pair) report(o options, question []byte, number int, result outcome, err error) string {
	if err != nil {
		return fmt.Sprintf("-seed %d -form %s -case %d: %v", o.seed, p.form.name, number, err)
	}
	if !result.isNew() {
		return ""
	}
	small := shrink(question, p.form.shrinks, func(candidate []byte) bool {
		if o.whole || bytes.Contains(candidate, []byte(`"containers":[]`)) { // no pod is without any
			return false
		}
		found, err := p.compare(candidate)
		return err == nil && found.isNew() && member(found.ours, "unreadable") == nil &&
			member(found.upstream, "upstream_panics") == nil
	})
	if found, err := p.compare(small); err == nil && found.isNew() {
		result = found
	}
	return fmt.Sprintf("-seed %d -form %s -case %d, made small:\n%s\n  %s\n  upstream %s\n  numafit  %s",
		o.seed, p.form.name, number, result.asked, result.difference, encode(result.upstream), encode(result.ours))
}

func (t *totals) print(o options, f *form) {
	fmt.Printf("== %s, seed %d: %d passed, %d failed\n", f.name, o.seed, t.passed, t.failed)
	for _, axis := range slices.Sorted(maps.Keys(t.classes)) {
		fmt.Printf("  %-10s", axis)
		for _, class := range slices.SortedFunc(maps.Keys(t.classes[axis]), byNumberThenName) {
			fmt.Printf("  %s: %d", class, t.classes[axis][class])
		}
		fmt.Println()
	}
	for _, bug := range slices.Sorted(maps.Keys(t.known)) {
		fmt.Printf("  explained, %d differences: %s\n", t.known[bug], bug)
	}
	if t.first != "" {
		fmt.Println("first difference:", t.first)
	}
}

func byNumberThenName(a, b string) int {
	if len(a) != len(b) && a != "" && b != "" && a[0] <= '9' && b[0] <= '9' {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// mustReach fails the run when too few cases are of a class for it to prove anything.
func (t *totals) mustReach(axis, class string, percent int) {
	const forOnly = 1000 // fewer are asked to look at them
	all := t.passed + t.failed
	if all < forOnly {
		return
	}
	if n := t.classes[axis][class]; n*100 < all*percent {
		fmt.Printf("too few to prove anything: %d of %d are %s, wanted %d %%\n", n, all, class, percent)
		t.failed++
	}
}

// mustSee fails a run of many cases when none is of the class.
func (t *totals) mustSee(c class) {
	const many = 1000
	if t.passed+t.failed >= many && t.classes[c.axis][c.name] == 0 {
		fmt.Printf("none is of %s: %s\n", c.axis, c.name)
		t.failed++
	}
}

// replay asks upstream the questions of a file and compares with what the file expects; and numafit,
// when it is there: then each difference must be one that is known.
func replay(o options) (t totals) {
	t = newTotals()
	file, err := os.Open(o.replay)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubelet-diff:", err)
		t.failed++
		return t
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, lineBytesMax)
	pairs := map[*form]*pair{}
	for lines.Scan() {
		f := formOfQuestion(lines.Bytes())
		if o.only != "" {
			f = formNamed(o.only)
		}
		if f == nil {
			continue
		}
		if pairs[f] == nil {
			pairs[f] = newPair(o, f)
			defer pairs[f].stop()
		}
		t.replay(pairs[f], lines.Bytes(), len(o.numafit) > 0)
	}
	t.print(o, &form{name: o.replay})
	return t
}

// unmarked: without the note that CPUs were given twice, which only some recorders have made.
func unmarked(answer value) value {
	steps, _ := member(answer, "steps").([]any)
	for _, step := range steps {
		if one, is := step.(map[string]any); is {
			delete(one, "takes_unavailable")
			delete(one, "gives_fewer")
		}
	}
	return answer
}

func (t *totals) replay(p *pair, line []byte, both bool) {
	whole, err := decode(line)
	var o outcome
	if err == nil && both {
		o, err = p.compare(line)
	} else if err == nil {
		o.upstream, err = p.askUpstream(line)
	}
	d := ""
	if err == nil {
		d = difference("expected", unmarked(o.upstream), unmarked(member(whole, "expected")))
	}
	if d == "" && o.isNew() {
		d = o.difference
	}
	if o.known != "" {
		t.known[o.known]++
		fmt.Printf("%v: explained: %s\n", member(whole, "name"), o.known)
	}
	if err == nil && d == "" {
		t.passed++
		return
	}
	t.failed++
	fmt.Printf("%v: %v%s\n", member(whole, "name"), err, d)
}

// emit writes cases with upstream's answers, but for those that upstream's known bugs touch: as
// test data that can be checked without Go.
func emit(o options) error {
	f := formNamed(o.only)
	p := newPair(o, f)
	defer p.stop()
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for number, written := o.first, 0; written < o.emit; number++ {
		_, q := question(o, f, number)
		if len(q) > o.bytes {
			continue
		}
		upstream, err := p.askUpstream(q)
		if err != nil {
			return err
		}
		if f.known(q, upstream, nil) != "" || member(upstream, "upstream_panics") != nil {
			continue
		}
		fmt.Fprintf(out, "%s,\"expected\":%s}\n", q[:len(q)-1], encode(upstream))
		written++
	}
	return nil
}
