package e2e

import (
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Figures of a node in a virtual machine, by its own clock, which counts instructions, so that a
// busy host does not change them. What is compared is measured in the same boot. CASES=figures takes them all.

// row is a line of JSON as make bench writes them: a figure, and the one that it is beside.
type row struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit"`
	N      int     `json:"n"`
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
	Ratio  float64 `json:"ratio,omitempty"` // the peer's median to ours
	Peer   *peer   `json:"peer,omitempty"`
}

type peer struct {
	Name   string  `json:"name"`
	N      int     `json:"n"`
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
}

// rank is the smallest value that so many of a hundred do not exceed.
func rank(values []float64, percent int) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)*percent+99)/100-1]
}

// figure prints what was measured: for a person, and as JSON for the side outside.
func figure(name, unit string, ours []float64, beside string, theirs []float64) (r row) {
	r = row{name, unit, len(ours), rank(ours, 50), rank(ours, 99), 0,
		&peer{beside, len(theirs), rank(theirs, 50), rank(theirs, 99)}}
	if r.Median > 0 {
		r.Ratio = math.Round(r.Peer.Median/r.Median*100) / 100
	}
	text := func(n int, median, p99 float64) string {
		if unit == "ns" {
			return fmt.Sprintf("median %.3f ms, p99 %.3f ms of %d", median/1e6, p99/1e6, n)
		}
		return fmt.Sprintf("median %g, p99 %g %s of %d", median, p99, unit, n)
	}
	times := ""
	if r.Ratio > 0 {
		times = fmt.Sprintf(": %.1f times as much", r.Ratio)
	}
	fmt.Printf("figure: [%s] %s; %s %s%s\n", name, text(r.N, r.Median, r.P99),
		beside, text(r.Peer.N, r.Peer.Median, r.Peer.P99), times)
	fmt.Printf("row: %s\n", toJSON(r))
	return r
}

// timed is how long that took.
func timed(do func()) float64 {
	began := time.Now()
	do()
	return float64(time.Since(began))
}

// How often a container with four CPUs of its own is stopped for its quota, with busy threads on all of them
// and short-lived helpers: it and its pod, in three runs.
func TestInsideFigureThrottled(t *testing.T) {
	n := inside(t)
	n.runStatic("own", guaranteed, nil, []want{{name: "four", milli: 4000, memory: 700 * mi, args: []string{
		"for i in 1 2 3 4; do while :; do :; done & done; " +
			"for i in 1 2; do while :; do cat /proc/self/stat >/dev/null; sleep 0.05; done & done; " + untilTold}}})
	n.awaitQuotas("own", quotas{"": noQuota, "four": noQuota})
	if n.exclusive(n.pods["own"], "four") != 4 {
		t.Fatalf("%+v", n.status().Containers)
	}
	lifted := n.throttled("own", "four")
	n.configure(keep)
	n.awaitQuotas("own", quotas{"": "400000 100000", "four": "400000 100000"})
	kept := n.throttled("own", "four")
	figure("throttled", "times", lifted, "cfsQuota-keep", kept)
	fmt.Printf("figure: [throttled] in the runs %v; cfsQuota-keep %v\n", lifted, kept)
	for i := range lifted {
		if lifted[i] != 0 {
			t.Errorf("it was stopped %g times in run %d", lifted[i], i)
		}
	}
	if slices.Max(kept) == 0 {
		t.Error("this load is not stopped with a quota either: the figure says nothing")
	}
}

// throttled is how often the container and its pod are stopped in each of three runs.
func (n *node) throttled(pod, container string) (times []float64) {
	n.Helper()
	dir := cpusetCgroup(n.pid(n.pods[pod].containers[container]))
	now := func() (nr float64) {
		for _, d := range []string{dir, filepath.Dir(dir)} {
			times, err := strconv.Atoi(line(n.read(d+"/cpu.stat"), "nr_throttled"))
			n.must(err)
			nr += float64(times)
		}
		return nr
	}
	for range 3 {
		before := now()
		time.Sleep(10 * time.Second)
		times = append(times, now()-before)
	}
	return times
}

// A crowd are containers that share the pool while CPUs are taken from it, with two tasks each. Without
// bounds each of them costs an update by the runtime, which is why there are fewer samples.
const (
	samplesCgroup   = 10
	samplesUpdates  = 3
	fewerTimes      = 100 // the bounds have to be better by that
	crowdsContainer = "c"
)

// From the request that a container with CPUs of its own be created, as numafitd is asked it, until no task
// of the others may run on these CPUs. CROWD=N has as many others, where 100 take too long.
func TestInsideFigureVacate(t *testing.T) {
	n, crowd := inside(t), number(t, "CROWD", 100)
	n.awayFromKubelet()
	tap := n.tapNRI()
	settings := "nri:\n  socketPath: " + tap.path + "\n"
	n.configure(settings)
	n.startAnew()
	var many []want
	for i := range crowd {
		many = append(many, want{name: crowdsContainer + strconv.Itoa(i), milli: 10})
	}
	n.startPod("crowd", burstable, many...)
	fmt.Printf("figure: %d containers share the pool\n", crowd)
	cgroup := n.vacate(tap, "cgroup", samplesCgroup)
	n.configure(settings + "sharedPool:\n  enforce: updates\nsharedPoolStep: 0\n")
	n.startAnew()
	updates := n.vacate(tap, "updates", samplesUpdates)
	r := figure("vacate-"+strconv.Itoa(crowd), "ns", cgroup, "updates", updates)
	if r.Ratio < fewerTimes {
		t.Errorf("it is only %g times less", r.Ratio)
	}
}

// vacate measures so many creations, each beside the whole crowd.
func (n *node) vacate(t *tap, enforced string, samples int) (times []float64) {
	n.Helper()
	all := n.settle()
	if all.SharedPool.Enforced != enforced {
		n.Fatalf("the pool is enforced by %s", all.SharedPool.Enforced)
	}
	tasks := n.tasksOf(n.pods["crowd"])
	if crowd := len(n.pods["crowd"].containers); crowd == 0 || len(tasks) < 2*crowd {
		n.Fatalf("%d tasks are in %d containers", len(tasks), crowd)
	}
	for i := range samples {
		p := n.startPod("own"+strconv.Itoa(i), guaranteed)
		done := t.watch(func() bool { return leftCPUs(tasks, all.Pool) }, func() { awaitLeft(tasks, all.Pool) })
		id := n.addContainer(p, want{name: "two", milli: 2000, memory: 32 * mi})
		times = append(times, float64(<-done))
		s, h := n.status(), n.held(id)
		for _, task := range tasks {
			if mask := allowed(task); mask != s.Pool || !h.Exclusive || n.intersect(mask, h.CPUs) {
				n.Errorf("task %s may run on %s, the pool is %s, and %s are a container's own", task, mask, s.Pool, h.CPUs)
			}
		}
		n.removePod(p)
		n.await("the pool to be whole again", func() bool {
			return n.status().Pool == all.Pool && !slices.ContainsFunc(tasks, func(task string) bool { return allowed(task) != all.Pool })
		})
	}
	return times
}

// awayFromKubelet lets it rest for the case: pods come through CRI, and nobody else disturbs the clock.
func (n *node) awayFromKubelet() {
	n.Helper()
	n.rest("kubelet")
	n.Cleanup(func() {
		for _, p := range n.pods {
			n.removePod(p)
		}
		n.wake("kubelet")
		n.awaitInOrder()
	})
}

func (n *node) tasksOf(p *pod) (tasks []string) {
	n.Helper()
	for _, id := range p.containers {
		tasks = append(tasks, strings.Fields(n.read(cpusetCgroup(n.pid(id))+"/cgroup.threads"))...)
	}
	return tasks
}

// leftCPUs: no task may run on all these CPUs any more.
func leftCPUs(tasks []string, cpus string) bool {
	return !slices.ContainsFunc(tasks, func(task string) bool { return allowed(task) == cpus })
}

// awaitLeft looks at one task at a time, for all looks together would slow down who is to move them.
func awaitLeft(tasks []string, cpus string) {
	for _, task := range tasks {
		for allowed(task) == cpus {
			time.Sleep(2 * time.Millisecond)
		}
	}
}

// tap stands between the runtime and numafitd, and takes the times of what passes.
type tap struct {
	path string
	lock sync.Mutex
	now  *tapped // nil: nothing is waited for
}

// tapped is one request that is waited for, and its answer.
type tapped struct {
	began   time.Time
	settled func() bool // all is in force; asked before the answer is passed on
	wait    func()      // until it is
	took    chan time.Duration
}

func (n *node) tapNRI() *tap {
	n.Helper()
	t := &tap{path: n.path("tap.sock")}
	os.Remove(t.path)
	l, err := net.Listen("unix", t.path)
	n.must(err)
	n.Cleanup(func() { l.Close() })
	go func() {
		for {
			daemon, err := l.Accept()
			if err != nil {
				return
			}
			runtime, err := net.Dial("unix", "/run/nri/nri.sock")
			if err != nil {
				daemon.Close()
				continue
			}
			go pass(runtime, daemon, t.asked)
			go pass(daemon, runtime, t.answered)
		}
	}()
	return t
}

func pass(from, to net.Conn, seen func()) {
	defer from.Close()
	defer to.Close()
	for buffer := make([]byte, 1<<20); ; {
		nr, err := from.Read(buffer)
		if err != nil {
			return
		}
		seen()
		if _, err := to.Write(buffer[:nr]); err != nil {
			return
		}
	}
}

// watch takes the time of the next request from its arrival. If all is settled when it is answered that is
// its end, else when the wait is over.
func (t *tap) watch(settled func() bool, wait func()) <-chan time.Duration {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.now = &tapped{settled: settled, wait: wait, took: make(chan time.Duration, 1)}
	return t.now.took
}

func (t *tap) asked() {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.now != nil && t.now.began.IsZero() {
		t.now.began = time.Now()
	}
}

func (t *tap) answered() {
	t.lock.Lock()
	defer t.lock.Unlock()
	w := t.now
	if w == nil || w.began.IsZero() {
		return
	}
	t.now = nil
	if took := time.Since(w.began); w.settled() {
		w.took <- took
		return
	}
	go func() {
		w.wait()
		w.took <- time.Since(w.began)
	}()
}

// One write into the cgroup above, beside one into each cgroup below, and beside `runc update` of each: by
// how many are below, with two tasks each.
func TestInsideFigureWrite(t *testing.T) {
	n := inside(t)
	n.awayFromKubelet()
	var few []want
	for i := range 3 {
		few = append(few, want{name: crowdsContainer + strconv.Itoa(i), milli: 10})
	}
	update := n.timeUpdates(n.startPod("few", burstable, few...))
	n.removePod(n.pods["few"])
	for _, nr := range []int{10, 50, 250} {
		parent, children := n.timeWrites(nr)
		name := "pool-write-" + strconv.Itoa(nr)
		figure(name, "ns", parent, "children", children)
		var updates []float64 // one after another
		for _, one := range update {
			updates = append(updates, one*float64(nr))
		}
		figure(name+"-runc", "ns", parent, "runc-update", updates)
	}
}

const twoSets = 20 // writes of either kind, of one set and the other in turns

func setOf(i int) string { return []string{"2-7", "0-7"}[i%2] }

// timeUpdates are the times of `runc update` of a container, without the runtime's part in it.
func (n *node) timeUpdates(p *pod) (times []float64) {
	n.Helper()
	for i := range 4 {
		for _, id := range p.containers {
			times = append(times, timed(func() {
				n.run("runc", "--root", "/run/containerd/runc/k8s.io", "update", "--cpuset-cpus", setOf(i), id)
			}))
		}
	}
	return times
}

// timeWrites are the times of one write above so many cgroups, and of a write into each.
func (n *node) timeWrites(nr int) (parent, children []float64) {
	n.Helper()
	const root = "/sys/fs/cgroup/figure"
	n.must(os.Mkdir(root, 0o755))
	n.must(os.WriteFile(root+"/cgroup.subtree_control", []byte("+cpuset"), 0o644))
	var dirs []string
	var sleepers []*exec.Cmd
	defer func() {
		for _, s := range sleepers {
			s.Process.Kill()
			s.Wait()
		}
		for _, dir := range append(dirs, root) {
			n.must(os.Remove(dir))
		}
	}()
	for i := range nr {
		dir := root + "/" + strconv.Itoa(i)
		n.must(os.Mkdir(dir, 0o755))
		dirs = append(dirs, dir)
		in, err := os.Open(dir)
		n.must(err)
		for range 2 {
			s := exec.Command("busybox", "sleep", "1000000")
			s.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(in.Fd())}
			n.must(s.Start())
			sleepers = append(sleepers, s)
		}
		in.Close()
	}
	set := func(dir, cpus string) { // without what a runtime of Go does with files beside
		file, err := syscall.Open(dir+"/cpuset.cpus", syscall.O_WRONLY, 0)
		n.must(err)
		_, err = syscall.Write(file, []byte(cpus))
		n.must(err)
		n.must(syscall.Close(file))
	}
	last := strconv.Itoa(sleepers[len(sleepers)-1].Process.Pid)
	for i := range twoSets {
		parent = append(parent, timed(func() { set(root, setOf(i)) }))
		if is := allowed(last); is != setOf(i) {
			n.Fatalf("the last task has %s once %s is written above it", is, setOf(i))
		}
	}
	for i := range twoSets {
		children = append(children, timed(func() {
			for _, dir := range dirs {
				set(dir, setOf(i))
			}
		}))
		if is := allowed(last); is != setOf(i) {
			n.Fatalf("the last task has %s once %s is written to all", is, setOf(i))
		}
	}
	return parent, children
}
