package e2e

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// A case of a node in a virtual machine: numafitd not as a unit but in a pod, with the mounts and the
// rights of deploy/'s DaemonSet. There is no API server, so it is a static pod.

const (
	deployed  = "/usr/local/share/e2e" // what node-vm puts there for this
	daemonPod = "numafitd"             // its container's name as well
)

// A pod that the unit has placed stays where it is under the pod, those that come then are placed as well,
// and nothing moves when numafitd's container ends, or when the unit is back.
func TestInsideStaticPod(t *testing.T) {
	n := inside(t)
	n.run("ctr", "-n", "k8s.io", "images", "import", deployed+"/numafit.tar")
	n.runStatic("early", guaranteed, nil, []want{{name: "one", milli: 1000, memory: 32 * mi}})
	early := n.others(n.checkAll())
	n.configure(quietSetting)
	movable := n.movable()
	t.Cleanup(n.unitAgain)
	n.rest("numafitd")
	n.putManifest(daemonPod, n.staticDaemon())
	n.awaitDaemonPod("")
	n.awaitStatic(daemonPod) // its probe finds it ready
	if by := n.status().SharedPool.Enforced; by != "cgroup" {
		t.Errorf("the pod enforces the pool by %s", by)
	}
	if now := n.others(n.checkAll()); now != early {
		t.Errorf("with the unit:\n%s\nwith the pod:\n%s", early, now)
	}
	n.awaitKeptOff(movable, n.putAnnotated("quiet", guaranteed, notes{"numafit.io/quiet": "irq"}, want{name: "main", milli: 1000, memory: 32 * mi}))
	n.dropStatic("quiet")
	own := n.runThree()
	before := n.others(n.checkAll())
	if n.exclusive(own, "two") != 2 || n.exclusive(own, "part") != 0 || len(n.status().Containers) != 6 {
		t.Errorf("two containers of own, early, batch, best and numafitd: %+v", n.status().Containers)
	}

	id := n.pods[daemonPod].containers[daemonPod]
	n.killContainer(n.pods[daemonPod], daemonPod)
	n.awaitDaemonPod(id)
	if now := n.others(n.checkAll()); now != before {
		t.Errorf("before it was killed:\n%s\nafter:\n%s", before, now)
	}

	n.unitAgain()
	if now := n.others(n.checkAll()); now != before {
		t.Errorf("with the pod:\n%s\nwith the unit again:\n%s", before, now)
	}
}

// staticDaemon is the DaemonSet's pod as a file for the kubelet: without what only an API server has, and
// with the settings that are on the node.
func (n *node) staticDaemon() []byte {
	n.Helper()
	_, template, ok := strings.Cut(n.read(deployed+"/daemonset.yaml"), "\n  template:\n")
	text := "apiVersion: v1\nkind: Pod\n" + strings.ReplaceAll("\n"+template, "\n    ", "\n")[1:]
	for _, change := range [][2]string{
		{"\nmetadata:\n", "\nmetadata:\n  name: " + daemonPod + "\n"},
		{"  serviceAccountName: numafitd\n", ""},
		{"configMap:\n      name: numafitd\n", "hostPath: {path: /etc/numafit, type: Directory}\n"},
		{"imagePullPolicy: IfNotPresent", "imagePullPolicy: Never"},
		{"      readOnly: true\n      recursiveReadOnly: IfPossible\n", ""}, // components/own-cpus
		{"    volumeMounts:\n", "    volumeMounts:\n    - {name: interrupts, mountPath: /host/proc/irq}\n" +
			"    - {name: cpus, mountPath: /host/sys/devices/system/cpu}\n"}, // components/quiet
		{"  volumes:\n", "  volumes:\n  - {name: interrupts, hostPath: {path: /proc/irq, type: Directory}}\n" +
			"  - {name: cpus, hostPath: {path: /sys/devices/system/cpu, type: Directory}}\n"},
	} {
		ok = ok && strings.Count(text, change[0]) == 1
		text = strings.Replace(text, change[0], change[1], 1)
	}
	if !ok {
		n.Fatalf("the DaemonSet is not as expected here:\n%s", text)
	}
	return []byte(text)
}

// awaitDaemonPod waits until numafitd's pod has another container than this one, and all is connected.
func (n *node) awaitDaemonPod(than string) {
	n.Helper()
	n.await("numafitd's container to run", func() bool {
		n.look()
		p := n.pods[daemonPod]
		return p != nil && p.containers[daemonPod] != "" && p.containers[daemonPod] != than
	})
	n.awaitInOrder()
}

// unitAgain ends numafitd's pod, if it is there, and has the unit run.
func (n *node) unitAgain() {
	n.Helper()
	if err := os.Remove(n.path("pods/" + daemonPod + ".json")); err == nil {
		n.await("numafitd's pod to end", func() bool {
			n.look()
			return n.pods[daemonPod] == nil
		})
	}
	n.wake("numafitd")
	n.awaitInOrder()
}

// others is a picture without numafitd's own container.
func (n *node) others(s status) string {
	s.Containers = slices.DeleteFunc(slices.Clone(s.Containers), func(h held) bool { return h.Container == daemonPod })
	return picture(s)
}
