package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What make gain writes with --json.
type gainReport struct {
	Cgroups bool `json:"cgroups"`
	Nodes   int  `json:"numa_nodes"`
	Arms    []struct {
		Arm, CPUs, Mems, Pool string
		Quota                 bool
	}
	Places []struct {
		Load, Arm string
		Runs      int
		Pages     map[string]int
		Throttled *int `json:"nr_throttled"`
		Remote    *float64
	}
	Notes []string
}

// gain runs a try of these loads and reads what it has measured.
func gain(t *testing.T, loads string, more ...string) (r gainReport) {
	t.Helper()
	const path = "/tmp/gain.json"
	out, err := exec.Command("gain", append(more, "--quick", "--only", loads, "--json", path)...).CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if r.Nodes != 8 || len(r.Arms) != 4 {
		t.Fatalf("%+v", r)
	}
	return r
}

// checkPlaces holds the pages of each load against its arm.
func (r gainReport) checkPlaces(t *testing.T) {
	t.Helper()
	mems := map[string]string{}
	for _, a := range r.Arms {
		mems[a.Arm] = a.Mems
		if quota := r.Cgroups && (a.Arm == "unpinned" || a.Arm == "static"); a.Quota != quota {
			t.Errorf("%s: quota %v", a.Arm, a.Quota)
		}
	}
	if near, far := mems["numafit"], mems["far"]; len(near) != 1 || len(far) != 1 || near == far {
		t.Fatalf("numafit has memory of node %s, the worst arm of %s", near, far)
	}
	for _, p := range r.Places {
		t.Logf("%s, %s: pages %v", p.Load, p.Arm, p.Pages)
		if p.Runs != 1 || (p.Throttled != nil) != r.Cgroups {
			t.Errorf("%+v", p)
		}
		if p.Load != "loop" {
			checkGainPages(t, mems, p.Arm, p.Pages, p.Remote)
		}
	}
}

// In the machine of eight NUMA nodes: the pages of each load are where its arm says, and nothing is left behind.
func TestGainIsWhereItSaysInAVirtualMachine(t *testing.T) {
	r := gain(t, "triad,chase,loop")
	if !r.Cgroups {
		t.Fatalf("no cgroups: %v", r.Notes)
	}
	r.checkPlaces(t)
	if left, _ := filepath.Glob("/sys/fs/cgroup/numafit-gain.*"); left != nil {
		t.Errorf("%v are left", left)
	}
	control, err := os.ReadFile("/sys/fs/cgroup/cgroup.subtree_control")
	if has := strings.Fields(string(control)); err != nil || !slices.Contains(has, "cpuset") || !slices.Contains(has, "cpu") {
		t.Errorf("the root's controllers were %v before, and are %q", "cpuset cpu", control)
	}
}

func TestGainWithoutCgroupsIsWhereItSaysInAVirtualMachine(t *testing.T) {
	r := gain(t, "triad", "--no-cgroups")
	if r.Cgroups {
		t.Fatal("there are cgroups")
	}
	r.checkPlaces(t)
}

// checkGainPages: of at least a few hundred pages all that are elsewhere are what shares the mapping (numa_maps
// has neighbours as one), and how much is remote is all or nothing where one node has the CPUs and one the memory.
func checkGainPages(t *testing.T, mems map[string]string, arm string, pages map[string]int, remote *float64) {
	t.Helper()
	all := 0
	for _, nr := range pages {
		all += nr
	}
	if all < 256 || remote == nil {
		t.Fatalf("%s: pages %v, remote %v", arm, pages, remote)
	}
	if arm != "numafit" && arm != "far" {
		return
	}
	if node := mems[arm]; pages[node]*100 < all*99 {
		t.Errorf("%s: pages are %v, they are to be on node %s", arm, pages, node)
	}
	if wanted := map[string]float64{"numafit": 0, "far": 1}[arm]; *remote != wanted {
		t.Errorf("%s: %s of the accesses are remote", arm, strconv.FormatFloat(*remote*100, 'f', 0, 64)+" %")
	}
}
