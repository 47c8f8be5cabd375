package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Cases of a node in a virtual machine: a container that runs is moved to another NUMA node to make room, with
// its memory, while it counts by its own clock, and nothing brings its old place back.

// Called as this, the program is what such a container runs.
const clockProgram = "clock"

const (
	clockEvery   = 2 * time.Millisecond   // it looks at some of its pages then,
	clockPages   = 64                     // so many,
	clockReports = 250 * time.Millisecond // and says how long it was away at most
	pageBytes    = 4096
)

// runClock touches as many MiB as it is asked for, of small pages, each of which has its number in it. Then it looks at some of them
// over and over. A line has a stretch of its time, and the longest pause in there. A page with another
// content ends it.
func runClock(args []string) error {
	mib, err := strconv.Atoi(args[len(args)-1])
	if err != nil {
		return err
	}
	memory, err := syscall.Mmap(-1, 0, mib*mi, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err == nil {
		err = syscall.Madvise(memory, 15) // MADV_NOHUGEPAGE
	}
	if err != nil {
		return err
	}
	pages := len(memory) / pageBytes
	number := func(page int) []byte { return memory[page*pageBytes:][:8] }
	for page := range pages {
		copy(number(page), fmt.Sprintf("%08d", page))
	}
	last := time.Now()
	longest, from, count := time.Duration(0), last, 0
	for at := 0; ; at = (at + clockPages) % pages {
		time.Sleep(clockEvery)
		for page := at; page < min(at+clockPages, pages); page++ {
			if is, _ := strconv.Atoi(string(number(page))); is != page {
				return fmt.Errorf("page %d has %q in it", page, number(page))
			}
			number(page)[0] = '0' // written to as well
		}
		count++
		now := time.Now()
		longest, last = max(longest, now.Sub(last)), now
		if now.Sub(from) > clockReports {
			fmt.Printf("%d %d %d %d\n", from.UnixMicro(), now.UnixMicro(), longest.Microseconds(), count)
			longest, from = 0, now
		}
	}
}

// clockWant is a container with one CPU of its own that touches so much.
func clockWant(mib int) want {
	return want{name: clockProgram, milli: 1000, memory: int64(mib+64) * mi, args: []string{fmt.Sprintf("exec /%s %d", clockProgram, mib)}}
}

// runClockPod runs that container, in a pod of this name.
func (n *node) runClockPod(name string, mib int, annotations notes) held {
	n.Helper()
	var pod map[string]any
	w := clockWant(mib)
	n.must(json.Unmarshal(manifest(name, guaranteed, nil, []want{w}), &pod))
	pod["metadata"].(map[string]any)["annotations"] = annotations
	spec := pod["spec"].(map[string]any)
	self, err := os.Executable()
	n.must(err)
	spec["volumes"] = []any{map[string]any{"name": "program", "hostPath": map[string]string{"path": self, "type": "File"}}}
	spec["containers"].([]any)[0].(map[string]any)["volumeMounts"] = []any{
		map[string]any{"name": "program", "mountPath": "/" + clockProgram, "readOnly": true}}
	n.putManifest(name, toJSON(pod))
	h := n.held(n.awaitStatic(name).containers[w.name])
	n.await("it to have touched its memory", func() bool { return len(n.clockLines(name)) > 1 })
	return h
}

// stretch is a line of its.
type stretch struct {
	from, to time.Time
	longest  time.Duration
	count    int
}

func (n *node) clockLines(pod string) (all []stretch) {
	n.Helper()
	for _, l := range strings.Split(n.logOf(pod, clockProgram), "\n") {
		var from, to, longest int64
		var s stretch
		if nr, _ := fmt.Sscan(l, &from, &to, &longest, &s.count); nr == 4 {
			s.from, s.to, s.longest = time.UnixMicro(from), time.UnixMicro(to), time.Duration(longest)*time.Microsecond
			all = append(all, s)
		}
	}
	return all
}

// longestPause is that of its clock between these moments. The line that has the end may still have to come.
func (n *node) longestPause(pod string, from, to time.Time) (longest time.Duration) {
	n.Helper()
	n.await("its clock to go on", func() bool {
		all := n.clockLines(pod)
		return len(all) > 0 && all[len(all)-1].from.After(to)
	})
	for _, s := range n.clockLines(pod) {
		if s.to.After(from) && s.from.Before(to) {
			longest = max(longest, s.longest)
		}
	}
	return longest
}

// pages are those that the container's processes have written, by NUMA node.
func (n *node) pages(id string) map[int]int {
	n.Helper()
	all := map[int]int{}
	for _, pid := range strings.Fields(n.read(cpusetCgroup(n.pid(id)) + "/cgroup.procs")) {
		maps, err := os.ReadFile("/proc/" + pid + "/numa_maps")
		n.must(err)
		for node, nr := range writtenPages(string(maps)) {
			all[node] += nr
		}
	}
	return all
}

// checkPagesOn insists that all of at least so many MiB are on one NUMA node.
func (n *node) checkPagesOn(h held, mib int) {
	n.Helper()
	pages := n.pages(h.ID)
	fmt.Printf("figure: pages of %s by NUMA node: %v, numafitd says %s\n", h.Pod, pages, h.Mems)
	node, err := strconv.Atoi(h.Mems)
	if err != nil || len(pages) != 1 || pages[node]*pageBytes < mib*mi {
		n.Errorf("%d MiB of %s are to be on node %s: pages by node %v", mib, h.Pod, h.Mems, pages)
	}
}

// spec is what the runtime would set again: the cpuset in the container's spec.
func (n *node) spec(id string) (cpus, mems string) {
	n.Helper()
	ctx, cancel := soon()
	defer cancel()
	s, err := n.runtime.ContainerStatus(ctx, &cri.ContainerStatusRequest{ContainerId: id, Verbose: true})
	n.must(err)
	var info struct {
		RuntimeSpec struct {
			Linux struct {
				Resources struct{ CPU struct{ Cpus, Mems string } }
			}
		}
	}
	n.must(json.Unmarshal([]byte(s.Info["info"]), &info))
	cpu := info.RuntimeSpec.Linux.Resources.CPU
	return cpu.Cpus, cpu.Mems
}

// defrag is what `numafit defrag` prints, with its exit code.
func (n *node) defrag(args ...string) (out string, code int) {
	n.Helper()
	text, err := exec.Command("numafit", append([]string{"defrag", "--socket", n.path("run/numafitd.sock")}, args...)...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		n.Fatal(err)
	}
	if exit != nil {
		code = exit.ExitCode()
	}
	n.Logf("numafit defrag %s: exit code %d\n%s", strings.Join(args, " "), code, text)
	return string(text), code
}

// logged waits until numafitd has said a line with all of these words.
func (n *node) logged(words ...string) (line string) {
	n.Helper()
	n.await("numafitd to say "+strings.Join(words, " "), func() bool {
		for _, l := range strings.Split(n.said("numafitd", 400), "\n") {
			if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(l, w) }) {
				line = l
				return true
			}
		}
		return false
	})
	return line
}

// fragment has the container with a clock alone on a NUMA node with two CPUs, one CPU free there and one free on
// another node: a pod that wants two has to wait until it is moved. The pod that fills the others may be there already.
func (n *node) fragment(name string, mib int, annotations notes) held {
	n.Helper()
	n.runStatic("edge", guaranteed, nil, []want{{name: "one", milli: 1000, memory: 32 * mi}})
	clock := n.runClockPod(name, mib, annotations)
	if n.pods["rest"] == nil {
		n.runStatic("rest", guaranteed, nil, []want{{name: "two", milli: 2000, memory: 32 * mi}, {name: "more", milli: 2000, memory: 32 * mi}})
	}
	n.dropStatic("edge")
	n.checkAll()
	n.checkPagesOn(clock, mib)
	return clock
}

var large = []want{{name: "two", milli: 2000, memory: 32 * mi}}

// putRefused gives the kubelet a pod with two CPUs, which is refused until there is room.
func (n *node) putRefused(name string) {
	n.Helper()
	n.putPod(name, guaranteed, nil, large)
	n.await(name+" to be refused", func() bool { return n.refusal(name) != "" })
}

// checkMoved insists that the container is on another NUMA node by all that the kernel, numafitd and the
// runtime have of it.
func (n *node) checkMoved(was held, mib int) (is held) {
	n.Helper()
	n.checkAll()
	is = n.held(was.ID)
	if !is.Exclusive || is.Mems == was.Mems || is.CPUs == was.CPUs {
		n.Errorf("it was\n%+v, and is\n%+v", was, is)
	}
	n.checkPagesOn(is, mib)
	dir := cpusetCgroup(n.pid(is.ID))
	for file, wanted := range map[string]string{"cpuset.cpus": is.CPUs, "cpuset.mems": is.Mems} {
		if text := n.read(dir + "/" + file); text != wanted {
			n.Errorf("%s of %s is %s, not %s", file, dir, text, wanted)
		}
	}
	n.awaitOrder("the runtime to know its new place", func() string {
		if cpus, mems := n.spec(is.ID); cpus != is.CPUs || mems != is.Mems {
			return fmt.Sprintf("its spec has cpus %s mems %s, it has %s and %s", cpus, mems, is.CPUs, is.Mems)
		}
		return ""
	})
	return is
}

const onDemand = "defragment: {mode: on-demand}\nsweepInterval: 1s\n"

// A pod that two free CPUs on two NUMA nodes do not help is told which move would make its room, the operator has
// it made, and it runs. The container that is moved keeps all that it has in memory, and is where it is to be.
// After that neither a resize, nor a service that starts anew, nor the sweep bring it back.
func TestInsideMoveMakesRoom(t *testing.T) {
	n, mib := inside(t), 64
	n.configure(onDemand + "sharedPool: {enforce: updates}\n")
	n.startAnew()
	clock := n.fragment("clock", mib, nil)
	n.putRefused("big")
	t.Log(n.logged("event=moves-would-help", "for=default/big-"+nodeName, "default/clock-"+nodeName+"/clock"))
	file := n.path("pods/big.json")
	out, code := n.defrag("--for", file, "--apply")
	if code != 3 || !strings.Contains(out, "sharedPool.enforce is updates") {
		t.Errorf("without cgroups nothing can be moved: exit code %d:\n%s", code, out)
	}
	n.configure(onDemand)
	n.startAnew()

	out, code = n.defrag("--for", file)
	if code != 0 || !strings.Contains(out, "1. default/clock-"+nodeName+"/clock, ") || !strings.Contains(out, "the same with --apply makes them") {
		t.Errorf("the plan: exit code %d:\n%s", code, out)
	}
	if h := n.held(clock.ID); h != clock {
		t.Errorf("a plan has moved it from\n%+v to\n%+v", clock, h)
	}
	drifts := n.status().Counters.Drifted
	began := time.Now()
	out, code = n.defrag("--for", file, "--apply")
	ended := time.Now()
	if code != 0 || !strings.Contains(out, "1 of 1: default/clock-"+nodeName+"/clock moved") {
		t.Errorf("the move: exit code %d:\n%s", code, out)
	}
	t.Log(n.logged("event=moved ", "pod=clock-"+nodeName))
	moved := n.checkMoved(clock, mib)
	took := ended.Sub(began)
	fmt.Printf("figure: %d MiB moved from node %s to %s in %.0f ms with the command; its longest pause was %.1f ms, before %.1f ms\n",
		mib, clock.Mems, moved.Mems, took.Seconds()*1e3, n.longestPause("clock", began, ended).Seconds()*1e3,
		n.longestPause("clock", began.Add(-took), began).Seconds()*1e3)
	n.awaitStatic("big")
	n.checkAll()
	if out, code = n.defrag("--show"); code != 0 || !strings.Contains(out, ": moved in ") {
		t.Errorf("what was moved last: exit code %d:\n%s", code, out)
	}

	for _, by := range []struct {
		what string
		do   func()
	}{
		{"a resize", func() {
			n.must(n.resize(n.pods["clock"], want{name: clockProgram, milli: 1000, memory: int64(mib+96) * mi}))
		}},
		{"the kubelet's start", func() { n.signal("kubelet", syscall.SIGKILL) }},
		{"containerd's start", func() { n.signal("containerd", syscall.SIGKILL) }},
		{"numafitd's start", func() { n.signal("numafitd", syscall.SIGKILL) }},
		{"three rounds of the sweep", func() { time.Sleep(3500 * time.Millisecond) }},
	} {
		by.do()
		n.look()
		if is := n.checkMoved(clock, mib); is != moved {
			t.Errorf("after %s it is\n%+v, and was\n%+v", by.what, is, moved)
		}
	}
	if now := n.status().Counters.Drifted; now > drifts {
		t.Errorf("the sweep has seen %d containers drift", now-drifts)
	}
	n.longestPause("clock", time.Now(), time.Now()) // it has found nothing amiss in its memory
	for _, name := range []string{"big", "clock", "rest"} {
		n.dropStatic(name)
	}
}

// beginMove has the container moved for a pod that was refused, and returns when some of its memory is on the other node.
func (n *node) beginMove(clock held, waits string) *exec.Cmd {
	n.Helper()
	var said bytes.Buffer
	apply := exec.Command("numafit", "defrag", "--socket", n.path("run/numafitd.sock"), "--for", n.path("pods/"+waits+".json"), "--apply")
	apply.Stdout, apply.Stderr = &said, &said
	n.Cleanup(func() {
		if n.Failed() && apply.ProcessState != nil {
			n.Logf("numafit defrag --apply: %s", said.String())
		}
	})
	stat := cpusetCgroup(n.pid(clock.ID)) + "/memory.numa_stat"
	before := again
	again = time.Millisecond
	defer func() { again = before }()
	n.must(apply.Start())
	from, to := 0, 0
	n.await("some of its memory to be on another node", func() bool {
		from, to = n.anonymous(stat, clock.Mems)
		return to > 16*mi
	})
	fmt.Printf("figure: %d of %d MiB of %s are moved\n", to/mi, (from+to)/mi, clock.Pod)
	if from < 16*mi {
		n.Errorf("only %d bytes are left to move", from)
	}
	return apply
}

// A numafitd that is killed while the kernel moves a container's memory makes the move in its next life. A runtime
// that is killed meanwhile, and knows the old place when it is back, does not bring it back.
func TestInsideMoveOutlivesKill(t *testing.T) {
	n, mib := inside(t), 256
	n.configure(onDemand)
	n.startAnew()
	for _, killed := range []string{"numafitd", "containerd"} {
		clock := n.fragment("of-"+killed, mib, nil)
		n.putRefused("for-" + killed)
		began := time.Now()
		pid := n.mainPID(killed) // which systemd says so slowly that the move would be over
		apply := n.beginMove(clock, "for-"+killed)
		n.must(syscall.Kill(pid, syscall.SIGKILL))
		n.awaitAnother(killed, pid)
		ended := time.Now()
		if err := apply.Wait(); (err == nil) != (killed == "containerd") {
			t.Errorf("%s was killed, and numafit defrag --apply says: %v", killed, err)
		}
		if killed == "numafitd" {
			t.Log(n.logged("event=move-goes-on", "pod="+clock.Pod))
		}
		t.Log(n.logged("event=moved ", "pod="+clock.Pod))
		n.checkMoved(clock, mib)
		n.awaitStatic("for-" + killed)
		fmt.Printf("figure: the longest pause of its clock was %.1f ms while %s was killed\n",
			n.longestPause("of-"+killed, began, ended).Seconds()*1e3, killed)
		n.signal("numafitd", syscall.SIGKILL) // the journal has it all
		n.checkMoved(clock, mib)
		n.dropStatic("for-" + killed)
		n.dropStatic("of-" + killed)
	}
	n.dropStatic("rest")
}

// A container that is being moved is not resized. When it ends meanwhile it is started anew, and nothing of the move
// is left.
func TestInsideMoveOfContainerThatEnds(t *testing.T) {
	n, mib := inside(t), 256
	n.configure(onDemand)
	n.startAnew()
	clock := n.fragment("ends", mib, nil)
	n.putRefused("waits")
	stat := cpusetCgroup(n.pid(clock.ID)) + "/memory.numa_stat"
	apply := n.beginMove(clock, "waits")
	err := n.resize(n.pods["ends"], want{name: clockProgram, milli: 1000, memory: int64(mib+96) * mi})
	left, _ := n.anonymous(stat, clock.Mems)
	if left == 0 || err == nil || !strings.Contains(err.Error(), "is being moved") {
		t.Errorf("a resize during the move, of which %d MiB were left after it: %v", left/mi, err)
	}
	n.killContainer(n.pods["ends"], clockProgram)
	err = apply.Wait()
	t.Logf("numafit defrag --apply: %v", err)
	n.awaitAgain("ends", clockProgram)
	n.await("no move to be under way", func() bool {
		out, _ := n.defrag("--show")
		return strings.Contains(out, "/"+clockProgram) && !strings.Contains(out, ": moving")
	})
	out, _ := n.defrag("--show")
	// its cgroup may be gone before the runtime says that it has ended: then the move is undone
	if moved := strings.Contains(out, ": moved in "); moved != (err == nil) {
		t.Errorf("numafit defrag --apply: %v, and then:\n%s", err, out)
	}
	n.checkAll()
	n.dropStatic("ends")
	n.awaitStatic("waits") // it has room now, if it had none before
	n.checkAll()
	n.dropStatic("waits")
	n.dropStatic("rest")
}

// anonymous is how many bytes a cgroup has on NUMA nodes of this list, and on others.
func (n *node) anonymous(numaStat, on string) (there, elsewhere int) {
	n.Helper()
	for _, field := range strings.Fields(line(n.read(numaStat), "anon ")) {
		var node, bytes int
		if _, err := fmt.Sscanf(field, "N%d=%d", &node, &bytes); err != nil {
			n.Fatalf("%s: %q", numaStat, field)
		}
		if n.set(on)[node] {
			there += bytes
		} else {
			elsewhere += bytes
		}
	}
	return there, elsewhere
}

// In mode auto a refused pod gets its room without anybody asking, by a container whose pod allows that.
func TestInsideMoveByItself(t *testing.T) {
	n, mib := inside(t), 32
	n.configure("defragment: {mode: auto}\n")
	n.startAnew()
	clock := n.fragment("yields", mib, notes{"numafit.io/movable": "true"})
	n.putRefused("asks")
	n.awaitStatic("asks")
	t.Log(n.logged("event=moved ", "pod=yields-"+nodeName))
	n.checkMoved(clock, mib)
	for _, name := range []string{"asks", "yields", "rest"} {
		n.dropStatic(name)
	}
}
