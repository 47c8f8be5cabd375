package interop

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// The chart installs just what kustomize does: each overlay and each component has a value.

func checkSame(t *testing.T, wanted, got objects, without ...string) {
	t.Helper()
	for key := range wanted {
		if got[key] == nil && !slices.Contains(without, key) {
			t.Errorf("the chart has no %s", key)
		}
	}
	for key, object := range got {
		if slices.Contains(without, key) {
			t.Errorf("the chart has %s", key)
		}
		if have, want := asYAML(t, object), asYAML(t, wanted[key]); have != want {
			t.Errorf("%s is not what kustomize has; from the first line that differs:\n%s", key, firstDifference(want, have))
		}
	}
	if len(wanted) < 5 {
		t.Errorf("kustomize has %d objects only", len(wanted))
	}
}

func firstDifference(want, have string) string {
	a, b := strings.Split(want, "\n"), strings.Split(have, "\n")
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	return "wanted:\n" + strings.Join(a[i:min(len(a), i+12)], "\n") + "\ngot:\n" + strings.Join(b[i:min(len(b), i+12)], "\n")
}

func TestByItselfTheChartIsTheOverlayForContainerd(t *testing.T) {
	wanted := kustomize(t, []string{"overlays/containerd"}, nil, nil)
	checkSame(t, wanted, template(t), "Namespace /"+namespace) // which helm wants to be there before
	checkSame(t, wanted, template(t, "--set", "namespace.create=true"))
}

func TestAnOverlayIsSomeValues(t *testing.T) {
	values := map[string]string{"containerd": "shadow=false", "crio": "shadow=false", "shadow": "shadow=true"}
	for _, overlay := range folders(t, "overlays") {
		t.Run(overlay, func(t *testing.T) {
			checkSame(t, kustomize(t, []string{"overlays/" + overlay}, nil, nil),
				template(t, "--set", "namespace.create=true,"+values[overlay]))
		})
	}
}

func folders(t *testing.T, in string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(inDeploy(in))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// valueOf is own-cpus' ownCpus.
func valueOf(component string) string {
	words := strings.Split(component, "-")
	for i, word := range words[1:] {
		words[i+1] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, "")
}

func TestAComponentIsAValue(t *testing.T) {
	var all, values []string
	for _, component := range folders(t, "components") {
		value := "components." + valueOf(component) + "=true"
		all, values = append(all, "components/"+component), append(values, value)
		t.Run(component, func(t *testing.T) {
			checkSame(t, kustomize(t, []string{"base"}, []string{"components/" + component}, nil),
				template(t, "--set", "namespace.create=true,components.ownCpus=false,"+value))
		})
	}
	t.Run("all of them", func(t *testing.T) {
		checkSame(t, kustomize(t, []string{"base"}, all, nil), template(t, "--set", "namespace.create=true,"+strings.Join(values, ",")))
	})
	t.Run("none of them", func(t *testing.T) {
		checkSame(t, kustomize(t, []string{"base"}, nil, nil), template(t, "--set", "namespace.create=true,components.ownCpus=false"))
	})
}

func TestValuesHaveEachComponentOnce(t *testing.T) {
	var values struct{ Components map[string]bool }
	text, err := os.ReadFile(filepath.Join(chart(), "values.yaml"))
	if err == nil {
		err = yaml.Unmarshal(text, &values)
	}
	if err != nil {
		t.Fatal(err)
	}
	all := folders(t, "components")
	for _, component := range all {
		if _, there := values.Components[valueOf(component)]; !there {
			t.Errorf("values.yaml has no components.%s", valueOf(component))
		}
	}
	if len(values.Components) != len(all) {
		t.Errorf("values.yaml has %d components, deploy/components %d", len(values.Components), len(all))
	}
}

func TestTheExtenderIsTheFolderOfKustomize(t *testing.T) {
	for name, c := range map[string]struct {
		components []string
		values     string
	}{
		"as it is":           {nil, ""},
		"with Numatopology":  {[]string{"numatopology"}, ",extender.numatopology=true"},
		"with NetworkPolicy": {[]string{"networkpolicy"}, ",extender.networkPolicy.enabled=true,extender.networkPolicy.controlPlane={192.0.2.0/24},extender.networkPolicy.nodes={192.0.2.0/24}"},
		"with both":          {[]string{"numatopology", "networkpolicy"}, ",extender.numatopology=true,extender.networkPolicy.enabled=true,extender.networkPolicy.controlPlane={192.0.2.0/24},extender.networkPolicy.nodes={192.0.2.0/24}"},
	} {
		t.Run(name, func(t *testing.T) {
			inner := inDeploy("extender")
			var components []string
			for _, component := range c.components {
				components = append(components, component)
			}
			wanted := kustomize(t, []string{"overlays/containerd"}, nil, nil)
			for key, object := range inFolder(t, inner, components) {
				wanted[key] = object
			}
			checkSame(t, wanted, template(t, "--set", "namespace.create=true,extender.enabled=true"+c.values))
		})
	}
}

// inFolder has what a folder's kustomization.yaml is made into, with components in it, as its comments
// say; they are of its namespace and labels then.
func inFolder(t *testing.T, folder string, components []string) objects {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "copy"), os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "copy/kustomization.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(text, "components: ["+strings.Join(components, ", ")+"]\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	out, complaints, err := command(t, filepath.Join(os.Getenv("KUBERNETES"), "kubectl"), "kustomize", filepath.Join(dir, "copy"))
	if err != nil {
		t.Fatal(err, complaints)
	}
	return parsed(t, out)
}

func TestAnImageIsTheImageOfKustomize(t *testing.T) {
	images := map[string]any{"images": []any{map[string]any{"name": "localhost/numafit", "newName": "registry.example.com/numafit", "newTag": "t"}}}
	checkSame(t, kustomize(t, []string{"overlays/containerd"}, nil, images),
		template(t, "--set", "namespace.create=true,image.repository=registry.example.com/numafit,image.tag=t"))
}

// What kustomize merges into an object the value patch does, too: into lists by their keys, null away.
func TestAPatchIsMergedAsKustomizeDoes(t *testing.T) {
	const patch = `{
		"metadata": {"annotations": {"example.com/a": "b"}},
		"spec": {"minReadySeconds": 9, "template": {"spec": {
			"hostNetwork": null,
			"tolerations": [{"key": "k", "operator": "Exists"}],
			"initContainers": [{"name": "first", "image": "i"}],
			"volumes": [{"name": "more", "emptyDir": {}}, {"name": "run", "hostPath": {"path": "/run/other"}}],
			"containers": [{"name": "numafitd", "resources": {"limits": {"memory": "1Gi"}},
				"env": [{"name": "X", "value": "y"}],
				"ports": [{"containerPort": 9466, "name": "ui"}],
				"volumeMounts": [{"name": "more", "mountPath": "/more"}, {"name": "nri", "mountPath": "/var/run/nri", "readOnly": true}]}]}}}}`
	wanted := kustomize(t, []string{"overlays/containerd"}, nil, map[string]any{"patches": []any{map[string]any{
		"target": map[string]any{"kind": "DaemonSet", "name": "numafitd"},
		"patch":  `{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "numafitd", "annotations": {"example.com/a": "b"}}, ` + patch[strings.Index(patch, `"spec"`):]}}})
	checkSame(t, wanted, template(t, "--set-json", "daemonSet.patch="+strings.Join(strings.Fields(patch), " "), "--set", "namespace.create=true"))
}

func TestInAnotherNamespaceNothingNamesTheUsualOne(t *testing.T) {
	var values []string
	for _, component := range folders(t, "components") {
		values = append(values, "components."+valueOf(component)+"=true")
	}
	text := helm(t, "template", "x", chart(), "-n", "elsewhere", "--set", "extender.enabled=true,namespace.create=true,"+strings.Join(values, ","))
	if strings.Contains(text, namespace) {
		t.Errorf("%s is in what goes elsewhere", namespace)
	}
	for _, words := range []string{`"system:serviceaccount:elsewhere:numafitd"`, "namespace: elsewhere\n", "name: elsewhere\n"} {
		if !strings.Contains(text, words) {
			t.Errorf("there is no %s", words)
		}
	}
}
