package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// What the soak prints, and what it keeps to say what led to a violation.

const (
	historyLines  = 60 // before the first violation
	progressEvery = 5 * time.Second
	// Within a life: a client of its status, a connection to the kubelet that is made anew.
	descriptorsGrow = 8
)

// Generous: with every service on numafitd has 20 to 40 MB. What grows without end passes it.
// AddressSanitizer keeps what was freed, and needs more.
var rssCeilingKiB = int(number("RSS_MIB", 128)) << 10

type report struct {
	lock       sync.Mutex
	started    time.Time
	printed    time.Time
	history    []string
	violations []string
	counts     map[string]int
	start, end usage
	peak       usage
	grown      int // descriptors, most within one life
}

func (r *report) note(line string) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if len(r.violations) > 0 {
		return
	}
	r.history = append(r.history, fmt.Sprintf("%9.3f %s", time.Since(r.started).Seconds(), line))
	if len(r.history) > 4*historyLines {
		r.history = append([]string{}, r.history[len(r.history)-historyLines:]...)
	}
}

func (r *report) count(what string) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.counts[what]++
}

func (r *report) failed() bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	return len(r.violations) > 0
}

// violated records what must never be.
func (s *soak) violated(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.report.note("VIOLATION: " + text)
	s.report.lock.Lock()
	defer s.report.lock.Unlock()
	s.report.violations = append(s.report.violations, fmt.Sprintf("event %d: %s", s.nr, text))
}

func (s *soak) progress() {
	r := s.report
	if time.Since(r.printed) < progressEvery {
		return
	}
	r.printed = time.Now()
	s.runtime.lock.Lock()
	containers := len(s.runtime.containers)
	s.runtime.lock.Unlock()
	fmt.Printf("%s  %d events, %d kills, %d restarts, %d reloads, %d containers\n",
		time.Since(r.started).Round(time.Second), s.nr, s.deaths(), r.counts["start"], r.counts["reload"], containers)
}

func (s *soak) deaths() int {
	return s.report.counts["kill"] + s.report.counts["death at a fault point"]
}

// print is the end of it; the exit status.
func (s *soak) print() int {
	r := s.report
	fmt.Printf("\n%d events in %s, seed %d\n", s.nr, time.Since(r.started).Round(time.Second), s.seed)
	for _, what := range sortedKeys(r.counts) {
		fmt.Printf("  %7d %s\n", r.counts[what], what)
	}
	fmt.Printf("slowest create: %v; updates of running containers: %d; lives of numafitd: %d\n",
		s.runtime.slowest.Round(time.Microsecond), s.runtime.updates, s.d.lives)
	fmt.Printf("RSS: %d KiB at the start, %d KiB at the end, %d KiB at most (ceiling %d)\n",
		r.start.rssKiB, r.end.rssKiB, r.peak.rssKiB, rssCeilingKiB)
	fmt.Printf("descriptors: %d at the start, %d at the end, %d at most; grown by %d within a life\n",
		r.start.descriptors, r.end.descriptors, r.peak.descriptors, r.grown)
	fmt.Printf("violations: %d\n", len(r.violations))
	if len(r.violations) == 0 {
		skipped := 0
		if s.machine.root == "" { // full disks and hotplug
			skipped = 2
		}
		fmt.Printf("1 passed, 0 failed, %d skipped\n", skipped)
		return 0
	}
	fmt.Printf("the first one: %s\n", r.violations[0])
	for _, v := range r.violations[1:min(len(r.violations), 5)] {
		fmt.Printf("then: %s\n", v)
	}
	fmt.Println("what came before it:")
	for _, line := range r.history[max(0, len(r.history)-historyLines):] {
		fmt.Println("  " + line)
	}
	fmt.Printf("the same sequence again: make soak SEED=%d\nlog and journal: %s\n", s.seed, s.keep())
	fmt.Println("0 passed, 1 failed, 0 skipped")
	return 1
}

// keep saves what numafitd has left, for whoever looks into it.
func (s *soak) keep() string {
	to, err := os.MkdirTemp("", fmt.Sprintf("soak-%d-", s.seed))
	if err != nil {
		return err.Error()
	}
	for _, name := range []string{"log", "numafitd.yaml", "run/journal", "run/journal.1"} {
		if text, err := os.ReadFile(filepath.Join(s.dir, name)); err == nil {
			os.WriteFile(filepath.Join(to, strings.ReplaceAll(name, "/", "-")), text, 0o600)
		}
	}
	return to
}

// weigh looks at what the process has.
func (s *soak) weigh() {
	if !s.d.inChain() {
		return
	}
	now, r := s.d.usage(), s.report
	r.end = now
	r.peak.rssKiB = max(r.peak.rssKiB, now.rssKiB)
	r.peak.descriptors = max(r.peak.descriptors, now.descriptors)
	r.grown = max(r.grown, now.descriptors-s.d.first.descriptors)
	if grown := now.descriptors - s.d.first.descriptors; grown > descriptorsGrow {
		s.violated("numafitd has %d descriptors more than as it joined", grown)
	}
	if now.rssKiB > rssCeilingKiB {
		s.violated("numafitd has %d KiB", now.rssKiB)
	}
}
