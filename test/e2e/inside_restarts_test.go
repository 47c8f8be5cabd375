package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"syscall"
	"testing"
)

// Cases of a node in a virtual machine: services that end and come back, CPUs that go, a reboot, and what
// the unit keeps numafitd from.

// What runs stays where it is when a service ends in good order or is killed, and a pod that comes while it
// is away is placed beside it. How a kubelet ends is nothing to numafitd.
func TestInsideServicesAreKilled(t *testing.T) {
	n := insideAsLeft(t)
	n.haveThree()
	before := n.checkAll()
	for _, end := range []struct {
		name   string
		signal syscall.Signal
		pod    string // that comes meanwhile
	}{
		{"numafitd", syscall.SIGTERM, ""},
		{"numafitd", syscall.SIGKILL, ""},
		{"containerd", syscall.SIGTERM, ""},
		{"containerd", syscall.SIGKILL, "after-containerd"},
		{"numafitd", syscall.SIGKILL, "after-numafitd"},
		{"kubelet", syscall.SIGKILL, "after-kubelet"},
	} {
		n.signal(end.name, end.signal, func() {
			if end.pod != "" {
				n.putPod(end.pod, guaranteed, nil, []want{{name: "one", milli: 1000, memory: 32 * mi}})
			}
		})
		if end.pod == "" {
			n.checkUnmoved(picture(before))
			continue
		}
		n.awaitStatic(end.pod)
		after := n.checkAll()
		for _, h := range before.Containers {
			if h.Exclusive && n.held(h.ID) != h {
				t.Errorf("after %v of %s:\n%s\nbefore:\n%s", end.signal, end.name, picture(after), picture(before))
			}
		}
		if n.exclusive(n.pods[end.pod], "one") != 1 {
			t.Errorf("%s has no CPU of its own:\n%s", end.pod, picture(after))
		}
		before = after
	}
	for _, pod := range []string{"after-containerd", "after-numafitd", "after-kubelet"} {
		n.dropStatic(pod)
	}
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
	n := insideAsLeft(t)
	if !n.hasRebooted() {
		n.haveThree()
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

// awaitAgain waits until the kubelet has started a container anew that has ended. Its own status still has the
// old one as ready for a moment.
func (n *node) awaitAgain(pod, container string) {
	n.Helper()
	n.await(container+" to run again", func() bool {
		n.look()
		return n.pods[pod].containers[container] != ""
	})
}
