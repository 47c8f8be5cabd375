package interop

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	nri "github.com/containerd/nri/pkg/adaptation"
	authentication "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A node of the cluster: its object, a runtime (the file of that name of the NRI rig), and numafitd,
// which reaches the API server as deploy/'s service account, through a proxy.

const (
	nriVersion = "v0.12.5"
	gi         = 1 << 30
)

var (
	quiet      = log.New(io.Discard, "", 0)
	background = context.Background()
)

type rig struct {
	*node
	*controlPlane
	name   string // the node's
	object *v1.Node
	proxy  *proxy
	token  string // its file
}

var plain = []string{"nodeResourceTopology.enabled=true", "nodeResourceTopology.heartbeat=1s",
	"topologyManagerPolicy=single-numa-node", "reservedSystemCPUs=0,64", "metrics.address="}

// newRig has numafitd publish what there is, and waits until it is connected to the runtime.
func newRig(t *testing.T, settings ...string) *rig {
	r := prepareRig(t, settings...)
	r.startRuntime()
	r.startDaemon()
	r.waitConnected()
	return r
}

// prepareRig starts nothing. Settings of ours come first: of the same key, the last one counts.
func prepareRig(t *testing.T, settings ...string) *rig {
	r := &rig{node: makeNode(t), controlPlane: theControlPlane, name: objectName(t.Name())}
	object := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: r.name}}
	var err error
	if r.object, err = r.kube.CoreV1().Nodes().Create(background, object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.leaveCluster)
	r.proxy = newProxy(t, r.controlPlane)
	r.token = filepath.Join(r.dir, "token")
	r.writeToken(nil)
	r.settings = append([]string{"nodeName=" + r.name, "apiServer.kubeconfig=" + r.writeKubeconfig(r.proxy.url)}, plain...)
	r.settings = append(r.settings, settings...)
	return r
}

// objectName is a test's name as Kubernetes allows names to be.
func objectName(name string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name)), "-")
}

// leaveCluster takes away what the test has left in the cluster.
func (r *rig) leaveCluster() {
	now := int64(0)
	at := metav1.DeleteOptions{GracePeriodSeconds: &now}
	r.kube.CoreV1().Nodes().Delete(background, r.name, at)
	r.topologies().Delete(background, r.name, at)
	r.kube.CoreV1().Pods("default").DeleteCollection(background, at,
		metav1.ListOptions{FieldSelector: "spec.nodeName=" + r.name})
}

func (r *rig) writeKubeconfig(host string) string {
	path := filepath.Join(r.dir, "kubeconfig")
	if err := r.kubeconfig(path, host, r.token); err != nil {
		r.Fatal(err)
	}
	return path
}

// direct has numafitd speak with the API server itself.
func (r *rig) direct() { r.writeKubeconfig(r.admin.Host) }

// writeToken puts a new token where numafitd looks for it, as the kubelet does. It is worth something
// as long as the object is there that it is bound to.
func (r *rig) writeToken(bound *authentication.BoundObjectReference) {
	r.Helper()
	answer, err := r.kube.CoreV1().ServiceAccounts(account.namespace).CreateToken(background, account.name,
		&authentication.TokenRequest{Spec: authentication.TokenRequestSpec{BoundObjectRef: bound}}, metav1.CreateOptions{})
	if err == nil {
		err = os.WriteFile(r.token+".new", []byte(answer.Status.Token), 0o600)
	}
	if err == nil {
		err = os.Rename(r.token+".new", r.token)
	}
	if err != nil {
		r.Fatal(err)
	}
}

// own are the CPUs that the container has for itself.
func own(n *node, c *nri.Container) set {
	n.Helper()
	var p struct{ Exclusive bool }
	if text := c.Annotations["numafit.io/placement"]; text != "" {
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			n.Fatalf("placement of %s: %v: %q", c.Id, err, text)
		}
	}
	if !p.Exclusive {
		return set{}
	}
	return cpus(n, c)
}

func guaranteed(cpus int64) want { return want{milli: cpus * 1000, memory: gi} }

// status is what `numafit status --json` says.
type status struct {
	Generation uint64
	Counters   map[string]uint64
	Nodes      []struct {
		ID           int
		CPUs         int64 `json:"cpus"`
		CPUsHeld     int64 `json:"cpus_held"`
		CPUsReserved int64 `json:"cpus_reserved"`
		Memory       []struct {
			Type              string
			Allocatable, Free int64
		}
	}
	Fragmentation struct {
		Ratio   int64 `json:"ratio_milli"`
		Free    int64 `json:"free_cpus"`
		Largest int64 `json:"largest_cpus"`
	}
	Containers []struct{ Pod, Container, Source string }
	Claims     []struct {
		Claim, Node string
		CPUs        string `json:"cpus"`
	}
}

func (r *rig) status() (s status) {
	r.Helper()
	out, err := exec.Command(os.Getenv("NUMAFIT"), "status", "--json", "--socket",
		filepath.Join(r.dir, "run", "numafitd.sock")).CombinedOutput()
	if err == nil {
		err = json.Unmarshal(out, &s)
	}
	if err != nil {
		r.Fatalf("numafit status: %v: %s", err, out)
	}
	return s
}

// logged is what numafitd has said so far.
func (r *rig) logged() string {
	text, err := os.ReadFile(filepath.Join(r.dir, "log"))
	if err != nil {
		r.Fatal(err)
	}
	return string(text)
}

// eventually waits for what cannot be awaited.
func (r *rig) eventually(what string, true func() bool) {
	r.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if true() {
			return
		}
	}
	r.Fatalf("not so: %s", what)
}
