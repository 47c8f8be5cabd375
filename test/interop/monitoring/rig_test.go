// What deploy/components has for operators of Prometheus and Grafana, by the programs that read it.
package interop

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// started is a program that runs until the test ends.
func started(t *testing.T, program string, args ...string) (lines chan string) {
	t.Helper()
	command := exec.Command(program, args...)
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines = make(chan string, 10000)
	read := make(chan bool)
	go func() {
		for scanner := bufio.NewScanner(stderr); scanner.Scan(); {
			select {
			case lines <- scanner.Text():
			default: // nobody reads them any more
			}
		}
		_, _ = io.Copy(io.Discard, stderr)
		close(lines)
		close(read)
	}()
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		<-read
		if err := command.Wait(); err != nil {
			t.Errorf("%s: %v", filepath.Base(program), err)
		}
	})
	return lines
}

// portOf is the port in the first line that matches.
func portOf(t *testing.T, lines chan string, pattern string) string {
	t.Helper()
	var seen []string
	wanted, patience := regexp.MustCompile(pattern), time.After(20*time.Second)
	for {
		select {
		case line, ok := <-lines:
			if found := wanted.FindStringSubmatch(line); found != nil {
				return found[1]
			}
			if seen = append(seen, line); !ok {
				t.Fatalf("it has ended: %s", strings.Join(seen, "\n"))
			}
		case <-patience:
			t.Fatalf("no line %q: %s", pattern, strings.Join(seen, "\n"))
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// folder is one with a short path: a socket's has 107 bytes at most.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "numafit-mon")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// An API server that is away: what is measured of it is there all the same.
const kubeconfig = `current-context: a
contexts: [{name: a, context: {cluster: c}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
`

// everything is what numafitd must be set to for every metric to be there.
var everything = []string{"nodeResourceTopology.enabled=true", "events.enabled=true", "podsWatch.enabled=true",
	"refusalAction=evict", "devicePlugin.enabled=true", "podResources.enabled=true", "deviceClaims.enabled=true",
	"claims.enabled=true", "observedPlacement=kai", "topologyManagerPolicy=restricted", "reservedSystemCPUs=0,64"}

// daemon is a numafitd with all that can be measured; its address.
func daemon(t *testing.T, dir string) string {
	t.Helper()
	for _, d := range []string{"device-plugins", "plugins_registry", "plugins", "pod-resources"} {
		if err := os.MkdirAll(filepath.Join(dir, "kubelet", d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "kubeconfig"), kubeconfig)
	write(t, filepath.Join(dir, "numafitd.yaml"), "logLevel: info\n") // a file: else none is in force
	args := []string{"--config", filepath.Join(dir, "numafitd.yaml")}
	for _, s := range append(everything, "machine="+os.Getenv("MACHINE"), "nodeName=worker-1", "metrics.address=127.0.0.1:0",
		"runDirectory="+filepath.Join(dir, "run"), "nri.socketPath="+filepath.Join(dir, "nri.sock"),
		"kubeletRootDirectory="+filepath.Join(dir, "kubelet"), "claims.cdiDirectory="+filepath.Join(dir, "cdi"),
		"apiServer.kubeconfig="+filepath.Join(dir, "kubeconfig")) {
		args = append(args, "--set", s)
	}
	lines := started(t, filepath.Join(os.Getenv("BIN"), "numafitd"), args...)
	return "127.0.0.1:" + portOf(t, lines, `event=metrics-served .*port=([0-9]+)`)
}

// extender is a numafit-extender whose API server is away; its address.
func extender(t *testing.T, dir string) string {
	t.Helper()
	write(t, filepath.Join(dir, "extender.yaml"), fmt.Sprintf("listen: 127.0.0.1:0\nkubeconfig: %s\n", filepath.Join(dir, "kubeconfig")))
	lines := started(t, filepath.Join(os.Getenv("BIN"), "numafit-extender"), "--config", filepath.Join(dir, "extender.yaml"))
	return "127.0.0.1:" + portOf(t, lines, `event=started .* port=([0-9]+)`)
}

// play goes through a trace, as the daemon's container runtime.
func play(t *testing.T, dir, trace string) {
	t.Helper()
	out, err := exec.Command(filepath.Join(os.Getenv("BIN"), "numafit-sim"), "--socket", filepath.Join(dir, "nri.sock"),
		"--machine", os.Getenv("MACHINE"), "--reserved", "0,64", "--node-name", "worker-1", "--json",
		"--trace", filepath.Join(os.Getenv("TRACES"), trace+".yaml")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// freePort is a port that nobody has now.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func promtool(args ...string) (string, error) {
	out, err := exec.Command(filepath.Join(os.Getenv("PROMETHEUS"), "promtool"), args...).CombinedOutput()
	return string(out), err
}
