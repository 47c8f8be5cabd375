package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Cases of a node in a virtual machine: services that end and come back, CPUs that go, a reboot, and what
// the unit keeps numafitd from.

func TestInsideServicesAreKilled(t *testing.T) {
	n := inside(t)
	own := n.runThree()
	before := picture(n.checkAll())
	for _, name := range services {
		for _, s := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
			n.signal(name, s)
			n.checkUnmoved(before)
		}
	}
	n.checkAll()
	for i, name := range services { // a pod comes while one of them is away for a moment
		pod := "after" + strconv.Itoa(i)
		n.must(syscall.Kill(n.mainPID(name), syscall.SIGKILL))
		n.putPod(pod, guaranteed, nil, []want{{name: "one", milli: 1000, memory: 32 * mi}})
		n.awaitInOrder()
		n.awaitStatic(pod)
		n.checkAll()
	}
	if h := n.held(own.containers["two"]); !strings.Contains(before, "cpus "+h.CPUs+" ") {
		t.Errorf("it has moved to %s:\n%s", h.CPUs, before)
	}
}

// A CPU that goes is nobody's, and whose it was keeps the rest; once it is back nothing is lost.
func TestInsideCPUGoesAndComesBack(t *testing.T) {
	n := inside(t)
	p := n.runThree()
	before := n.checkAll()
	own, shared := sortedKeys(n.set(n.held(p.containers["two"]).CPUs)), sortedKeys(n.set(before.Pool))
	for _, cpu := range []int{shared[len(shared)-1], own[1]} {
		online := fmt.Sprintf("/sys/devices/system/cpu/cpu%d/online", cpu)
		t.Cleanup(func() { os.WriteFile(online, []byte("1"), 0o644) })
		n.must(os.WriteFile(online, []byte("0"), 0o644))
		n.awaitCPUs(7)
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
		n.awaitCPUs(8)
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

func (n *node) hasRebooted() bool {
	_, err := os.Stat(n.path("rebooted"))
	return err == nil
}

// After a reboot no container is what it was, and each pod has its CPUs again. The case runs twice: until
// it has the node start anew, and after that.
func TestInsideReboot(t *testing.T) {
	n := inside(t)
	if !n.hasRebooted() {
		n.runThree()
		n.checkAll()
		n.must(os.WriteFile(n.path("rebooted"), nil, 0o600))
		fmt.Println(rebootWords)
		if hasSystemd() {
			n.run("systemctl", "reboot")
		} else {
			n.run("busybox", "reboot", "-f")
		}
		select {} // it ends with the node
	}
	n.must(os.Remove(n.path("rebooted")))
	for _, name := range []string{"own", "batch", "best"} {
		n.awaitStatic(name)
	}
	n.checkAll()
	if n.exclusive(n.pods["own"], "two") != 2 {
		t.Errorf("%+v", n.status().Containers)
	}
}

// What `systemd-analyze security` makes of the unit, and that the process is really confined so.
func TestInsideSystemdConfinesNumafitd(t *testing.T) {
	n := inside(t)
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
	for _, path := range []string{"/etc/x", "/usr/x", "/var/lib/x", "/sys/kernel/mm/ksm/run", "/proc/sys/kernel/panic"} {
		if out, err := exec.Command("nsenter", "-t", strconv.Itoa(pid), "-m", "busybox", "sh", "-c", ": >"+path).CombinedOutput(); err == nil {
			t.Errorf("%s can be written in its mount namespace: %s", path, out)
		}
	}
	if out, err := exec.Command("nsenter", "-t", strconv.Itoa(pid), "-m", "busybox", "sh", "-c", ": >/run/numafit/x; rm /run/numafit/x").CombinedOutput(); err != nil {
		t.Errorf("its own folder cannot be written: %s", out)
	}
}

// killContainer ends a container's first process, which nobody has asked for.
func (n *node) killContainer(p *pod, name string) {
	n.Helper()
	id := p.containers[name]
	n.must(syscall.Kill(n.pid(id), syscall.SIGKILL))
	n.await(name+" to end", func() bool {
		n.look()
		return n.pods[p.name].containers[name] != id
	})
}

// cpusetsOfCgroups are the cgroups from kubepods on, with what is in force there. What is written is not
// looked at: a set that has been bounded once has all CPUs at the end, as the kernel lets none become empty.
func cpusetsOfCgroups(t *testing.T) map[string]string {
	all := map[string]string{}
	roots, _ := filepath.Glob("/sys/fs/cgroup/kubepods*")
	if len(roots) != 1 {
		t.Fatalf("the kubelet's cgroups are %v", roots)
	}
	filepath.WalkDir(roots[0], func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			for _, file := range []string{"cpuset.cpus.effective", "cpuset.mems.effective", "cpu.max"} {
				text, _ := os.ReadFile(filepath.Join(path, file))
				all[path] += strings.TrimSpace(string(text)) + ";"
			}
		}
		return nil
	})
	return all
}
