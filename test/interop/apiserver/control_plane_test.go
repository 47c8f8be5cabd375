package interop

import (
	"bytes"
	"context"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// A control plane without controllers: etcd and kube-apiserver, from an empty folder. There is one
// for all tests; each has a node of its own in it.

const startTimeout = time.Minute // of a server, on a busy machine

type controlPlane struct {
	home                   string
	ca                     *authority
	etcdURL                string
	port                   int
	etcd, server           *exec.Cmd
	admin                  *rest.Config
	kube                   kubernetes.Interface
	dynamic                dynamic.Interface
	certificate, serverKey []byte // the server's
}

var theControlPlane *controlPlane

func TestMain(m *testing.M) {
	klog.SetLogger(klog.Logger{}) // client-go's own words are of no interest
	for _, name := range []string{"NUMAFITD", "NUMAFIT", "KUBERNETES", "ETCD", "DEPLOY"} {
		if os.Getenv(name) == "" {
			fmt.Println("not run by test/interop/apiserver/run:", name, "is not set")
			os.Exit(1)
		}
	}
	c, err := newControlPlane()
	if err == nil {
		theControlPlane = c
		err = c.install()
	}
	if err != nil {
		fmt.Println("FAIL: the control plane:", err)
		c.shutDown()
		os.Exit(1)
	}
	status := m.Run()
	c.shutDown()
	os.Exit(status)
}

func newControlPlane() (*controlPlane, error) {
	dir, err := os.MkdirTemp("", "nfcp")
	if err != nil {
		return nil, err
	}
	c := &controlPlane{home: dir}
	for _, step := range []func() error{c.writeCertificates, c.startEtcd, c.startServer, c.connect} {
		if err := step(); err != nil {
			return c, err
		}
	}
	return c, c.waitReady()
}

// shutDown ends both, and without waiting for watches, for which kube-apiserver waits a minute.
func (c *controlPlane) shutDown() {
	if c == nil {
		return
	}
	for _, p := range []*exec.Cmd{c.server, c.etcd} {
		if p != nil {
			p.Process.Kill()
			p.Wait()
		}
	}
	if os.Getenv("KEEP") == "" {
		os.RemoveAll(c.home)
	}
}

func (c *controlPlane) path(name string) string { return filepath.Join(c.home, name) }

func (c *controlPlane) writeCertificates() (err error) {
	if c.ca, err = newAuthority("numafit interop"); err != nil {
		return err
	}
	if c.certificate, c.serverKey, err = c.ca.issue(pkix.Name{CommonName: "kube-apiserver"},
		net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)); err != nil {
		return err
	}
	admin, adminKey, err := c.ca.issue(pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}})
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{"ca.crt": c.ca.pem(), "server.crt": c.certificate,
		"server.key": c.serverKey, "audit.yaml": []byte(auditPolicy)} {
		if err := os.WriteFile(c.path(name), text, 0o600); err != nil {
			return err
		}
	}
	c.admin = &rest.Config{QPS: -1, TLSClientConfig: rest.TLSClientConfig{
		CAData: c.ca.pem(), CertData: admin, KeyData: adminKey}}
	return writeKeyPair(c.path("sa.key"), c.path("sa.pub"))
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// launch starts a program whose words go to a file of its name. It ends when this test does.
func (c *controlPlane) launch(program string, args ...string) (*exec.Cmd, error) {
	out, err := os.OpenFile(c.path(filepath.Base(program)+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd, cmd.Start()
}

func (c *controlPlane) startEtcd() error {
	client, err := freePort()
	if err != nil {
		return err
	}
	peer, err := freePort()
	if err != nil {
		return err
	}
	c.etcdURL = fmt.Sprint("http://127.0.0.1:", client)
	peerURL := fmt.Sprint("http://127.0.0.1:", peer)
	c.etcd, err = c.launch(filepath.Join(os.Getenv("ETCD"), "etcd"), "--name", "e", "--data-dir", c.path("etcd"),
		"--unsafe-no-fsync", "--log-level", "warn", "--listen-client-urls", c.etcdURL,
		"--advertise-client-urls", c.etcdURL, "--listen-peer-urls", peerURL,
		"--initial-advertise-peer-urls", peerURL, "--initial-cluster", "e="+peerURL)
	if err != nil {
		return err
	}
	return c.waitFor("etcd", func() bool {
		answer, err := http.Get(c.etcdURL + "/health")
		if err == nil {
			answer.Body.Close()
		}
		return err == nil && answer.StatusCode == http.StatusOK
	})
}

func (c *controlPlane) waitFor(program string, ready func() bool) error {
	for end := time.Now().Add(startTimeout); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ready() {
			return nil
		}
	}
	text, _ := os.ReadFile(c.path(program + ".log"))
	return fmt.Errorf("%s is not ready; it said:\n%s", program, text[max(0, len(text)-4096):])
}

// Who did what, without what was written.
const auditPolicy = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy",
	"omitStages": ["RequestReceived", "ResponseStarted"], "rules": [{"level": "Metadata"}]}`

// startServer starts kube-apiserver; at the second time on the same port. Nobody makes service
// accounts for pods here, so pods need none.
func (c *controlPlane) startServer() (err error) {
	if c.port == 0 {
		if c.port, err = freePort(); err != nil {
			return err
		}
		c.admin.Host = fmt.Sprint("https://127.0.0.1:", c.port)
	}
	c.server, err = c.launch(filepath.Join(os.Getenv("KUBERNETES"), "kube-apiserver"),
		"--etcd-servers="+c.etcdURL, "--bind-address=127.0.0.1", fmt.Sprint("--secure-port=", c.port),
		"--tls-cert-file="+c.path("server.crt"), "--tls-private-key-file="+c.path("server.key"),
		"--client-ca-file="+c.path("ca.crt"), "--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+c.path("sa.pub"), "--service-account-signing-key-file="+c.path("sa.key"),
		"--service-cluster-ip-range=10.0.0.0/24", "--authorization-mode=Node,RBAC", "--anonymous-auth=false",
		"--allow-privileged=true", "--endpoint-reconciler-type=none", "--etcd-compaction-interval=0",
		"--disable-admission-plugins=ServiceAccount", "--audit-policy-file="+c.path("audit.yaml"),
		"--audit-log-path="+c.path("audit.log"), "--profiling=false")
	return err
}

func (c *controlPlane) connect() (err error) {
	if c.kube, err = kubernetes.NewForConfig(c.admin); err != nil {
		return err
	}
	c.dynamic, err = dynamic.NewForConfig(c.admin)
	return err
}

func (c *controlPlane) waitReady() error {
	return c.waitFor("kube-apiserver", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		text, err := c.kube.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err == nil && string(text) == "ok"
	})
}

// killServer is as if the machine of the API server had lost its power; etcd goes on.
func (c *controlPlane) killServer() {
	c.server.Process.Kill()
	c.server.Wait()
}

func (c *controlPlane) restartServer(t *testing.T) {
	t.Helper()
	if err := c.startServer(); err != nil {
		t.Fatal(err)
	}
	if err := c.waitReady(); err != nil {
		t.Fatal(err)
	}
}

// compact has etcd forget all history.
func (c *controlPlane) compact() error {
	revision, err := c.etcdCall("/v3/kv/range", `{"key": "AA=="}`)
	if err != nil {
		return err
	}
	_, after, ok := strings.Cut(revision, `"revision":"`)
	if !ok {
		return errors.New("etcd does not say its revision: " + revision)
	}
	number, _, _ := strings.Cut(after, `"`)
	_, err = c.etcdCall("/v3/kv/compaction", `{"revision": "`+number+`", "physical": true}`)
	return err
}

func (c *controlPlane) etcdCall(path, body string) (string, error) {
	answer, err := http.Post(c.etcdURL+path, "application/json", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	var text bytes.Buffer
	text.ReadFrom(answer.Body)
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("etcd %s: %s: %s", path, answer.Status, text.String())
	}
	return text.String(), nil
}

// kubeconfig is a file by which somebody with that token reaches the server at host; or the admin.
func (c *controlPlane) kubeconfig(path, host, tokenFile string) error {
	user := fmt.Sprintf(`{"tokenFile": %q}`, tokenFile)
	if tokenFile == "" {
		user = fmt.Sprintf(`{"client-certificate-data": %q, "client-key-data": %q}`,
			base64.StdEncoding.EncodeToString(c.admin.CertData), base64.StdEncoding.EncodeToString(c.admin.KeyData))
	}
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": [{"name": "c", "cluster": {"server": %q, "certificate-authority": %q}}],
		"users": [{"name": "u", "user": %s}],
		"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}`, host, c.path("ca.crt"), user)
	return os.WriteFile(path, []byte(text), 0o600)
}

var adminKubeconfig = sync.OnceValues(func() (string, error) {
	path := theControlPlane.path("admin.json")
	return path, theControlPlane.kubeconfig(path, theControlPlane.admin.Host, "")
})

// kubectl runs the real one, as the admin.
func kubectl(in string, args ...string) (string, error) {
	config, err := adminKubeconfig()
	if err != nil {
		return "", err
	}
	cmd := exec.Command(filepath.Join(os.Getenv("KUBERNETES"), "kubectl"), append([]string{"--kubeconfig", config}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+theControlPlane.home) // its caches
	cmd.Stdin = strings.NewReader(in)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, complaints.String())
	}
	return out.String(), nil
}
