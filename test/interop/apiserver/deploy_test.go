package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbac "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// What deploy/ installs, as kubectl renders it.

// account is numafitd's, and granted what its roles allow it.
var (
	account struct{ namespace, name string }
	granted []rbac.PolicyRule
)

const (
	base        = "base"             // folders of deploy/
	crds        = "crd"              // each file of it one kind
	evicting    = "components/evict" // what refusalAction needs
	volcano     = "components/numatopology"
	observed    = "components/observed-placement"
	ownNode     = "components/own-node"
	topologyCRD = "noderesourcetopologies"
	volcanoCRD  = "numatopologies"
)

// everything is what the account may do in the tests: all that any setting needs.
var everything = []string{evicting, volcano, observed}

type manifest struct {
	kind string
	text []byte // YAML
}

// rendered are the objects of a folder of deploy/, with these components of it.
func rendered(folder string, components ...string) (list []manifest, err error) {
	dir, err := os.MkdirTemp(theControlPlane.home, "rendered")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	relative, err := filepath.Rel(dir, os.Getenv("DEPLOY"))
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("resources: [%s]\n", filepath.Join(relative, folder))
	for i, c := range components {
		if i == 0 {
			text += "components:\n"
		}
		text += "- " + filepath.Join(relative, c) + "\n"
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		return nil, err
	}
	out, err := kubectl("", "kustomize", dir)
	if err != nil {
		return nil, err
	}
	for _, text := range strings.Split(out, "\n---\n") {
		var head struct{ Kind string }
		if err := yaml.Unmarshal([]byte(text), &head); err != nil {
			return nil, err
		}
		list = append(list, manifest{head.Kind, []byte(text)})
	}
	return list, nil
}

// joined are all of them as one text.
func joined(list []manifest) string {
	var texts []string
	for _, m := range list {
		texts = append(texts, string(m.text))
	}
	return strings.Join(texts, "\n---\n")
}

// inCluster are the kinds that the tests need for numafitd to be the account that deploy/ makes it.
var inCluster = []string{"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}

// install makes the kinds of objects, and the account with all that any setting needs.
func (c *controlPlane) install() error {
	for _, kind := range []string{topologyCRD, volcanoCRD} {
		if err := c.installCRD(kind); err != nil {
			return err
		}
	}
	list, err := rendered(base, everything...)
	if err != nil {
		return err
	}
	var needed []manifest
	for _, m := range list {
		if !slices.Contains(inCluster, m.kind) {
			continue
		}
		needed = append(needed, m)
		if err := note(m); err != nil {
			return err
		}
	}
	if account.name == "" || len(granted) == 0 {
		return fmt.Errorf("deploy/%s has no service account with a role", base)
	}
	_, err = kubectl(joined(needed), "apply", "--server-side", "-f", "-")
	return err
}

// note keeps in mind whom that makes, and what it may do.
func note(m manifest) error {
	switch m.kind {
	case "ServiceAccount":
		var object struct {
			Metadata struct{ Namespace, Name string }
		}
		if err := yaml.Unmarshal(m.text, &object); err != nil {
			return err
		}
		account.namespace, account.name = object.Metadata.Namespace, object.Metadata.Name
	case "ClusterRole", "Role":
		var role rbac.ClusterRole
		if err := yaml.Unmarshal(m.text, &role); err != nil {
			return err
		}
		granted = append(granted, role.Rules...)
	}
	return nil
}

func crdFile(plural string) string {
	return filepath.Join(os.Getenv("DEPLOY"), crds, plural+".yaml")
}

func (c *controlPlane) installCRD(plural string) error {
	if _, err := kubectl("", "apply", "--server-side", "-f", crdFile(plural)); err != nil {
		return err
	}
	_, err := kubectl("", "wait", "--for=condition=Established", "--timeout=30s", "-f", crdFile(plural))
	return err
}

// grants are "verb resource.group" of all rules.
func grants(rules []rbac.PolicyRule) (list []string) {
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					list = append(list, verb+" "+strings.TrimSuffix(resource+"."+group, "."))
				}
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}
