package interop

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Values arrive where they belong, and wrong ones are refused.

func TestLintFindsNothing(t *testing.T) {
	for name, values := range map[string]string{"by itself": "shadow=false", "with the extender": "extender.enabled=true", "in mode shadow": "shadow=true"} {
		t.Run(name, func(t *testing.T) {
			if said := helm(t, "lint", "--strict", chart(), "-n", namespace, "--set", values); strings.Contains(said, "[WARNING]") || strings.Contains(said, "[ERROR]") {
				t.Error(said)
			}
		})
	}
}

func settings(t *testing.T, args ...string) string {
	t.Helper()
	config := template(t, args...)["ConfigMap "+namespace+"/numafitd"]
	if config == nil {
		t.Fatal("there is no ConfigMap numafitd")
	}
	return config["data"].(map[string]any)["numafitd.yaml"].(string)
}

// inForce is what numafitd makes of them, key by key.
func inForce(t *testing.T, text string) map[string]string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "numafitd.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(os.Getenv("NUMAFITD"), "--print-config", "--config", path, "--set", "machine=kep3545-8",
		"--node-name", "gpu-1", "--node-label", "example.com/pool=latency").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, out, text)
	}
	all := map[string]string{}
	for _, line := range strings.Split(string(out), "\n") {
		if key, value, ok := strings.Cut(line, ": "); ok && !strings.HasPrefix(line, " ") {
			all[key] = value
		}
	}
	return all
}

func TestSettingsGoIntoTheConfigMap(t *testing.T) {
	plain, changed := inForce(t, settings(t)), inForce(t, settings(t,
		"--set", "settings.topologyManagerPolicy=restricted",
		"--set", "settings.systemReserved.cpu=1500m",
		"--set", "settings.mergeVisitBudget=1048577",
		"--set", "settings.journalMaxBytes=64Mi",
		"--set-json", `settings.nodes=[{"names": ["gpu-*"], "labels": {"example.com/pool": "latency"}, "settings": {"topologyManagerScope": "pod"}}]`))
	wanted := map[string]string{"topologyManagerPolicy": "restricted", "systemReserved.cpu": "1500m", "mergeVisitBudget": "1048577",
		"journalMaxBytes": "64Mi", "topologyManagerScope": "pod"}
	for key, value := range changed {
		want, ours := wanted[key]
		if !ours {
			want = plain[key]
		} else if plain[key] == want {
			t.Errorf("%s is %s in any case", key, want)
		}
		if value != want {
			t.Errorf("%s: wanted %q, got %q", key, want, value)
		}
	}
	if len(changed) < 40 {
		t.Errorf("%d settings only", len(changed))
	}
}

func TestAFileOfSettingsGoesThereAsItIs(t *testing.T) {
	path := inDeploy("numafitd.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := settings(t, "--set-file", "settingsFile="+path); got != string(text) {
		t.Errorf("it is another one:\n%s", got)
	}
}

func TestSettingsOfTheExtenderGoIntoItsConfigMapAndReplaceItsPods(t *testing.T) {
	const config = "ConfigMap " + namespace + "/numafit-extender-HASH"
	list := template(t, "--set", "extender.enabled=true,extender.settings.hint.ttl=3m")
	if text := list[config]["data"].(map[string]any)["extender.yaml"].(string); !strings.Contains(text, "ttl: 3m") || !strings.Contains(text, "clientCAFile: /etc") {
		t.Error(text)
	}
	name := func(values string) string {
		return hash.FindString(helm(t, "template", "x", chart(), "-n", namespace, "--set", "extender.enabled=true"+values))
	}
	if a, b := name(""), name(",extender.settings.hint.ttl=3m"); a == "" || a == b {
		t.Errorf("both are called %q", a)
	}
}

func TestValuesOfPodsArrive(t *testing.T) {
	for _, of := range []struct{ values, key string }{
		{"daemonSet", "DaemonSet " + namespace + "/numafitd"}, {"extender", "Deployment " + namespace + "/numafit-extender"}} {
		t.Run(of.values, func(t *testing.T) {
			set := func(key, value string) []string { return []string{"--set-json", of.values + "." + key + "=" + value} }
			args := []string{"--set", "extender.enabled=true", "--set-json", `imagePullSecrets=[{"name": "key-of-registry"}]`}
			for key, value := range map[string]string{"nodeSelector": `{"example.com/pool": "numa"}`, "tolerations": `[{"key": "only-this"}]`,
				"affinity": `{"nodeAffinity": {}}`, "priorityClassName": `"other-class"`, "resources": `{"limits": {"memory": "77Mi"}}`,
				"podLabels": `{"example.com/l": "label-of-pod"}`, "podAnnotations": `{"example.com/a": "annotation-of-pod"}`,
				"extraArgs": `["--set=logLevel=debug"]`} {
				args = append(args, set(key, value)...)
			}
			text := asYAML(t, template(t, args...)[of.key])
			for _, words := range []string{"example.com/pool: numa", "kubernetes.io/os: linux", "- key: only-this", "nodeAffinity: {}", "priorityClassName: other-class",
				"memory: 77Mi", "example.com/l: label-of-pod", "example.com/a: annotation-of-pod", "- --set=logLevel=debug", "- name: key-of-registry"} {
				if strings.Count(text, words) != 1 {
					t.Errorf("%q is there %d times in\n%s", words, strings.Count(text, words), text)
				}
			}
		})
	}
	if text := asYAML(t, template(t, "--set", "daemonSet.updateStrategy.type=OnDelete,extender.enabled=true,extender.replicas=3,extender.tlsSecret=other")); !strings.Contains(text, "type: OnDelete") ||
		!strings.Contains(text, "replicas: 3") || !strings.Contains(text, "secretName: other") || strings.Contains(text, "rollingUpdate:\n      maxUnavailable: 1") {
		t.Error(text)
	}
}

func TestWrongValuesAreRefused(t *testing.T) {
	for _, c := range []struct{ values, says string }{
		{"components.quite=true", "quite"},
		{"components.evict=maybe", "components/evict"},
		{"settings.topologyManagerPolcy=none", "topologyManagerPolcy"},
		{"shadows=true", "shadows"},
		{"image.pullPolicy=Sometimes", "pullPolicy"},
		{"extender.replicas=0", "extender/replicas"},
		{"extender.enabled=true,extender.networkPolicy.enabled=true", "controlPlane"},
		{"extender.networkPolicy.nodes={everywhere}", "networkPolicy/nodes"},
		{"daemonSet.extraArgs={mode=off}", "daemonSet/extraArgs"},
	} {
		if said := refused(t, "template", "x", chart(), "--set", c.values); !strings.Contains(said, c.says) {
			t.Errorf("%s: %s", c.values, said)
		}
	}
}
