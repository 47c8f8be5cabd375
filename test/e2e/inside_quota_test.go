package e2e

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Cases of a node in a virtual machine: containers with CPUs of their own and their pods have no CFS quota,
// all others keep theirs, and what the kubelet has set comes back.

// quotas are those of a pod, by container; "" is the pod's own.
type quotas map[string]string

const (
	quotaUID = "0d5cfa4c-7d1c-4a2e-9d11-3f3c2c6f8a01" // the file of a pod that has one can change while it runs
	noQuota  = "max 100000"
	keep     = "exclusiveCPUs:\n  cfsQuota: keep\n"
)

// putResizablePod gives the kubelet a pod with CPUs of its own, and a part of a shared one. Given again with other
// figures the pod is resized.
func (n *node) putResizablePod(ownMilli, partMilli int64) {
	n.Helper()
	text := manifest("own", guaranteed, nil, []want{{name: "two", milli: ownMilli, memory: 32 * mi},
		{name: "part", milli: partMilli, memory: 32 * mi}})
	n.putManifest("own", bytes.Replace(text, []byte(`"metadata":{`), []byte(`"metadata":{"uid":"`+quotaUID+`",`), 1))
}

func TestInsideQuotaIsLifted(t *testing.T) {
	n := inside(t)
	n.putResizablePod(2000, 300)
	n.runStatic("alone", guaranteed, nil, []want{{name: "one", milli: 1000, memory: 32 * mi}})
	n.awaitStatic("own")
	n.awaitQuotas("alone", quotas{"": noQuota, "one": noQuota})
	n.awaitQuotas("own", quotas{"": noQuota, "two": noQuota, "part": "30000 100000"})
	two := cpusetCgroup(n.pid(n.pods["own"].containers["two"]))
	own := filepath.Dir(two)

	for _, by := range []struct {
		what    string
		systemd bool // it has to be there
		do      func()
	}{
		{"somebody", false, func() { n.must(os.WriteFile(own+"/cpu.max", []byte("50000 100000"), 0o644)) }},
		{"systemd, of one slice", true, func() {
			n.run("systemctl", "set-property", "--runtime", filepath.Base(own), "CPUWeight=50")
		}},
		{"systemd, of all", true, func() { n.run("systemctl", "daemon-reload") }},
		{"the kubelet", false, func() { n.putResizablePod(2000, 400) }},
	} {
		if by.systemd && !hasSystemd() {
			continue
		}
		before := n.status().Quota.Rewritten
		by.do()
		n.await("the pod's quota to be written by "+by.what+", and lifted", func() bool {
			return n.status().Quota.Rewritten > before && n.read(own+"/cpu.max") == noQuota
		})
		n.await("the container to have no quota after "+by.what, func() bool { return n.read(two+"/cpu.max") == noQuota })
	}
	for _, cpus := range []int{1, 2} {
		n.putResizablePod(int64(cpus)*1000, 400)
		n.await(fmt.Sprintf("the kubelet to resize it to %d CPUs", cpus), func() bool { return n.exclusive(n.pods["own"], "two") == cpus })
		n.checkAll()
	}
	n.must(os.WriteFile(two+"/cpu.max", []byte("200000 100000"), 0o644)) // the kubelet's; another one would stay
	lifted := quotas{"": noQuota, "two": noQuota, "part": "40000 100000"}
	n.awaitQuotas("own", lifted)

	kubelets := quotas{"": "240000 100000", "two": "200000 100000", "part": "40000 100000"}
	for range 2 { // the second time numafitd was killed before
		n.configure(keep)
		n.awaitQuotas("own", kubelets)
		n.awaitQuotas("alone", quotas{"": "100000 100000", "one": "100000 100000"})
		n.configure("")
		n.awaitQuotas("own", lifted)
		n.awaitQuotas("alone", quotas{"": noQuota, "one": noQuota})
		n.signal("numafitd", syscall.SIGKILL)
		n.awaitQuotas("own", lifted)
	}

	n.rest("numafitd")
	n.dropStatic("alone")
	n.wake("numafitd")
	n.awaitInOrder()
	n.await("the pod that has ended to be forgotten", func() bool { return n.status().Quota.Pods == 1 })
	n.runStatic("later", guaranteed, nil, []want{{name: "one", milli: 1000, memory: 32 * mi}})
	n.awaitQuotas("later", quotas{"": noQuota, "one": noQuota})
	n.checkAll()

	n.configure("mode: release\n")
	n.startAnew()
	n.awaitQuotas("own", kubelets)
	n.awaitQuotas("later", quotas{"": "100000 100000", "one": "100000 100000"})
	if q := n.status().Quota; q.Pods != 0 {
		t.Errorf("the quota of %d pods is lifted still", q.Pods)
	}
	n.checkAllHaveTheMachine()
	n.rest("numafitd")
	n.checkAllHaveTheMachine()
	n.wake("numafitd")
}

func (n *node) quotas(pod string) quotas {
	n.Helper()
	all := quotas{}
	for name, id := range n.pods[pod].containers {
		dir := cpusetCgroup(n.pid(id))
		all[name], all[""] = n.read(dir+"/cpu.max"), n.read(filepath.Dir(dir)+"/cpu.max")
	}
	return all
}

func (n *node) awaitQuotas(pod string, wanted quotas) {
	n.Helper()
	n.awaitOrder("the quotas of "+pod, func() string {
		if is := n.quotas(pod); !maps.Equal(is, wanted) {
			return fmt.Sprintf("%v, not %v", is, wanted)
		}
		return ""
	})
}
