package e2e

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// What a node may not leave behind: shims (CRI-O's are called conmon), mounts, cgroups.

func (n *node) checkNothingIsLeft() {
	n.endForgottenShims()
	n.awaitOrder("the shims to end", func() string {
		if n.Failed() {
			return ""
		}
		return n.withTheirLog(shims(n.dir))
	})
	for _, s := range shims(n.dir) {
		n.Errorf("a shim is left: %s", s)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	n.must(err)
	for _, l := range strings.Split(string(mounts), "\n") {
		if strings.Contains(l, " "+n.dir+"/") {
			n.Errorf("a mount is left: %s", l)
		}
	}
	n.removeCgroups()
}

// withTheirLog is the shims, each with what containerd's log says of it last.
func (n *node) withTheirLog(left []string) string {
	const most = 8
	var text strings.Builder
	log, _ := os.ReadFile(n.path("containerd.log"))
	for _, shim := range left {
		var of []string
		text.WriteString(shim + "\n")
		id := sandboxOf(shim)
		for _, l := range strings.Split(string(log), "\n") {
			if id != "" && strings.Contains(l, id) {
				of = append(of, l)
			}
		}
		text.WriteString(strings.Join(of[max(0, len(of)-most):], "\n"))
	}
	return text.String()
}

// endForgottenShims: of a sandbox that a plugin refuses containerd 2.4.2 forgets the shim now and
// then, when its end is reported to it while it cleans up.
func (n *node) endForgottenShims() {
	log, _ := os.ReadFile(n.path("containerd.log"))
	for pid, shim := range shimsByPID(n.dir) {
		if id := sandboxOf(shim); id != "" && sandboxFailed(string(log), id) {
			n.endProcess(pid)
		}
	}
}

// endProcess: it may have ended by itself.
func (n *node) endProcess(pid int) {
	if err := syscall.Kill(pid, syscall.SIGKILL); err != syscall.ESRCH {
		n.must(err)
	}
}

// sandboxFailed: the log says that this sandbox was cleaned up as one that failed, or that containerd could
// not take its end as it lost its shim.
func sandboxFailed(log, id string) bool {
	for _, l := range strings.Split(log, "\n") {
		failed := strings.Contains(l, "cleaning up failed sandbox") || strings.Contains(l, "failed to handle sandbox exit event")
		if failed && strings.Contains(l, id) {
			return true
		}
	}
	return false
}

func shims(dir string) []string { return slices.Sorted(maps.Values(shimsByPID(dir))) }

// shimsByPID are their command lines.
func shimsByPID(dir string) map[int]string {
	found := map[int]string{}
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		text, _ := os.ReadFile(path) // empty for a process that has ended
		line := strings.ReplaceAll(string(text), "\x00", " ")
		isShim := strings.Contains(line, "containerd-shim") || strings.Contains(line, "conmon ")
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && isShim && strings.Contains(line, dir+"/") {
			found[pid] = line
		}
	}
	return found
}

// sandboxOf is what a shim of containerd's is for; "": it is none.
func sandboxOf(shim string) string {
	args := strings.Fields(shim)
	if i := slices.Index(args, "-id"); i >= 0 && strings.HasSuffix(args[0], "containerd-shim-runc-v2") {
		return args[i+1]
	}
	return ""
}

// CRI-O makes another one for each conmon, "crio-conmon-ID", and leaves that to who removes the pod's.
var containerID = regexp.MustCompile("^(crio-)?[0-9a-f]{64}$")

// removeCgroups does the kubelet's part, which is to remove the pods' cgroups; those of containers
// are the runtime's, and may not be there any more.
func (n *node) removeCgroups() {
	var found, left []string
	filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.Contains(path+"/", n.cgroup()+"/") {
			found = append(found, path)
		}
		return nil
	})
	slices.Reverse(found) // a folder comes after what is in it
	for _, path := range found {
		if err := os.Remove(path); err != nil || containerID.MatchString(filepath.Base(path)) {
			left = append(left, path)
		}
	}
	if len(left) > 0 {
		n.Errorf("%d cgroups are left, as %s", len(left), left[0])
	}
}

// What containerd loses when a kubelet is killed: with the kubelet's connection the context of its
// call ends, and with that containerd's own clean-up ("context canceled"). Where no kubelet was killed
// it is a failure.

// listed is what containerd lists: containers and sandboxes by id.
func (c *cluster) listed() map[string]bool {
	c.Helper()
	ctx, cancel := soon()
	defer cancel()
	containers, err := c.runtime.ListContainers(ctx, &cri.ListContainersRequest{})
	c.must(err)
	sandboxes, err := c.runtime.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
	c.must(err)
	ids := map[string]bool{}
	for _, one := range containers.Containers {
		ids[one.Id] = true
	}
	for _, one := range sandboxes.Items {
		ids[one.Id] = true
	}
	return ids
}

func (c *cluster) hasLost(what string, lost []string) {
	c.Helper()
	if len(lost) > 0 && !c.killedKubelet {
		c.Errorf("containerd has lost %s: %v", what, lost)
	}
	if len(lost) > 0 {
		c.Logf("figure: containerd has lost %d %s of calls of a kubelet that was killed: %v", len(lost), what, lost)
	}
}

// endLost ends containers that runc has and containerd does not list. Their CPUs are nobody's.
func (c *cluster) endLost() {
	c.Helper()
	var lost []string
	listed := c.listed()
	for id, one := range c.lives().running {
		if !listed[id] {
			lost = append(lost, one.pod+"/"+one.container+" "+id)
			c.run(c.path("runc"), "--root", c.path("runc-state/k8s.io"), "delete", "--force", id)
		}
	}
	c.hasLost("containers", lost)
}

// endLostAll is for the end of a step that has killed a kubelet; what is lost after it is a failure again.
func (c *cluster) endLostAll() {
	c.Helper()
	if c.killedKubelet {
		c.endForgottenShims() // of what is known of containerd anyway
		c.endLostShims()
	}
	c.killedKubelet = false
}

// endLostShims ends those of sandboxes that containerd does not list, once they have had time to end
// by themselves.
func (c *cluster) endLostShims() {
	c.Helper()
	var lost []string
	time.Sleep(3 * time.Second)
	listed := c.listed()
	for pid, shim := range shimsByPID(c.dir) {
		if id := sandboxOf(shim); id != "" && !listed[id] {
			lost = append(lost, id)
			c.endProcess(pid)
		}
	}
	c.hasLost("shims", lost)
}
