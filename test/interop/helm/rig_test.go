package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// The chart and the kustomizations of deploy/, as helm and kubectl render them.

const namespace = "numafit-system"

func TestMain(m *testing.M) {
	for _, name := range []string{"NUMAFITD", "NUMAFIT", "ROOT", "KUBERNETES", "HELM"} {
		if os.Getenv(name) == "" {
			fmt.Println("not run by test/interop/helm/run:", name, "is not set")
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func inDeploy(path string) string { return filepath.Join(os.Getenv("ROOT"), "deploy", path) }

func chart() string { return inDeploy("helm/numafit") }

// A line for each link in the chart.
var links = regexp.MustCompile(`(?m)^walk\.go.*found symbolic link.*\n`)

// command runs a program; it returns what that printed, and what it complained of.
func command(t *testing.T, program string, args ...string) (string, string, error) {
	t.Helper()
	cmd := exec.Command(program, args...)
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_DATA_HOME="+home)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	return out.String(), links.ReplaceAllString(complaints.String(), ""), err
}

func helm(t *testing.T, args ...string) string {
	t.Helper()
	out, complaints, err := command(t, filepath.Join(os.Getenv("HELM"), "helm"), args...)
	if err != nil {
		t.Fatalf("helm %s: %v: %s\n%s", strings.Join(args, " "), err, complaints, out)
	}
	return out
}

// refused is what helm complains of.
func refused(t *testing.T, args ...string) string {
	t.Helper()
	out, complaints, err := command(t, filepath.Join(os.Getenv("HELM"), "helm"), args...)
	if err == nil {
		t.Fatalf("helm %s: taken:\n%s", strings.Join(args, " "), out)
	}
	return complaints
}

// template has what the chart installs, without what `helm test` runs.
func template(t *testing.T, args ...string) objects {
	t.Helper()
	return parsed(t, helm(t, append([]string{"template", "numafit", chart(), "-n", namespace, "--skip-tests"}, args...)...))
}

// kustomize has what these folders of deploy/, with more keys of a kustomization.yaml, are made into.
func kustomize(t *testing.T, resources, components []string, more map[string]any) objects {
	t.Helper()
	dir := t.TempDir()
	all := map[string]any{"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
		"resources": relative(t, dir, resources), "components": relative(t, dir, components)}
	for key, value := range more {
		all[key] = value
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, complaints, err := command(t, filepath.Join(os.Getenv("KUBERNETES"), "kubectl"), "kustomize", dir)
	if err != nil {
		t.Fatalf("kubectl kustomize: %v: %s\n%s", err, complaints, text)
	}
	return parsed(t, out)
}

func relative(t *testing.T, dir string, folders []string) (list []string) {
	t.Helper()
	for _, folder := range folders {
		path, err := filepath.Rel(dir, inDeploy(folder))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, path)
	}
	return list
}

type objects map[string]map[string]any // by "kind namespace/name"

// The hash of a file in the name of its ConfigMap: helm and kustomize have different ones.
var hash = regexp.MustCompile(`numafit-extender-[0-9a-z]{10}\b`)

func parsed(t *testing.T, text string) objects {
	t.Helper()
	list := objects{}
	for _, text := range regexp.MustCompile(`(?m)^---$`).Split(text, -1) {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(hash.ReplaceAllString(text, "numafit-extender-HASH")), &object); err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		if object == nil {
			continue
		}
		metadata := object["metadata"].(map[string]any)
		inside, _ := metadata["namespace"].(string)
		key := fmt.Sprintf("%s %s/%s", object["kind"], inside, metadata["name"])
		if list[key] != nil {
			t.Fatalf("%s is there twice", key)
		}
		list[key] = object
	}
	return list
}

func asYAML(t *testing.T, v any) string {
	t.Helper()
	text, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
