package e2e

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// What the cgroups that pods are in look like when there are none: the same at any time, after each case.

// checkCgroupsAreAsFound compares with what was there when it was called for the first time. numafitd may have been
// there before: then as well nothing keeps the kubelet's cgroups from the whole machine.
func (n *node) checkCgroupsAreAsFound() {
	n.Helper()
	path := n.path("cgroups.json")
	if _, err := os.Stat(path); err != nil {
		found := cpusetsOfCgroups(n.T)
		cpus, mems := n.wholeMachine()
		whole := cpus + ";" + mems + ";" + noQuota
		for path, set := range found {
			if set != whole {
				n.Errorf("%s: %q without pods, not %q", path, set, whole)
			}
		}
		n.must(os.WriteFile(path, toJSON(found), 0o600))
		return
	}
	var before map[string]string
	n.must(json.Unmarshal([]byte(n.read(path)), &before))
	checkSameCpusets(n.T, before)
}

// checkSameCpusets insists that the cgroups from kubepods on are those of before, and as they were.
func checkSameCpusets(t *testing.T, before map[string]string) {
	t.Helper()
	after := cpusetsOfCgroups(t)
	for path, set := range after {
		if old, ok := before[path]; !ok || old != set {
			t.Errorf("%s: %q, before %q (there: %v)", path, set, old, ok)
		}
	}
	for path := range before {
		if _, ok := after[path]; !ok {
			t.Errorf("%s is gone", path)
		}
	}
}

// cpusetsOfCgroups are the cgroups from kubepods on, with what is in force there. What is written is not
// looked at: a set that has been bounded once has all CPUs at the end, as the kernel lets none become empty. Nor
// which controllers there are: systemd takes those away that no pod needs any more.
func cpusetsOfCgroups(t *testing.T) map[string]string {
	all := map[string]string{}
	roots, _ := filepath.Glob("/sys/fs/cgroup/kubepods*")
	if len(roots) != 1 {
		t.Fatalf("the kubelet's cgroups are %v", roots)
	}
	filepath.WalkDir(roots[0], func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			all[path] = nearest(path, "cpuset.cpus.effective") + ";" + nearest(path, "cpuset.mems.effective") + ";" + quota(path)
		}
		return nil
	})
	return all
}

// nearest is a file of a cgroup, or of the closest one above that has it.
func nearest(dir, file string) string {
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if text, err := os.ReadFile(filepath.Join(dir, file)); err == nil {
			return strings.TrimSpace(string(text))
		}
	}
	return ""
}

func quota(dir string) string {
	text, err := os.ReadFile(dir + "/cpu.max")
	if err != nil {
		return "max " + strconv.Itoa(period)
	}
	return strings.TrimSpace(string(text))
}
