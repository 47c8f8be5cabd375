package interop

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authentication "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheServerAcceptsEveryOverlay(t *testing.T) {
	overlays, err := os.ReadDir(filepath.Join(os.Getenv("DEPLOY"), "overlays"))
	if err != nil {
		t.Fatal(err)
	}
	folders := []string{base, crds}
	for _, o := range overlays {
		folders = append(folders, filepath.Join("overlays", o.Name()))
	}
	if len(folders) < 5 {
		t.Fatalf("only %v", folders)
	}
	for _, c := range []string{evicting, volcano, observed, ownNode} {
		t.Run(c, func(t *testing.T) {
			list, err := rendered(base, c)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := kubectl(joined(list), "apply", "--dry-run=server", "-f", "-"); err != nil {
				t.Error(err)
			}
		})
	}
	for _, f := range folders {
		t.Run(f, func(t *testing.T) {
			if _, err := kubectl("", "apply", "--dry-run=server", "-k", filepath.Join(os.Getenv("DEPLOY"), f)); err != nil {
				t.Error(err)
			}
		})
	}
}

// admission puts a component's admission policy in force for the test.
func (r *rig) admission(component string) {
	r.Helper()
	list, err := rendered(base, component)
	if err != nil {
		r.Fatal(err)
	}
	var policies []manifest
	for _, m := range list {
		if strings.HasPrefix(m.kind, "ValidatingAdmissionPolicy") {
			policies = append(policies, m)
		}
	}
	if len(policies) != 2 {
		r.Fatalf("%d objects of a policy", len(policies))
	}
	if _, err := kubectl(joined(policies), "apply", "--server-side", "-f", "-"); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { kubectl(joined(policies), "delete", "-f", "-") })
}

// writeNodesToken gives numafitd a token as it has in a DaemonSet's pod on the node.
func (r *rig) writeNodesToken() {
	r.Helper()
	pods := r.kube.CoreV1().Pods(account.namespace)
	daemon, err := pods.Create(background, &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "numafitd-", Namespace: account.namespace},
		Spec: v1.PodSpec{NodeName: r.name, ServiceAccountName: account.name,
			Containers: []v1.Container{{Name: "numafitd", Image: "none"}}}}, metav1.CreateOptions{})
	if err != nil {
		r.Fatal(err)
	}
	now := int64(0)
	r.Cleanup(func() { pods.Delete(background, daemon.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}) })
	r.writeToken(&authentication.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: daemon.Name, UID: daemon.UID})
}

// Each node's token is good for its own object only, where that component is installed.
func TestANodeWritesNoOtherNodesObject(t *testing.T) {
	r := prepareRig(t)
	r.admission(ownNode)
	path := "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies/other?fieldManager=numafit"
	body := `{"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology", "metadata": {"name": "other"}, "zones": []}`
	r.eventually("the policy is in force", func() bool {
		defer r.topologies().Delete(background, "other", metav1.DeleteOptions{})
		status, _ := asAccount(t, r.token, "PATCH", path, body)
		return status == http.StatusForbidden
	})
	r.writeNodesToken()
	if status, text := asAccount(t, r.token, "PATCH", path, body); status != http.StatusForbidden {
		t.Errorf("another node's: %d, %s", status, text)
	}
	r.startRuntime()
	r.startDaemon()
	r.waitConnected()
	r.agrees()
}
