package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What deploy/ installs, as its manual says, on a node of a real cluster: from `kubectl apply` to
// `kubectl delete`.

const (
	numafit      = "numafit-system" // the namespace
	daemonSet    = "daemonset/numafitd"
	topologies   = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"
	account      = "system:serviceaccount:" + numafit + ":numafitd"
	credentialID = "authentication.kubernetes.io/credential-id"
)

// TestClusterFromInstallToUninstall: each step finds what the one before has left.
func TestClusterFromInstallToUninstall(t *testing.T) {
	c := newCluster(t)
	for _, step := range []struct {
		name string
		do   func(*cluster)
	}{
		{"the DaemonSet is installed, and numafit answers in it", (*cluster).installs},
		{"a pod runs where it is decided, and the node's report follows", (*cluster).placesAndReports},
		{"settings change while it runs", (*cluster).readsChangedSettings},
		{"a refusal is an event of the pod", (*cluster).tellsRefusals},
		{"kubectl numafit names the rights that are missing, and answers with them", (*cluster).answersInPlugin},
		{"a new token is in use", (*cluster).usesNewTokens},
		{"a daemon that hangs is made anew by its probe", (*cluster).isRevived},
		{"another image moves nobody and gives nothing twice", (*cluster).isUpgraded},
		{"uninstalled it leaves the whole machine to all", (*cluster).uninstalls},
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

// overlay is a folder made as deploy/docs/install-and-upgrade.md says, on top of the one for the runtime: the image, the
// settings, and what is made up here. In a container /sys is the kernel's own.
func (c *cluster) overlay() string {
	c.Helper()
	dir := c.path("overlay")
	c.must(os.MkdirAll(dir, 0o700))
	base, err := filepath.Rel(dir, os.Getenv("DEPLOY"))
	c.must(err)
	settings := c.read(filepath.Join(os.Getenv("DEPLOY"), "base/numafitd.yaml"))
	changed := strings.NewReplacer("topologyManagerPolicy: best-effort", "topologyManagerPolicy: "+c.policy,
		"mode: manage", "mode: "+c.mode).Replace(settings)
	c.must(os.WriteFile(filepath.Join(dir, "numafitd.yaml"), []byte(changed), 0o600))
	var patches []any
	if c.patch != nil {
		patches = append(patches, map[string]any{"target": map[string]any{"kind": "DaemonSet", "name": "numafitd"}, "patch": string(toJSON(c.patch))})
	}
	var components []string
	for _, component := range c.components {
		components = append(components, filepath.Join(base, component))
	}
	c.must(os.WriteFile(filepath.Join(dir, "kustomization.yaml"), toJSON(map[string]any{
		"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
		"resources": []string{filepath.Join(base, "overlays", runtimeName())},
		"images":    []any{map[string]any{"name": "localhost/numafit", "newTag": c.tag}},
		"configMapGenerator": []any{map[string]any{"name": "numafitd", "namespace": numafit, "behavior": "replace",
			"files": []string{"numafitd.yaml"}, "options": map[string]any{"disableNameSuffixHash": true}}},
		"components": components, "patches": patches,
	}), 0o600))
	return dir
}

// onMadeUpMachine also has the probes ask more often.
func onMadeUpMachine() (patch []any) {
	const pod, container = "/spec/template/spec", "/spec/template/spec/containers/0"
	add := func(path string, value any) {
		patch = append(patch, map[string]any{"op": "add", "path": path, "value": value})
	}
	add(container+"/args/-", "--set=sweepInterval=0") // the kernel's cpusets are those of the machine that is there
	for _, name := range []string{"cpu", "node"} {
		path := "/sys/devices/system/" + name
		add(container+"/volumeMounts/-", map[string]any{"name": name, "mountPath": path, "readOnly": true})
		add(pod+"/volumes/-", map[string]any{"name": name, "hostPath": map[string]any{"path": path, "type": "Directory"}})
	}
	for _, probe := range []string{"livenessProbe", "readinessProbe"} {
		add(container+"/"+probe+"/periodSeconds", 1)
		add(container+"/"+probe+"/timeoutSeconds", 1)
	}
	add(container+"/livenessProbe/terminationGracePeriodSeconds", 1) // for one that does not hear
	return patch
}

func (c *cluster) installAll() {
	c.Helper()
	deploy := os.Getenv("DEPLOY")
	c.kubectl("apply", "-k", filepath.Join(deploy, "crd"))
	c.kubectl("wait", "--for=condition=Established", "--timeout="+patience.String(), "-f",
		filepath.Join(deploy, "crd/noderesourcetopologies.yaml"))
	c.kubectl("apply", "-k", c.overlay())
	c.awaitRollout()
}

func (c *cluster) awaitRollout() {
	c.Helper()
	c.kubectl("-n", numafit, "rollout", "status", daemonSet, "--timeout="+patience.String())
}

func (c *cluster) installs() {
	c.installAll()
	if said := c.kubectl("-n", numafit, "exec", daemonSet, "--", "numafit", "status"); !strings.Contains(said, "numafitd") {
		c.Errorf("numafit status in the pod says:\n%s", said)
	}
	c.settled()
	c.agrees()
}

// settled is when all that runs is where numafitd says. This CRI-O takes updates with answers alone: a
// pool that has grown is in force with the next event, which is made to come.
func (c *cluster) settled() status {
	c.Helper()
	const quiet = 3 * time.Second
	next := time.Now().Add(quiet)
	for late := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		c.look()
		s := c.status()
		amiss := c.problem(s)
		if amiss == "" {
			return s
		}
		if time.Now().After(late) {
			c.Fatalf("not in order: %s\n%s", amiss, picture(s))
		}
		if crio != "" && time.Now().After(next) {
			c.runs("an-event", burstable, batch...)
			c.delete("an-event")
			next = time.Now().Add(quiet)
		}
	}
}

type topology struct {
	Metadata   struct{ ResourceVersion string }
	Attributes []struct{ Name, Value string }
	Zones      []struct {
		Name      string
		Resources []struct{ Name, Capacity, Allocatable, Available string }
	}
}

func (c *cluster) topology() (o topology) {
	c.Helper()
	c.ask("GET", topologies+"/"+nodeName, nil, &o)
	return o
}

// available are the CPUs of each zone.
func (o topology) available() map[string]string {
	all := map[string]string{}
	for _, z := range o.Zones {
		for _, r := range z.Resources {
			if r.Name == "cpu" {
				all[z.Name] = r.Available
			}
		}
	}
	return all
}

// agrees waits until the API server has what numafitd says of its CPUs.
func (c *cluster) agrees() map[string]string {
	c.Helper()
	var reported, said map[string]string
	c.await("the node's report", func() bool {
		reported, said = c.topology().available(), map[string]string{}
		for _, n := range c.status().Nodes {
			said[fmt.Sprint("node-", n.ID)] = fmt.Sprint(n.CPUs - n.Held - n.Reserved)
		}
		return len(said) == c.nrNodes && maps.Equal(reported, said)
	})
	return reported
}

func (c *cluster) placesAndReports() {
	before := c.agrees()
	p := c.runs("db", guaranteed, db...)
	c.settled()
	h := c.held(p.containers["db"])
	c.checkCreated(h.ID)
	c.checkNear(h)
	if !h.Exclusive || len(c.set(h.CPUs)) != 4 {
		c.Errorf("db has %+v", h)
	}
	during := c.agrees()
	if zone := "node-" + h.Mems; maps.Equal(before, during) || during[zone] == before[zone] {
		c.Errorf("db has %+v; the report says %v, and said %v", h, during, before)
	}
	c.delete("db")
	c.await("the report to be as before", func() bool { return maps.Equal(before, c.topology().available()) })
	c.runs("stays", guaranteed, db...)
	c.runs("shares", burstable, batch...)
	c.settled()
}

// readsChangedSettings waits for the line about this very key: the settings are read again for other
// reasons, too, as when the kubelet's version becomes known.
func (c *cluster) readsChangedSettings() {
	changed := fmt.Sprintf("topologyManagerPolicy: %s -> single-numa-node", c.policy)
	c.policy = "single-numa-node"
	c.kubectl("apply", "-k", c.overlay())
	c.await("the new settings", func() bool { return strings.Contains(c.daemonLog(), changed) })
	c.checkNotRestarted()
}

func (c *cluster) daemonLog() string {
	c.Helper()
	return c.kubectl("-n", numafit, "logs", daemonSet)
}

func (c *cluster) daemonPods() (all struct{ Items []apiPod }) {
	c.Helper()
	c.ask("GET", "/api/v1/namespaces/"+numafit+"/pods", nil, &all)
	return all
}

func (c *cluster) checkNotRestarted() {
	c.Helper()
	if pods := c.daemonPods().Items; len(pods) != 1 || !pods[0].ready() || pods[0].Status.ContainerStatuses[0].RestartCount != 0 {
		c.Errorf("it is not the first one: %+v", pods)
	}
}

func (c *cluster) tellsRefusals() {
	c.create("huge", guaranteed, want{name: "main", milli: 20000, memory: 64 * mi})
	c.await("its event", func() bool { return c.event("TopologyAffinityError", "huge") != "" })
	if words := c.event("TopologyAffinityError", "huge"); !strings.Contains(words, "single-numa-node") {
		c.Errorf("20 CPUs of nodes that have 16: %s", words)
	}
	c.delete("huge")
	c.settled()
}

// usesNewTokens: the service account is made anew, so that its tokens of before are worth nothing;
// kubelets write new ones before the old ones end.
func (c *cluster) usesNewTokens() {
	before := c.tokensUsed()
	if len(before) != 1 {
		c.Fatalf("numafitd has used the tokens %v", before)
	}
	c.kubectl("-n", numafit, "delete", "serviceaccount", "numafitd")
	c.kubectl("apply", "-k", c.overlay())
	c.kubeletProcess.stop(c.T) // it keeps tokens in mind
	c.startKubelet()
	c.await("a new token in use", func() bool { // the API server believes in the old one for 10 s
		c.runs("report-me", guaranteed, db...)
		c.agrees()
		c.delete("report-me")
		return len(c.tokensUsed()) == 2
	})
	c.checkNotRestarted()
}

// tokensUsed are those with which numafitd was allowed to write its report, by the audit log.
func (c *cluster) tokensUsed() map[string]int {
	c.Helper()
	used := map[string]int{}
	for _, e := range c.audit() {
		if e.ObjectRef.Resource == "noderesourcetopologies" && e.ResponseStatus.Code < 300 {
			used[strings.Join(e.User.Extra[credentialID], " ")]++
		}
	}
	return used
}

type auditEvent struct {
	User struct {
		Extra map[string][]string
	}
	Verb           string
	ObjectRef      struct{ APIGroup, Resource string }
	ResponseStatus struct{ Code int }
}

// audit is what the API server has written down of everybody's requests.
func (c *cluster) audit() (events []auditEvent) {
	c.Helper()
	for d := json.NewDecoder(strings.NewReader(c.read(c.path("audit.log")))); ; {
		var e auditEvent
		if err := d.Decode(&e); err != nil { // io.EOF, or half a line
			return events
		}
		events = append(events, e)
	}
}

func (c *cluster) isRevived() {
	before := picture(exclusive(c.settled()))
	name := c.daemonPods().Items[0].Metadata.Name
	c.must(syscall.Kill(c.pid(c.pods[name].containers["numafitd"]), syscall.SIGSTOP))
	c.await("the kubelet to start it again", func() bool {
		pods := c.daemonPods().Items
		return len(pods) == 1 && pods[0].ready() && pods[0].Status.ContainerStatuses[0].RestartCount == 1
	})
	if now := picture(exclusive(c.settled())); now != before {
		c.Errorf("before:\n%s\nnow:\n%s", before, now)
	}
}

// isUpgraded: pods come all the while, and some of them find nobody who places them.
func (c *cluster) isUpgraded() {
	const nrPods = 6
	if crio == "" { // which has it by that name since it was started
		c.ctr("images", "tag", "localhost/numafit:"+c.tag, "localhost/numafit:next")
	}
	c.tag = "next"
	old := c.daemonPods().Items[0].Metadata.UID
	before := strings.Split(picture(exclusive(c.settled())), "\n")
	c.kubectl("apply", "-k", c.overlay())
	for i := range nrPods {
		c.create(fmt.Sprint("meanwhile-", i), guaranteed, db...)
		if i == nrPods/2 {
			c.await("the old one to go", func() bool {
				pods := c.daemonPods().Items
				return len(pods) == 0 || pods[0].Metadata.UID != old
			})
		}
	}
	c.awaitRollout()
	for i := range nrPods {
		c.awaitRunning(fmt.Sprint("meanwhile-", i))
	}
	after := picture(exclusive(c.settled()))
	if nr := strings.Count(after, "\n") + 1; nr != len(before)+nrPods {
		c.Errorf("%d have CPUs of their own, not %d:\n%s", nr, len(before)+nrPods, after)
	}
	for _, l := range before {
		if !strings.Contains(after, l) {
			c.Errorf("%s has moved:\n%s", l, after)
		}
	}
	c.agrees()
}

// uninstalls goes by deploy/docs/install-and-upgrade.md, step by step.
func (c *cluster) uninstalls() {
	c.settled()
	c.takeAway()
	running := c.running()
	cpus, mems := c.read("/sys/devices/system/cpu/online"), c.read("/sys/devices/system/node/has_memory")
	for _, p := range c.pods {
		for name, id := range p.containers {
			c.setCPUs(id, cpus, mems)
			if nowCPUs, nowMems := c.placed(id); nowCPUs != cpus || nowMems != mems {
				c.Errorf("%s of %s has cpus %s mems %s", name, p, nowCPUs, nowMems)
			}
		}
	}
	c.must(os.RemoveAll("/run/numafit"))
	if strings.Contains(running, "numafitd") || !strings.Contains(running, "stays/db ") {
		c.Errorf("these run:\n%s", running)
	}
}

func (c *cluster) takeAway() {
	c.Helper()
	c.kubectl("delete", "-k", c.overlay())
	c.kubectl("delete", "noderesourcetopologies", "--all")
	for _, path := range []string{"/api/v1/namespaces/" + numafit, topologies + "/" + nodeName,
		"/apis/rbac.authorization.k8s.io/v1/clusterroles/numafitd", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/numafitd"} {
		if status := c.ask("GET", path, nil, nil); status != http.StatusNotFound {
			c.Errorf("%s is still there: %d", path, status)
		}
	}
}
