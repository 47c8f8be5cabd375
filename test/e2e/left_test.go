package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
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
		args := strings.Fields(shim)
		i := slices.Index(args, "-id")
		for _, l := range strings.Split(string(log), "\n") {
			if i >= 0 && strings.Contains(l, args[i+1]) {
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
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		text, _ := os.ReadFile(path)
		args := strings.Split(string(text), "\x00")
		i := slices.Index(args, "-id")
		if i < 0 || !strings.HasSuffix(args[0], "containerd-shim-runc-v2") || !sandboxFailed(string(log), args[i+1]) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		n.must(err)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != syscall.ESRCH { // it may have ended by itself
			n.must(err)
		}
	}
}

// sandboxFailed: the log says that this sandbox was cleaned up as one that failed.
func sandboxFailed(log, id string) bool {
	for _, l := range strings.Split(log, "\n") {
		if strings.Contains(l, "cleaning up failed sandbox") && strings.Contains(l, id) {
			return true
		}
	}
	return false
}

func shims(dir string) (found []string) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		text, _ := os.ReadFile(path) // empty for a process that has ended
		line := strings.ReplaceAll(string(text), "\x00", " ")
		isShim := strings.Contains(line, "containerd-shim") || strings.Contains(line, "conmon ")
		if isShim && strings.Contains(line, dir+"/") {
			found = append(found, line)
		}
	}
	return found
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
