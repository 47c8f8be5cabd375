package e2e

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A cluster of one node: etcd, kube-apiserver, kube-controller-manager and kube-scheduler beside the
// kubelet and containerd, in a network of their own. The API server is where pods look for it, at
// the first address of the services, so that what deploy/ installs needs no other address.

const (
	serviceIP = "10.0.0.1"
	nodeIP    = "10.1.0.1"
	etcdURL   = "http://127.0.0.1:2379"
	peerURL   = "http://127.0.0.1:2380"
	apiURL    = "https://" + serviceIP
	nriFolder = "/var/run/nri" // as everywhere; /run is the test's own
	noNetwork = `{"cniVersion": "1.0.0", "name": "none", "plugins": [{"type": "loopback"}]}`
)

// Who may do what, by token.
const tokens = `admin,admin,1,system:masters
scheduler,system:kube-scheduler,2
controllers,system:kube-controller-manager,3
node,system:node:` + nodeName + `,4,system:nodes
developer,developer,5
`

// What numafitd did, without what was written.
const auditPolicy = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived", "ResponseStarted"],
	"rules": [{"level": "Metadata", "users": ["` + account + `"]}]}`

type cluster struct {
	*node
	client        *http.Client
	processes     map[string]*process // the control plane's, by name
	tag           string              // of numafit's image
	policy        string              // in numafitd's settings
	mode          string              // there, too
	nrNodes       int                 // NUMA nodes of its node
	patch         []any               // of the DaemonSet
	components    []string            // of deploy/, beside those of the overlay
	gates         string              // feature gates of the control plane
	box           *box                // that the node is in; nil: it is on this machine
	killedKubelet bool                // amid what containerd did for it, perhaps
}

// newCluster waits until the node is ready; numafit is not installed yet.
func newCluster(t *testing.T) *cluster { return newClusterOf(t, options{machine: this, timeout: "2s"}) }

func newClusterOf(t *testing.T, o options) *cluster {
	c := emptyCluster(t)
	n := c.node
	n.options = o
	n.kubelet = &kubeletOptions{policy: "none", more: maps.Clone(kubeletInCluster),
		args: []string{"--kubeconfig=" + n.path("node.kubeconfig"), "--node-ip=" + nodeIP}}
	if o.kubelet != nil {
		maps.Copy(n.kubelet.more, o.kubelet.more)
	}
	c.nrNodes, c.patch = madeNodes, onMadeUpMachine()
	t.Cleanup(c.end)
	n.prepareKubelet()
	n.run("busybox", "ip", "address", "replace", nodeIP+"/32", "dev", "lo")
	c.startControlPlane()
	c.startRuntime()
	n.startKubelet()
	c.awaitNode()
	return c
}

func emptyCluster(t *testing.T) *cluster {
	dir, err := os.MkdirTemp("", "n")
	if err != nil {
		t.Fatal(err)
	}
	n := &node{T: t, dir: dir, pods: map[string]*pod{}, options: options{machine: this, timeout: "2s"}}
	return &cluster{node: n, processes: map[string]*process{}, tag: os.Getenv("VERSION"), policy: "best-effort", mode: "manage"}
}

var kubeletInCluster = map[string]any{
	"enableServer": true, "address": "0.0.0.0", // `kubectl exec`
	"authentication":            map[string]any{"anonymous": map[string]any{"enabled": true}, "webhook": map[string]any{"enabled": false}},
	"systemReserved":            map[string]string{"cpu": "500m"}, // as in numafitd's settings
	"kubeReserved":              map[string]string{"cpu": "500m"},
	"nodeStatusUpdateFrequency": "1s",
	"kubeAPIQPS":                1000, "kubeAPIBurst": 1000, "eventRecordQPS": 0,
}

func (c *cluster) startControlPlane() {
	c.Helper()
	for _, address := range []string{"127.0.0.1/8", serviceIP + "/32"} {
		c.run("busybox", "ip", "address", "replace", address, "dev", "lo")
	}
	c.run("busybox", "ip", "link", "set", "lo", "up")
	c.writeFiles()
	c.launch("etcd", "ETCD", "--name=e", "--data-dir="+c.path("etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls="+etcdURL, "--advertise-client-urls="+etcdURL, "--listen-peer-urls="+peerURL,
		"--initial-advertise-peer-urls="+peerURL, "--initial-cluster=e="+peerURL)
	key := c.path("accounts.key")
	c.launch("kube-apiserver", "KUBERNETES", "--etcd-servers="+etcdURL, "--bind-address="+serviceIP, "--secure-port=443",
		"--cert-dir="+c.path("pki"), "--token-auth-file="+c.path("tokens.csv"), "--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction", "--anonymous-auth=false", "--service-cluster-ip-range=10.0.0.0/24",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+key,
		"--service-account-signing-key-file="+key, "--endpoint-reconciler-type=none", "--allow-privileged=true",
		"--kubelet-preferred-address-types=InternalIP", "--audit-policy-file="+c.path("audit.json"),
		"--audit-log-path="+c.path("audit.log"), "--profiling=false", "--feature-gates="+c.gates)
	c.await("kube-apiserver", func() bool { return c.connect() && c.ask("GET", "/readyz", nil, nil) == http.StatusOK })
	c.launch("kube-controller-manager", "KUBERNETES", "--kubeconfig="+c.kubeconfig("controllers", "controllers"), "--leader-elect=false",
		"--use-service-account-credentials", "--service-account-private-key-file="+key,
		"--root-ca-file="+c.certificate(), "--secure-port=0", "--kube-api-qps=-1",
		"--node-monitor-grace-period=1h") // a node may be slow
	c.startScheduler()
	c.kubeconfig("node", "node")
}

func (c *cluster) writeFiles() {
	c.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	c.must(err)
	der, err := x509.MarshalECPrivateKey(key)
	c.must(err)
	c.must(os.Mkdir(c.path("cni"), 0o700))
	for name, text := range map[string][]byte{"tokens.csv": []byte(tokens), "audit.json": []byte(auditPolicy),
		"cni/10-none.conflist": []byte(noNetwork),
		"accounts.key":         pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})} {
		c.must(os.WriteFile(c.path(name), text, 0o600))
	}
}

func (c *cluster) launch(name, folder string, args ...string) {
	c.Helper()
	c.processes[name] = c.start(filepath.Join(os.Getenv(folder), name), args...)
}

func (c *cluster) kill(name string) {
	if p := c.processes[name]; p != nil {
		p.kill()
		delete(c.processes, name)
	}
}

// startScheduler takes more to its configuration.
func (c *cluster) startScheduler(extenders ...any) {
	c.Helper()
	config := map[string]any{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
		"clientConnection": map[string]any{"kubeconfig": c.kubeconfig("scheduler", "scheduler"), "qps": 1000, "burst": 1000},
		"leaderElection":   map[string]any{"leaderElect": false}, "extenders": extenders,
		"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}
	c.must(os.WriteFile(c.path("scheduler.json"), toJSON(config), 0o600))
	c.launch("kube-scheduler", "KUBERNETES", "--config="+c.path("scheduler.json"), "--secure-port=0", "--feature-gates="+c.gates)
}

// certificate is what kube-apiserver makes for itself when it starts for the first time, and the
// authority that signed it.
func (c *cluster) certificate() string { return c.path("pki/apiserver.crt") }

func (c *cluster) connect() bool {
	text, err := os.ReadFile(c.certificate())
	if err != nil {
		return false
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	c.client = &http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	return true
}

func (c *cluster) kubeconfig(user, token string) string {
	c.Helper()
	config := map[string]any{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{"server": apiURL, "certificate-authority-data": []byte(c.read(c.certificate()) + "\n")}}},
		"users":    []any{map[string]any{"name": "u", "user": map[string]any{"token": token}}},
		"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "c", "user": "u"}}}}
	path := c.path(user + ".kubeconfig")
	c.must(os.WriteFile(path, toJSON(config), 0o600))
	return path
}

var contentTypes = map[string]string{"POST": "application/json", "PATCH": "application/merge-patch+json"}

// ask is the admin's; it returns the status, 0 when there is no answer.
func (c *cluster) ask(method, path string, body []byte, answer any) int {
	c.Helper()
	request, err := http.NewRequest(method, apiURL+path, bytes.NewReader(body))
	c.must(err)
	request.Header.Set("Authorization", "Bearer admin")
	request.Header.Set("Content-Type", contentTypes[method])
	reply, err := c.client.Do(request)
	if err != nil {
		return 0
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	c.must(err)
	if answer != nil && reply.StatusCode < http.StatusBadRequest {
		if err := json.Unmarshal(text, answer); err != nil {
			c.Fatalf("%s: %v: %s", path, err, text)
		}
	}
	return reply.StatusCode
}

// kubectl is the real one, as the admin.
func (c *cluster) kubectl(args ...string) string {
	c.Helper()
	out, err := c.tryKubectl(args...)
	return c.done("kubectl", args, out, err)
}

// done is what a program has printed that must not fail.
func (c *cluster) done(program string, args []string, out string, err error) string {
	c.Helper()
	if err != nil {
		c.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return out
}

func (c *cluster) tryKubectl(args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(os.Getenv("KUBERNETES"), "kubectl"), append([]string{"--kubeconfig", c.kubeconfig("admin", "admin")}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+c.dir) // its caches
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// startRuntime starts the runtime with the folders that numafit's DaemonSet looks for, and gives it
// the images.
func (c *cluster) startRuntime() {
	c.Helper()
	if crio != "" {
		c.startCRIO()
		return
	}
	text := containerdConfig(version, c.dir, c.runc(), c.timeout, false)
	text = strings.ReplaceAll(text, "'"+c.path("nri.sock")+"'", "'"+nriFolder+"/nri.sock'")
	c.must(os.WriteFile(c.path("containerd.toml"), []byte(text), 0o600))
	c.must(os.Symlink("/run/numafit", c.path("run"))) // where status() asks
	c.node.startRuntime()
	c.must(writeImage(c.path("image.tar")))
	for _, archive := range []string{c.path("image.tar"), os.Getenv("IMAGE")} {
		c.ctr("images", "import", archive)
	}
}

func (c *cluster) ctr(args ...string) {
	c.Helper()
	c.run(filepath.Join(os.Getenv("CONTAINERD"), "ctr"), append([]string{"-a", c.path("containerd.sock"), "-n", "k8s.io"}, args...)...)
}

func (c *cluster) awaitNode() {
	c.Helper()
	c.await("the node to be ready", func() bool {
		var answer struct {
			Spec   struct{ Taints []any }
			Status struct {
				Conditions []struct{ Type, Status string }
			}
		}
		c.ask("GET", "/api/v1/nodes/"+nodeName, nil, &answer)
		for _, condition := range answer.Status.Conditions {
			if condition.Type == "Ready" && condition.Status == "True" {
				return len(answer.Spec.Taints) == 0
			}
		}
		return false
	})
	c.await("the service account of pods", func() bool {
		return c.ask("GET", "/api/v1/namespaces/default/serviceaccounts/default", nil, nil) == http.StatusOK
	})
}

// end takes every pod out of the cluster, then ends the node as ever, then the control plane. After
// a failure it leaves it to the end of the namespaces.
func (c *cluster) end() {
	if c.Failed() {
		c.showLogs()
		return
	}
	if c.ask("GET", "/api/v1/namespaces/"+numafit, nil, nil) == http.StatusOK {
		c.kubectl("delete", "-k", c.overlay())
	}
	c.deleteOwn()
	c.node.end()
	for name := range c.processes {
		c.kill(name)
	}
}

// showLogs prints the ends of the logs; all of them go to the folder KEEP, where one is given.
func (c *cluster) showLogs() {
	if keep := os.Getenv("KEEP"); keep != "" {
		c.must(os.MkdirAll(keep, 0o755))
		for _, pattern := range []string{c.path("*.log"), c.path(askedFile), c.path("logs"), "/run/numafit/journal*"} {
			files, _ := filepath.Glob(pattern)
			if len(files) > 0 {
				c.run("cp", slices.Concat([]string{"-rL", "-t", keep}, files)...)
			}
		}
	}
	logs, _ := filepath.Glob(c.path("*.log"))
	for _, log := range logs {
		c.Logf("%s:\n%s", filepath.Base(log), tail(log))
	}
	daemon, _ := c.tryKubectl("-n", numafit, "logs", daemonSet, "--tail=100")
	c.Logf("numafitd:\n%s", daemon)
	if before, err := c.tryKubectl("-n", numafit, "logs", daemonSet, "--tail=100", "--previous"); err == nil {
		c.Logf("numafitd before that:\n%s", before)
	}
}

// look finds the pods that the runtime has, where it can be asked.
func (c *cluster) look() {
	c.Helper()
	if c.box == nil {
		c.node.look()
	}
}

// Pods, as the API server knows them.

type apiPod struct {
	Metadata struct {
		Name, UID   string
		Annotations map[string]string
	}
	Spec   struct{ NodeName string }
	Status podStatus
}

const podsPath = "/api/v1/namespaces/default/pods"

// create has the cluster run a pod.
func (c *cluster) create(name, qos string, containers ...want) {
	c.Helper()
	if status := c.ask("POST", podsPath, manifest(name, qos, nil, containers), nil); status != http.StatusCreated {
		c.Fatalf("pod %s is not created: %d", name, status)
	}
}

// runs creates the pod and waits until its containers run.
func (c *cluster) runs(name, qos string, containers ...want) *pod {
	c.Helper()
	c.create(name, qos, containers...)
	return c.awaitRunning(name)
}

func (c *cluster) awaitRunning(name string) *pod {
	c.Helper()
	c.await(name+" to run", func() bool {
		p := c.pod(name)
		return p.Status.Phase == "Running" && p.ready()
	})
	c.look()
	return c.pods[name]
}

func (p apiPod) ready() bool {
	for _, s := range p.Status.ContainerStatuses {
		if !s.Ready {
			return false
		}
	}
	return len(p.Status.ContainerStatuses) > 0
}

func (c *cluster) pod(name string) (p apiPod) {
	c.Helper()
	c.ask("GET", podsPath+"/"+name, nil, &p)
	return p
}

// delete waits until the pod is gone, and its cgroup.
func (c *cluster) delete(name string) {
	c.Helper()
	c.ask("DELETE", podsPath+"/"+name, nil, nil)
	c.await(name+" to go", func() bool { return c.ask("GET", podsPath+"/"+name, nil, nil) == http.StatusNotFound })
	c.look()
}

// deleteOwn takes away all but numafit.
func (c *cluster) deleteOwn() {
	c.Helper()
	c.ask("DELETE", podsPath, nil, nil)
	c.await("all pods to go", func() bool { return len(c.allPods()) == 0 })
	c.look()
}

func (c *cluster) allPods() []apiPod {
	c.Helper()
	var all struct{ Items []apiPod }
	if status := c.ask("GET", podsPath, nil, &all); status != http.StatusOK {
		c.Fatalf("the pods are not told: %d", status)
	}
	return all.Items
}

// event is the message of one with that reason, about the pod that has that name now.
func (c *cluster) event(reason, pod string) string {
	c.Helper()
	var all struct {
		Items []struct {
			Message string
		}
	}
	uid := c.pod(pod).Metadata.UID
	c.ask("GET", fmt.Sprintf("/api/v1/namespaces/default/events?fieldSelector=reason%%3D%s%%2CinvolvedObject.uid%%3D%s", reason, uid), nil, &all)
	if uid == "" || len(all.Items) == 0 {
		return ""
	}
	return all.Items[0].Message
}
