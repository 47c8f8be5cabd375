package e2e

import (
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The chart of deploy/helm, installed by helm itself in a real cluster, as its README says.

const (
	release = "numafit"
	// what deploy/helm/numafit can install beside numafitd by itself
	everyValue = "components.deviceClaims=true,components.draDriver=true,components.evict=true,components.numatopology=true," +
		"components.observedPlacement=true,components.ownNode=true,components.podmonitor=true,components.quiet=true," +
		"extender.enabled=true,extender.numatopology=true,extender.networkPolicy.enabled=true," +
		"extender.networkPolicy.controlPlane={10.1.0.0/24},extender.networkPolicy.nodes={10.1.0.0/24}"
	podMonitors = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "podmonitors.monitoring.coreos.com"},
		"spec": {"group": "monitoring.coreos.com", "scope": "Namespaced", "names": {"kind": "PodMonitor", "plural": "podmonitors"},
		"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}`
)

func TestClusterHelmFromInstallToUninstall(t *testing.T) {
	c := newCluster(t)
	var before map[string]bool
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"the namespace is made, as the chart's README says", func() {
			c.kubectl("create", "namespace", numafit)
			c.kubectl("label", "namespace", numafit, "pod-security.kubernetes.io/enforce=privileged")
			c.await("what every namespace has", func() bool {
				return c.ask("GET", "/api/v1/namespaces/"+numafit+"/serviceaccounts/default", nil, nil) == http.StatusOK &&
					c.ask("GET", "/api/v1/namespaces/"+numafit+"/configmaps/kube-root-ca.crt", nil, nil) == http.StatusOK
			})
			c.must(os.WriteFile(c.path("podmonitors.json"), []byte(podMonitors), 0o600))
			c.kubectl("apply", "-f", c.path("podmonitors.json"))
			c.kubectl("wait", "--for=condition=Established", "--timeout="+patience.String(), "-f", c.path("podmonitors.json"))
			before = c.allObjects()
		}},
		{"the chart is installed, and its test passes", c.helmInstalls},
		{"the test fails where the settings are wrong, and the daemon goes on", c.helmTestFails},
		{"a pod runs where it is decided, and the node's report follows", c.placesAndReports},
		{"an upgrade of settings reaches the daemon that runs", c.helmChangesSettings},
		{"every component and the extender are accepted by the server, and rolled back", c.helmInstallsAll},
		{"an upgrade to another image moves nobody", c.helmUpgrades},
		{"uninstalled it leaves nothing", func() { c.helmUninstalls(before) }},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			c.T = t
			began := time.Now()
			step.do()
			t.Logf("figure: %s: %.1f s", step.name, time.Since(began).Seconds())
		}) {
			break
		}
	}
	c.T = t
	if !t.Failed() {
		c.kubectl("delete", "namespace", numafit) // so that nothing is left to the end of the cluster
	}
}

func (c *cluster) helm(args ...string) string {
	c.Helper()
	out, err := c.tryHelm(args...)
	return c.done("helm", args, out, err)
}

func (c *cluster) tryHelm(args ...string) (string, error) {
	c.Helper()
	cmd := exec.Command(filepath.Join(os.Getenv("HELM"), "helm"), append([]string{"--kubeconfig", c.kubeconfig("admin", "admin"), "-n", numafit}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+c.dir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// helmed installs or upgrades, with the values that a machine needs which is made up.
func (c *cluster) helmed(verb string, args ...string) {
	c.Helper()
	probe := map[string]any{"periodSeconds": 1, "timeoutSeconds": 1}
	var mounts, volumes []any
	for _, name := range []string{"cpu", "node"} {
		path := "/sys/devices/system/" + name
		mounts = append(mounts, map[string]any{"name": name, "mountPath": path, "readOnly": true})
		volumes = append(volumes, map[string]any{"name": name, "hostPath": map[string]any{"path": path, "type": "Directory"}})
	}
	values := map[string]any{
		"image":    map[string]any{"tag": c.tag},
		"settings": map[string]any{"topologyManagerPolicy": c.policy, "mode": c.mode},
		"daemonSet": map[string]any{"extraArgs": []string{"--set=sweepInterval=0"}, "patch": map[string]any{
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"volumes": volumes, "containers": []any{
				map[string]any{"name": "numafitd", "volumeMounts": mounts, "livenessProbe": probe, "readinessProbe": probe}}}}}}},
	}
	path := c.path("values.json")
	c.must(os.WriteFile(path, toJSON(values), 0o600))
	c.helm(append([]string{verb, release, filepath.Join(os.Getenv("DEPLOY"), "helm/numafit"), "-f", path}, args...)...)
}

func (c *cluster) helmInstalls() {
	c.helmed("install", "--wait", "--timeout="+patience.String())
	c.awaitRollout()
	if said := c.helm("test", release, "--timeout="+patience.String()); !strings.Contains(said, "Phase:          Succeeded") {
		c.Errorf("helm test says:\n%s", said)
	}
	if _, err := c.tryKubectl("-n", numafit, "get", "pod", "numafitd-test"); err == nil {
		c.Error("the test's pod is still there")
	}
	notes := c.helm("get", "notes", release)
	for _, words := range []string{"rollout status ds/numafitd", "localhost/numafit:" + c.tag, "settings.mode=release", "pod-security.kubernetes.io/enforce=privileged"} {
		if !strings.Contains(notes, words) {
			c.Errorf("%q is not in the notes:\n%s", words, notes)
		}
	}
	c.settled()
	c.agrees()
}

func (c *cluster) helmTestFails() {
	c.helmed("upgrade", "--set", "settings.sweepInterval=never")
	out, err := c.tryHelm("test", release, "--timeout="+patience.String())
	if err == nil || !strings.Contains(out, "pod numafitd-test failed") {
		c.Errorf("helm test: %v\n%s", err, out)
	}
	if said := c.kubectl("-n", numafit, "logs", "numafitd-test", "-c", "settings"); !strings.Contains(said, "sweepInterval") {
		c.Errorf("its log does not name the setting:\n%s", said)
	}
	c.helmed("upgrade")
	c.helm("test", release, "--timeout="+patience.String())
	c.checkNotRestarted()
}

func (c *cluster) helmChangesSettings() {
	changed := "topologyManagerPolicy: " + c.policy + " -> single-numa-node"
	c.policy = "single-numa-node"
	c.helmed("upgrade", "--wait", "--timeout="+patience.String())
	c.await("the new settings", func() bool { return strings.Contains(c.daemonLog(), changed) })
	c.checkNotRestarted()
}

// helmInstallsAll does not wait for the pods: what some of them need is not on this node.
func (c *cluster) helmInstallsAll() {
	revision := strings.TrimSpace(c.kubectl("-n", numafit, "get", "secret", "-l", "owner=helm,status=deployed", "-o", "jsonpath={.items[0].metadata.labels.version}"))
	c.helmed("upgrade", "--set", everyValue)
	manifests := c.helm("get", "manifest", release)
	c.must(os.WriteFile(c.path("manifests.yaml"), []byte(manifests), 0o600))
	there := strings.Count(c.kubectl("get", "-f", c.path("manifests.yaml"), "-o", "name"), "\n")
	if wanted := strings.Count("\n"+manifests, "\nkind: "); there != wanted || wanted < 20 {
		c.Errorf("%d objects are there, of %d", there, wanted)
	}
	// what the server keeps is what was sent: nothing is dropped as unknown. So it is with the pods of `helm test`.
	hooks := c.helm("get", "hooks", release)
	if nr := strings.Count("\n"+hooks, "\nkind: Pod\n"); nr != 2 {
		c.Errorf("%d pods of helm test:\n%s", nr, hooks)
	}
	c.must(os.WriteFile(c.path("hooks.yaml"), []byte(hooks), 0o600))
	c.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", c.path("manifests.yaml"), "-f", c.path("hooks.yaml"))
	c.helm("rollback", release, revision, "--wait", "--timeout="+patience.String())
	c.awaitRollout()
	c.settled()
}

func (c *cluster) helmUpgrades() {
	c.ctr("images", "tag", "localhost/numafit:"+c.tag, "localhost/numafit:next")
	c.tag = "next"
	old := c.daemonPods().Items[0].Metadata.UID
	before := picture(exclusive(c.settled()))
	c.helmed("upgrade", "--wait", "--timeout="+patience.String())
	c.awaitRollout()
	if pods := c.daemonPods().Items; len(pods) != 1 || pods[0].Metadata.UID == old {
		c.Errorf("the old pod is there still: %+v", pods)
	}
	if now := picture(exclusive(c.settled())); now != before || now == "" {
		c.Errorf("before:\n%s\nnow:\n%s", before, now)
	}
}

func (c *cluster) helmUninstalls(before map[string]bool) {
	c.helm("upgrade", release, filepath.Join(os.Getenv("DEPLOY"), "helm/numafit"), "--reset-then-reuse-values", "--set", "settings.mode=release")
	c.kubectl("-n", numafit, "rollout", "restart", daemonSet)
	c.awaitRollout()
	c.await("the pins to be given back", func() bool { return strings.Contains(c.daemonLog(), "event=pins-released") })
	c.helm("uninstall", release, "--wait", "--timeout="+patience.String())
	c.kubectl("delete", "noderesourcetopologies", "--all")
	var left []string
	for late := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		left = slices.Sorted(maps.Keys(c.allObjects()))
		left = slices.DeleteFunc(left, func(name string) bool { return before[name] })
		if len(left) == 0 || time.Now().After(late) {
			break
		}
	}
	if len(left) != 0 {
		c.Errorf("left are:\n%s", strings.Join(left, "\n"))
	}
	c.must(os.RemoveAll("/run/numafit"))
}

// allObjects are those of every kind and namespace, but for what comes and goes by itself, pods of these
// tests, and the kind that helm leaves there.
func (c *cluster) allObjects() map[string]bool {
	c.Helper()
	var kinds []string
	for _, kind := range strings.Fields(c.kubectl("api-resources", "--verbs=list", "-o", "name")) {
		if !strings.HasPrefix(kind, "events") && !strings.HasPrefix(kind, "componentstatuses") && !strings.HasPrefix(kind, "leases") {
			kinds = append(kinds, kind)
		}
	}
	all := map[string]bool{}
	for _, line := range strings.Split(c.kubectl("get", strings.Join(kinds, ","), "-A", "--ignore-not-found",
		"-o", `jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{"\n"}{end}`), "\n") {
		if line != "" && !strings.HasPrefix(line, "Pod default/") && !strings.Contains(line, "topology.node.k8s.io") {
			all[line] = true
		}
	}
	if len(all) < 50 {
		c.Fatalf("%d objects only", len(all))
	}
	return all
}
