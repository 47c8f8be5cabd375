package interop

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The programs of the rig: numafit-extender, kube-scheduler, numafit.

// extender is one numafit-extender.
type extender struct {
	*exec.Cmd
	rig          *rig
	address, log string
	config       string
	secure       *tls.Config // of its clients; nil: plain HTTP
}

// settings are what a test wants in the extender's configuration.
type settings map[string]any

func match(args map[string]any) settings {
	return settings{"plugins": []any{map[string]any{"name": "NodeResourceTopologyMatch", "args": args}}}
}

func strategy(name string) settings {
	return match(map[string]any{"cacheResyncPeriodSeconds": 5, "scoringStrategy": map[string]any{"type": name,
		"resources": []any{map[string]any{"name": "cpu", "weight": 1}, map[string]any{"name": "memory", "weight": 1}}}})
}

// args are those of the plugin.
func (s settings) args() any { return s["plugins"].([]any)[0].(map[string]any)["args"] }

func (s settings) with(more settings) settings {
	all := settings{}
	for _, from := range []settings{s, more} {
		for k, v := range from {
			all[k] = v
		}
	}
	return all
}

// extender starts one, and waits until it is ready.
func (r *rig) extender(s settings) *extender {
	r.Helper()
	x := r.prepareExtender(s)
	x.start()
	x.waitReady()
	return x
}

func (r *rig) prepareExtender(s settings) *extender {
	r.Helper()
	port, err := freePort()
	if err != nil {
		r.Fatal(err)
	}
	nr := len(r.extenders)
	x := &extender{rig: r, address: fmt.Sprint("127.0.0.1:", port), log: filepath.Join(r.dir, fmt.Sprint("extender-", nr, ".log")),
		config: filepath.Join(r.dir, fmt.Sprint("extender-", nr, ".yaml"))}
	r.extenders = append(r.extenders, x)
	head := settings{"apiVersion": "numafit.io/v1", "kind": "ExtenderConfiguration", "listen": x.address,
		"kubeconfig": r.kubeconfigOf()}
	if err := os.WriteFile(x.config, []byte(asJSON(head.with(s))), 0o600); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(x.kill)
	return x
}

func (x *extender) start() {
	x.rig.Helper()
	out, err := os.OpenFile(x.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		x.rig.Fatal(err)
	}
	defer out.Close()
	words := append(strings.Fields(os.Getenv("EXTENDER_UNDER")), os.Getenv("EXTENDER"), "--config", x.config)
	x.Cmd = exec.Command(words[0], words[1:]...)
	x.Stdout, x.Stderr = out, out
	x.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := x.Cmd.Start(); err != nil {
		x.rig.Fatal(err)
	}
}

func (x *extender) kill() {
	if x.Cmd != nil {
		x.Process.Kill()
		x.Wait()
		x.Cmd = nil
	}
}

// stop ends it as a kubelet does, and insists that it ends well.
func (x *extender) stop() {
	x.rig.Helper()
	x.Process.Signal(syscall.SIGTERM)
	if err := x.Wait(); err != nil {
		x.rig.Errorf("it ends with %v\n%s", err, x.logged())
	}
	x.Cmd = nil
}

func (x *extender) logged() string {
	text, _ := os.ReadFile(x.log)
	return string(text)
}

func (x *extender) client() *http.Client {
	return &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: x.secure, DisableKeepAlives: true}}
}

func (x *extender) url() string {
	if x.secure != nil {
		return "https://" + x.address
	}
	return "http://" + x.address
}

func (x *extender) get(path string) (status int, text string, err error) {
	answer, err := x.client().Get(x.url() + path)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body), err
}

func (x *extender) waitReady() {
	x.rig.Helper()
	x.rig.eventually("the extender is ready", func() bool {
		status, _, err := x.get("/readyz")
		return err == nil && status == http.StatusOK
	})
}

// post asks as kube-scheduler does.
func (x *extender) post(verb string, question, answer any) error {
	reply, err := x.client().Post(x.url()+"/numafit/"+verb, "application/json", strings.NewReader(asJSON(question)))
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s %s %v", verb, reply.Status, text, err)
	}
	return json.Unmarshal(text, answer)
}

// way is how kube-scheduler is told of the extender.
type way map[string]any

// scheduler starts kube-scheduler, with the extender at that address. Nobody but the extender scores.
func (r *rig) scheduler(url string, w way) {
	r.Helper()
	admin, err := adminKubeconfig()
	if err != nil {
		r.Fatal(err)
	}
	entry := map[string]any{"urlPrefix": url + "/numafit", "filterVerb": "filter", "prioritizeVerb": "prioritize",
		"preemptVerb": "preempt", "bindVerb": "bind", "weight": 5, "nodeCacheCapable": true, "httpTimeout": "5s"}
	for k, v := range w {
		entry[k] = v
	}
	config := filepath.Join(r.dir, "scheduler.json")
	if err := os.WriteFile(config, []byte(asJSON(map[string]any{"apiVersion": "kubescheduler.config.k8s.io/v1",
		"kind":             "KubeSchedulerConfiguration",
		"clientConnection": map[string]any{"kubeconfig": admin, "qps": 1000, "burst": 2000},
		"leaderElection":   map[string]any{"leaderElect": false}, "podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1,
		"percentageOfNodesToScore": 100,
		"profiles": []any{map[string]any{"schedulerName": "default-scheduler",
			"plugins": map[string]any{"score": map[string]any{"disabled": []any{map[string]any{"name": "*"}}}}}},
		"extenders": []any{entry}})), 0o600); err != nil {
		r.Fatal(err)
	}
	cmd, err := r.launch(filepath.Join(os.Getenv("KUBERNETES"), "kube-scheduler"), "--config="+config, "--secure-port=0")
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
}

// withExtender starts one with these settings, and kube-scheduler.
func (r *rig) withExtender(s settings, w way) *extender {
	r.Helper()
	x := r.extender(s)
	r.scheduler(x.url(), w)
	return x
}

// numafit runs it, with that for its input.
func (r *rig) numafit(in string, args ...string) (string, error) {
	cmd := exec.Command(os.Getenv("NUMAFIT"), args...)
	cmd.Stdin = strings.NewReader(in)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	return out.String() + complaints.String(), err
}

var authorityPool = sync.OnceValue(func() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(theControlPlane.ca.certificate)
	return pool
})

// balancer hands connections to one of the addresses after the other, those that do not answer apart:
// a Service.
func (r *rig) balancer(addresses ...string) string {
	r.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { listener.Close() })
	go func() {
		for next := 0; ; next++ {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer client.Close()
				for i := range addresses {
					server, err := net.Dial("tcp", addresses[(next+i)%len(addresses)])
					if err == nil {
						join(client, server)
						return
					}
				}
			}()
		}
	}()
	return "http://" + listener.Addr().String()
}

func join(a, b net.Conn) {
	defer b.Close()
	done := make(chan bool, 2)
	for _, pair := range [][2]net.Conn{{a, b}, {b, a}} {
		go func() {
			io.Copy(pair[0], pair[1])
			done <- true
		}()
	}
	<-done
}
