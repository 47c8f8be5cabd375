package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// In the machine of eight NUMA nodes: a process that counts is moved from node to node by the daemon's own
// code (test/programs/mover.c), and what that costs it, the mover and everybody else.

const movedMiB = 64

// said is a line that mover has printed, with its values by name.
type said struct {
	what   string
	values map[string]uint64
}

// mover is one of its processes.
type mover struct {
	*testing.T
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startMover(t *testing.T, args ...string) *mover {
	t.Helper()
	m := &mover{T: t, Cmd: exec.Command("mover", args...)}
	m.Stderr = os.Stderr
	in, err := m.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := m.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	m.in, m.out = in, bufio.NewScanner(out)
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.in.Close()
		m.Process.Kill()
		m.Wait()
	})
	return m
}

// next is the next line that it prints; "" at its end.
func (m *mover) next() (l said) {
	m.Helper()
	if !m.out.Scan() {
		return
	}
	l.values = map[string]uint64{}
	for i, word := range strings.Fields(m.out.Text()) {
		name, value, _ := strings.Cut(word, "=")
		if i == 0 {
			l.what = name
			continue
		}
		var n uint64
		format := "%d"
		if name == "at" {
			format = "%x"
		}
		if _, err := fmt.Sscanf(value, format, &n); err != nil {
			m.Fatalf("mover prints %q", m.out.Text())
		}
		l.values[name] = n
	}
	if l.what != "moving" { // there are many
		m.Logf("%s", m.out.Text())
	}
	return
}

// until is the next line of that kind.
func (m *mover) until(what string) said {
	m.Helper()
	for {
		switch l := m.next(); l.what {
		case what:
			return l
		case "":
			m.Fatalf("mover has ended without a line %q", what)
		}
	}
}

// moved is a cgroup on node 1 with a process that counts.
type moved struct {
	*mover
	dir string
	at  uint64 // where its memory is
}

func newMoved(t *testing.T) *moved {
	t.Helper()
	m := &moved{dir: filepath.Join("/sys/fs/cgroup/numafit-move", "c")}
	parent := filepath.Dir(m.dir)
	for _, dir := range []string{parent, m.dir} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if dir == parent {
			put(t, filepath.Join(dir, "cgroup.subtree_control"), "+cpuset +memory")
		}
	}
	t.Cleanup(func() { // after the process has ended
		for _, dir := range []string{m.dir, parent} {
			if err := os.Remove(dir); err != nil {
				t.Error(err)
			}
		}
	})
	put(t, filepath.Join(m.dir, "cpuset.cpus"), "2-3")
	put(t, filepath.Join(m.dir, "cpuset.mems"), "1")
	m.mover = startMover(t, "touch", m.dir, fmt.Sprint(movedMiB))
	m.at = m.until("ready").values["at"]
	return m
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// ask is what it has counted since it was asked last.
func (m *moved) ask() said {
	m.Helper()
	if _, err := io.WriteString(m.in, "\n"); err != nil {
		m.Fatal(err)
	}
	return m.until("counted")
}

// pages are those of its memory, by NUMA node.
func (m *moved) pages() map[int]int {
	m.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/numa_maps", m.Process.Pid))
	if err != nil {
		m.Fatal(err)
	}
	pages := map[int]int{}
	for _, l := range strings.Split(string(maps), "\n") {
		if !strings.HasPrefix(l, fmt.Sprintf("%x ", m.at)) {
			continue
		}
		for _, word := range strings.Fields(l) {
			var node, nr int
			if n, _ := fmt.Sscanf(word, "N%d=%d", &node, &nr); n == 2 {
				pages[node] = nr
			}
		}
	}
	return pages
}

func (m *moved) checkPages(node int) {
	m.Helper()
	const all = movedMiB * mi / 4096
	if pages := m.pages(); len(pages) != 1 || pages[node] != all {
		m.Errorf("pages are %v, all %d are to be on node %d", pages, all, node)
	}
}

func TestMemoryMovesWhileItsProcessCountsInAVirtualMachine(t *testing.T) {
	m := newMoved(t)
	m.checkPages(1)
	m.ask()
	time.Sleep(time.Second)
	before := m.ask()
	w := startMover(t, "write", strings.TrimPrefix(m.dir, "/sys/fs/cgroup"), "2")
	done := w.until("moved")
	if err := w.Wait(); err != nil {
		t.Fatal(err)
	}
	during := m.ask()
	m.checkPages(2)
	us := done.values["us"]
	if done.values["steps"] == 0 {
		t.Error("no reading of memory.numa_stat has shown the move half done")
	}
	const lag = 16 * 64 * 4096 // of 16 CPUs: up to 64 pages each are not counted yet
	if bytes := done.values["bytes"]; bytes < movedMiB*mi-lag || bytes > movedMiB*mi+lag {
		t.Errorf("memory.numa_stat says that %d bytes have moved", bytes)
	}
	if done.values["ticks"] < 3 || done.values["pause_us"] >= us {
		t.Errorf("the loop had %d turns while the write took %d us, with a pause of %d us", done.values["ticks"], us, done.values["pause_us"])
	}
	if during.values["touches"] == 0 {
		t.Error("the process has not counted while its memory was moved")
	}
	rate := func(l said) float64 { return float64(l.values["touches"]) * 1e6 / float64(l.values["us"]) }
	t.Logf("figure: %d MiB in %.2f s (%.1f MB/s); %d turns of the loop, longest pause %.0f ms, %.0f ms for a reading; %d steps of memory.numa_stat; the process: longest pause %.0f ms (%.0f ms without a move), %.0f %% of its touches",
		movedMiB, float64(us)/1e6, float64(done.values["rate"])/1e6, done.values["ticks"], float64(done.values["pause_us"])/1e3, float64(done.values["reading_us"])/1e3,
		done.values["steps"], float64(during.values["pause_us"])/1e3, float64(before.values["pause_us"])/1e3, 100*rate(during)/rate(before))
}

// What others wait for: kernels have one queue for all moves, and who writes a cpuset, or enters a cgroup that has one,
// waits until it is empty.
func TestOthersWhileMemoryMovesInAVirtualMachine(t *testing.T) {
	m := newMoved(t)
	other := filepath.Join(filepath.Dir(m.dir), "other")
	if err := os.Mkdir(other, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(other)
	sleeper := exec.Command("sleep", "1000")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		sleeper.Process.Kill()
		sleeper.Wait()
	}()
	pid := fmt.Sprint(sleeper.Process.Pid)
	made := filepath.Join("/sys/fs/cgroup", "numafit-made")
	files := []struct {
		what string
		do   func() error
	}{
		{"memory.high of another cgroup", func() error { return os.WriteFile(filepath.Join(other, "memory.high"), []byte("100M"), 0o644) }},
		{"cpuset.cpus of another cgroup", func() error { return os.WriteFile(filepath.Join(other, "cpuset.cpus"), []byte("4-5"), 0o644) }},
		{"a process that enters another cgroup", func() error { return os.WriteFile(filepath.Join(other, "cgroup.procs"), []byte(pid), 0o644) }},
		{"a new cgroup somewhere else, meanwhile", func() error { return os.Mkdir(made, 0o755) }},
	}
	defer os.Remove(made)
	took := func(do func() error) time.Duration {
		began := time.Now()
		if err := do(); err != nil {
			t.Error(err)
		}
		return time.Since(began)
	}
	alone := make([]time.Duration, len(files))
	for i, f := range files {
		alone[i] = took(f.do)
	}
	put(t, "/sys/fs/cgroup/cgroup.procs", pid) // so that it can enter once more
	os.Remove(made)
	w := startMover(t, "write", strings.TrimPrefix(m.dir, "/sys/fs/cgroup"), "2")
	w.until("moving")
	began := time.Now()
	beside := make([]time.Duration, len(files))
	var all sync.WaitGroup
	for i, f := range files {
		all.Add(1)
		go func() {
			defer all.Done()
			beside[i] = took(f.do)
		}()
		time.Sleep(20 * time.Millisecond)
	}
	w.until("moved")
	left := time.Since(began)
	all.Wait()
	for i, f := range files {
		t.Logf("figure: %s: %v, and %v beside a move of which %v were left", f.what, alone[i], beside[i], left)
	}
	w.Wait()
	m.checkPages(2)
}

// A mover that ends, or is killed, in the middle: the kernel goes on, and all pages arrive.
func TestMovesEndWithoutTheirMoverInAVirtualMachine(t *testing.T) {
	m := newMoved(t)
	to := 2
	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		for try := 1; !m.interrupt(to, signal); try++ { // on a busy host it may be over by then
			if try == 10 {
				t.Fatalf("the move is over before %v each time", signal)
			}
			to = 3 - to
		}
		to = 3 - to
	}
}

// interrupt has its memory moved to that node and sends the mover a signal meanwhile; false: too late.
func (m *moved) interrupt(to int, signal os.Signal) bool {
	m.Helper()
	w := startMover(m.T, "write", strings.TrimPrefix(m.dir, "/sys/fs/cgroup"), fmt.Sprint(to))
	w.until("moving")
	began := time.Now()
	w.Process.Signal(signal)
	freed := uint64(0)
	for l := w.next(); l.what != ""; l = w.next() {
		switch l.what {
		case "moved":
			w.Wait()
			m.checkPages(to)
			return false
		case "freed":
			freed = l.values["us"]
		}
	}
	w.Wait()
	ended, there := time.Since(began), m.pages()
	for range 1000 {
		if m.pages()[3-to] == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	m.Logf("figure: %v: mems_write_free() took %d us, the mover had ended after %v, with pages %v; all were there after %v",
		signal, freed, ended, there, time.Since(began))
	m.checkPages(to)
	return true
}
