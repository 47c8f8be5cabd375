package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Cases of a node in a virtual machine: services that end and come back, CPUs that go, a reboot, and what
// the unit keeps numafitd from.

// What runs stays where it is when a service ends in good order or is killed, and a pod that comes while it
// is away is placed beside it.
func TestInsideServicesAreKilled(t *testing.T) {
	n := insideAsLeft(t)
	n.haveThree()
	before := n.checkAll()
	one := []want{{name: "one", milli: 1000, memory: 32 * mi}}
	for _, end := range []struct {
		name   string
		signal syscall.Signal
		pod    string // that comes meanwhile
	}{
		{"numafitd", syscall.SIGTERM, ""},
		{"numafitd", syscall.SIGKILL, ""},
		{"containerd", syscall.SIGTERM, ""},
		{"containerd", syscall.SIGKILL, "after-containerd"},
		{"kubelet", syscall.SIGTERM, ""},
		{"kubelet", syscall.SIGKILL, "after-kubelet"},
	} {
		n.signal(end.name, end.signal, func() {
			if end.pod != "" {
				n.putPod(end.pod, guaranteed, nil, one)
			}
		})
		if end.pod == "" {
			n.checkUnmoved(picture(before))
			continue
		}
		before = n.checkPlacedBeside(before, end.pod)
	}
	n.rest("numafitd")
	n.putPod("without-numafitd", guaranteed, nil, one)
	n.await("it to run without numafitd", func() bool {
		n.look()
		return n.pods["without-numafitd"] != nil && n.pods["without-numafitd"].containers["one"] != ""
	})
	n.wake("numafitd")
	n.awaitInOrder()
	n.awaitOrder("the kernel to have moved its pages", func() string {
		h := n.held(n.pods["without-numafitd"].containers["one"])
		pages := n.pages(h.ID)
		for node := range pages {
			if !n.set(h.Mems)[node] {
				return fmt.Sprintf("pages by NUMA node: %v, numafitd says %s", pages, h.Mems)
			}
		}
		return ""
	})
	n.checkPlacedBeside(before, "without-numafitd")
	for _, pod := range []string{"after-containerd", "after-kubelet", "without-numafitd"} {
		n.dropStatic(pod)
	}
}

// checkPlacedBeside waits until a pod runs, which has a CPU of its own then, and insists that no other container
// has lost or changed its own.
func (n *node) checkPlacedBeside(before status, pod string) (after status) {
	n.Helper()
	n.awaitStatic(pod)
	after = n.checkAll()
	for _, h := range before.Containers {
		if h.Exclusive && n.held(h.ID) != h {
			n.Errorf("with %s:\n%s\nbefore:\n%s", pod, picture(after), picture(before))
		}
	}
	if n.exclusive(n.pods[pod], "one") != 1 {
		n.Errorf("%s has no CPU of its own:\n%s", pod, picture(after))
	}
	return after
}

// A CPU that goes is nobody's, and whose it was keeps the rest; once it is back nothing is lost.
func TestInsideCPUGoesAndComesBack(t *testing.T) {
	n := insideAsLeft(t)
	p := n.haveThree()
	before := n.checkAll()
	own, shared := sortedKeys(n.set(n.held(p.containers["two"]).CPUs)), sortedKeys(n.set(before.Pool))
	for _, cpu := range []int{shared[len(shared)-1], own[1]} {
		online := fmt.Sprintf("/sys/devices/system/cpu/cpu%d/online", cpu)
		t.Cleanup(func() { os.WriteFile(online, []byte("1"), 0o644) })
		n.must(os.WriteFile(online, []byte("0"), 0o644))
		n.awaitCPUs(nrAllCPUs - 1)
		s := n.checkAll()
		t.Logf("without CPU %d:\npool %s\n%s", cpu, s.Pool, picture(s))
		left := 2
		if cpu == own[1] { // under restricted it stays on its NUMA node, which has no other
			left = 1
		}
		if n.exclusive(p, "two") != left || n.set(s.Pool)[cpu] || n.set(n.held(p.containers["two"]).CPUs)[cpu] {
			t.Errorf("without CPU %d: pool %s\n%s", cpu, s.Pool, picture(s))
		}
		n.must(os.WriteFile(online, []byte("1"), 0o644))
		n.awaitCPUs(nrAllCPUs)
		s = n.checkAll()
		if n.exclusive(p, "two") != 2 || len(n.set(s.Pool)) != len(shared) {
			t.Errorf("with CPU %d again: pool %s, which was %s\n%s", cpu, s.Pool, before.Pool, picture(s))
		}
	}
}

// awaitCPUs waits until numafitd sees so many, and what it has changed then is in force.
func (n *node) awaitCPUs(nr int) {
	n.Helper()
	n.await(fmt.Sprintf("numafitd to see %d CPUs", nr), func() bool { return n.nrCPUs() == nr })
	n.await("all to be in force", func() bool {
		for _, h := range n.status().running() {
			dir := cpusetCgroup(n.pid(h.ID))
			if n.read(dir+"/cpuset.cpus.effective") != h.CPUs || (h.Exclusive && n.read(dir+"/cpuset.cpus") != h.CPUs) {
				return false
			}
		}
		return true
	})
}

// nrCPUs is how many CPUs numafitd sees.
func (n *node) nrCPUs() (nr int) {
	n.Helper()
	for _, node := range n.status().Nodes {
		nr += node.CPUs
	}
	return nr
}

// lifetime is what a reboot ends.
type lifetime struct {
	Boot       string
	Containers []string // their IDs
}

func (n *node) lifetime() lifetime {
	n.Helper()
	l := lifetime{Boot: n.read("/proc/sys/kernel/random/boot_id")}
	for _, h := range n.status().running() {
		l.Containers = append(l.Containers, h.ID)
	}
	return l
}

// After a reboot no container is what it was, and each pod has its CPUs again. The case runs twice: until
// it has the node start anew, and after that.
func TestInsideReboot(t *testing.T) {
	n := insideAsLeft(t)
	text, err := os.ReadFile(n.path("rebooted"))
	if err != nil {
		n.haveThree()
		n.checkAll()
		n.must(os.WriteFile(n.path("rebooted"), toJSON(n.lifetime()), 0o600))
		fmt.Println(rebootWords)
		if hasSystemd() {
			n.run("systemctl", "reboot")
		} else {
			n.run("busybox", "reboot", "-f")
		}
		select {} // it ends with the node
	}
	n.must(os.Remove(n.path("rebooted")))
	var before lifetime
	n.must(json.Unmarshal(text, &before))
	for _, name := range []string{"own", "batch", "best"} {
		n.awaitStatic(name)
	}
	n.checkAll()
	if n.exclusive(n.pods["own"], "two") != 2 {
		t.Errorf("%+v", n.status().Containers)
	}
	now := n.lifetime()
	if len(now.Containers) != 4 || len(before.Containers) != 4 || now.Boot == before.Boot ||
		slices.ContainsFunc(now.Containers, func(id string) bool { return slices.Contains(before.Containers, id) }) {
		t.Errorf("before the reboot:\n%+v\nafter:\n%+v", before, now)
	}
}

// What `systemd-analyze security` makes of the unit, and that the process is really confined so.
func TestInsideSystemdConfinesNumafitd(t *testing.T) {
	n := insideAsLeft(t)
	text := n.run("systemd-analyze", "security", "--no-pager", "numafitd.service")
	figure := regexp.MustCompile(`exposure level for numafitd.service: ([0-9.]+)`).FindStringSubmatch(text)
	if figure == nil {
		t.Fatalf("systemd-analyze security says:\n%s", text)
	}
	fmt.Printf("figure: systemd-analyze security: %s\n", figure[1])
	if level, _ := strconv.ParseFloat(figure[1], 64); level > 2 {
		t.Errorf("the unit is exposed by %s, 2.0 was enough:\n%s", figure[1], text)
	}
	pid := n.mainPID("numafitd")
	status := n.read(fmt.Sprintf("/proc/%d/status", pid))
	for word, want := range map[string]string{"CapEff:": "0000000000000000", "CapBnd:": "0000000000000000",
		"NoNewPrivs:": "1", "Seccomp:": "2"} {
		if is := line(status, word); is != want {
			t.Errorf("%s %s, not %s", word, is, want)
		}
	}
	for _, path := range []string{"/etc/x", "/usr/x", "/var/lib/x", "/sys/kernel/mm/transparent_hugepage/enabled", "/proc/sys/kernel/panic"} {
		n.run("busybox", "sh", "-c", ": >"+path) // outside it can
		if out, err := exec.Command("nsenter", "-t", strconv.Itoa(pid), "-m", "busybox", "sh", "-c", ": >"+path).CombinedOutput(); err == nil {
			t.Errorf("%s can be written in its mount namespace: %s", path, out)
		}
		if strings.HasSuffix(path, "/x") {
			n.must(os.Remove(path))
		}
	}
	if out, err := exec.Command("nsenter", "-t", strconv.Itoa(pid), "-m", "busybox", "sh", "-c", ": >/run/numafit/x && rm /run/numafit/x").CombinedOutput(); err != nil {
		t.Errorf("its own folder cannot be written: %s", out)
	}
}
