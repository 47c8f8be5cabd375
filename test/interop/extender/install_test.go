package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	authentication "k8s.io/api/authentication/v1"
	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// What deploy/extender installs.

const (
	extenderFolder = "extender"
)

var (
	extenderAccount struct{ namespace, name string }
	extenderMay     []rbac.PolicyRule
)

// installExtender makes the account that deploy/extender makes.
func (c *controlPlane) installExtender() error {
	list, err := rendered(extenderFolder)
	if err != nil {
		return err
	}
	var needed []manifest
	for _, m := range list {
		if !slices.Contains(inCluster, m.kind) {
			continue
		}
		needed = append(needed, m)
		var object struct {
			Metadata metav1.ObjectMeta
			Rules    []rbac.PolicyRule
		}
		if err := yaml.Unmarshal(m.text, &object); err != nil {
			return err
		}
		if m.kind == "ServiceAccount" {
			extenderAccount.namespace, extenderAccount.name = object.Metadata.Namespace, object.Metadata.Name
		}
		extenderMay = append(extenderMay, object.Rules...)
	}
	if extenderAccount.name == "" || len(extenderMay) == 0 {
		return fmt.Errorf("deploy/%s has no service account with a role", extenderFolder)
	}
	_, err = kubectl(joined(needed), "apply", "--server-side", "-f", "-")
	return err
}

func (c *controlPlane) tokenOf(namespace, name string) (string, error) {
	answer, err := c.kube.CoreV1().ServiceAccounts(namespace).CreateToken(background, name,
		&authentication.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return answer.Status.Token, nil
}

func TestTheServerAcceptsTheExtender(t *testing.T) {
	newRig(t)
	if _, err := kubectl("", "apply", "--dry-run=server", "-k", filepath.Join(os.Getenv("DEPLOY"), extenderFolder)); err != nil {
		t.Error(err)
	}
	policy := filepath.Join(os.Getenv("DEPLOY"), extenderFolder, "networkpolicy", "networkpolicy.yaml")
	if _, err := kubectl("", "apply", "--dry-run=server", "-n", extenderAccount.namespace, "-f", policy); err != nil {
		t.Error(err)
	}
}
