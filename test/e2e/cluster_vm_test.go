package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A cluster whose node is a virtual machine's, with a kernel, cgroups and NUMA nodes of its own, and with
// what deploy/ installs. The control plane is on this machine. QEMU connects for the node, from here: so it
// reaches the API server where pods look for it. The other way the kubelet's port alone is let through.

const (
	gateway     = "10.1.0.2" // QEMU's own, in the node's network
	kubeletPort = "10250"
)

// asNodeOfVM is what a kubelet reads beside its configuration.
var asNodeOfVM = map[string]any{"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1",
	"nodeStatusUpdateFrequency": "10s"} // each one costs an emulated machine something

// nodeInCluster are files of the node, beside those in node/etc.
var nodeInCluster = map[string]string{
	"etc/cni/net.d/10-none.conflist": noNetwork,
	"etc/systemd/system/kubelet.service.d/cluster.conf": `[Service]
ExecStart=
ExecStart=/usr/local/bin/kubelet --config /etc/kubernetes/kubelet.json --config-dir /etc/kubernetes/kubelet.d \
	--kubeconfig /etc/kubernetes/node.kubeconfig --hostname-override ` + nodeName + ` --node-ip ` + nodeIP + ` --v 1
`,
	"etc/systemd/system/network.service.d/cluster.conf": `[Service]
ExecStart=
ExecStart=/usr/local/bin/busybox ip link set lo up
ExecStart=/usr/local/bin/busybox ip address add ` + nodeIP + `/24 dev eth0
ExecStart=/usr/local/bin/busybox ip link set eth0 up
ExecStart=/usr/local/bin/busybox ip route add default via ` + gateway + `
`}

// withoutNumafitd are files of a node that has numafitd as a pod alone: an empty unit is never started.
var withoutNumafitd = map[string]string{"etc/systemd/system/numafitd.service": ""}

// TestClusterVM: each step finds what the one before has left. NODE_VM is the command that boots the node.
func TestClusterVM(t *testing.T) {
	patience, again = 15*time.Minute, time.Second // the node is slow
	c := emptyCluster(t)
	c.policy, c.nrNodes = "restricted", 4
	t.Cleanup(c.endWithVM)
	c.startControlPlane()
	c.bootNode(withoutNumafitd)
	for _, step := range []struct {
		name string
		do   func(*cluster)
	}{
		{"the node joins, and runs a pod", (*cluster).joinsVM},
		{"the DaemonSet is installed, and places what runs already", (*cluster).installsInVM},
		{"pods of each class are pinned, and the node's report follows", (*cluster).pinsInVM},
		{"released and uninstalled it leaves the whole machine to all", (*cluster).uninstallsInVM},
		{"without pods all cgroups are as they were", (*cluster).leavesAsFoundInVM},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			c.T = t
			step.do(c)
		}) {
			break
		}
	}
	c.T = t
}

// bootNode returns when the node's first process runs cases. more: files of the node. The kubelet's port is that of
// this machine, too: a connection comes from 127.0.0.1, which QEMU makes the gateway of.
func (c *cluster) bootNode(more map[string]string) {
	c.Helper()
	c.run("busybox", "ip", "route", "replace", "local", nodeIP, "dev", "lo", "src", "127.0.0.1", "table", "local")
	over := c.path("over")
	config := maps.Clone(kubeletInCluster)
	maps.Copy(config, asNodeOfVM)
	files := maps.Clone(nodeInCluster)
	maps.Copy(files, more)
	files["etc/kubernetes/kubelet.d/cluster.conf"] = string(toJSON(config))
	files["etc/kubernetes/node.kubeconfig"] = c.read(c.kubeconfig("node", "node"))
	for name, text := range files {
		path := filepath.Join(over, name)
		c.must(os.MkdirAll(filepath.Dir(path), 0o755))
		c.must(os.WriteFile(path, []byte(text), 0o600))
	}
	c.must(os.Setenv("OVER", over))
	// While the node waits its clock goes with this machine's, or time-outs would fire before an answer can come
	c.must(os.Setenv("MORE", "-icount shift=3,sleep=on -device virtio-net-pci,netdev=n,romfile= -netdev user,id=n,net=10.1.0.0/24,host="+
		gateway+",dhcpstart="+nodeIP+",hostfwd=tcp:"+nodeIP+":"+kubeletPort+"-"+nodeIP+":"+kubeletPort))
	c.box = boot(c.T, strings.Fields(os.Getenv("NODE_VM")))
	if !c.box.ready() {
		c.FailNow()
	}
}

// endWithVM ends the node as it is, for it is nothing but a process here.
func (c *cluster) endWithVM() {
	if c.Failed() {
		c.showLogs()
		if c.box != nil {
			c.Logf("in the node:\n%s\nconsole:\n%s", c.box.shell("journalctl --no-pager -o cat -n 150 -u kubelet -u containerd; "+
				"numafit status; ip address; ip route; systemctl --failed"), tail(c.box.console()))
		}
	}
	if c.box != nil {
		c.box.end()
	}
	for name := range c.processes {
		c.kill(name)
	}
	os.RemoveAll(c.dir)
}

// shell has the node run a command, and is what that prints.
func (b *box) shell(command string) string {
	fmt.Fprintln(b.line, "sh "+command)
	_, text := b.hear(2*time.Minute, "ended ")
	return text
}

// within has a case run in the node.
func (c *cluster) within(name string) {
	c.Helper()
	// after a panic the cluster is not what it was, so the case has no second try
	result, text := c.box.try(name)
	if result != passed || c.Failed() {
		c.Fatal(text)
	}
	c.Log(text)
}

// status is what numafitd says of itself, in a virtual machine by its pod.
func (c *cluster) status() (s status) {
	c.Helper()
	if c.box == nil {
		return c.node.status()
	}
	out := c.kubectl("-n", numafit, "exec", daemonSet, "--", "numafit", "status", "--json")
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		c.Fatalf("numafit status --json: %v: %s", err, out)
	}
	return s
}

func (c *cluster) joinsVM() {
	c.awaitNode()
	fmt.Printf("figure: the node has joined, %.0f s after power-on\n", time.Since(c.box.began).Seconds())
	c.within("TestInClusterBeginsEmpty")
	c.runs("early", burstable, batch...)
}

func (c *cluster) installsInVM() {
	c.installAll()
	c.agrees()
	c.within("TestInClusterAllIsPinned")
}

// ownInCluster has one container with CPUs of its own, and one without.
var ownInCluster = []want{{name: "two", milli: 2000, memory: 32 * mi}, {name: "part", milli: 300, memory: 32 * mi}}

func (c *cluster) pinsInVM() {
	before := c.agrees()
	c.create("own", guaranteed, ownInCluster...)
	c.create("batch", burstable, batch...)
	c.create("best", bestEffort, want{name: "best"})
	for _, name := range []string{"own", "batch", "best"} {
		c.awaitRunning(name)
		if node := c.pod(name).Spec.NodeName; node != nodeName {
			c.Errorf("%s is on the node %q", name, node)
		}
	}
	c.within("TestInClusterOwnHasItsCPUs")
	reported, during := c.agrees(), c.status()
	own := slices.IndexFunc(during.Containers, func(h held) bool { return h.Pod == "own" && h.Container == "two" })
	if own < 0 || during.SharedPool.Enforced != "cgroup" {
		c.Fatalf("numafit status: %+v", during)
	}
	zone := "node-" + during.Containers[own].Mems
	for name, cpus := range before {
		left, err := strconv.Atoi(cpus)
		c.must(err)
		if name == zone {
			left -= 2
		}
		if reported[name] != strconv.Itoa(left) {
			c.Errorf("two CPUs of %s are taken; the report says %v, and before that %v", zone, reported, before)
		}
	}
	c.delete("own")
	c.await("the report to be as before", func() bool { return maps.Equal(before, c.topology().available()) })
	c.within("TestInClusterAllIsPinned")
	c.runs("own", guaranteed, ownInCluster...) // for what comes
	c.within("TestInClusterOwnHasItsCPUs")
}

// uninstallsInVM goes by deploy/docs/install-and-upgrade.md, step by step.
func (c *cluster) uninstallsInVM() {
	c.mode = "release"
	c.kubectl("apply", "-k", c.overlay())
	c.kubectl("-n", numafit, "rollout", "restart", daemonSet)
	c.awaitRollout()
	if log := c.daemonLog(); !strings.Contains(log, "event=pins-released") {
		c.Errorf("its log does not say that pins are released:\n%s", log)
	}
	c.takeAway()
	c.within("TestInClusterAllHaveTheMachine")
}

func (c *cluster) leavesAsFoundInVM() {
	c.deleteOwn()
	c.within("TestInClusterCgroupsAreAsFound")
}
