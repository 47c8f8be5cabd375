package interop

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// hello is what a client of TLS says first.
func hello(t *testing.T) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	go tls.Client(ours, &tls.Config{InsecureSkipVerify: true}).Handshake()
	text := make([]byte, 16384)
	n, err := theirs.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	return text[:n]
}

func TestCertifiedCallsAreAnsweredAmongStrangers(t *testing.T) {
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t)
	x, _, _ := r.secureExtender(settings{"metrics": map[string]any{"address": fmt.Sprint("127.0.0.1:", port)}})
	x.start()
	x.waitReady()
	transport := dialFrom("127.0.0.3")
	transport.TLSClientConfig = x.secure
	certified := http.Client{Timeout: 5 * time.Second, Transport: transport}
	question := asJSON(map[string]any{"Pod": guaranteed("p", 2), "NodeNames": []string{"none"}})
	question = strings.Replace(question, `"name":"p"`, `"name":"p","uid":"u"`, 1)
	filter := func() (int, error) {
		answer, err := certified.Post(x.url()+"/filter", "application/json", strings.NewReader(question))
		if err != nil {
			return 0, err
		}
		return answer.StatusCode, answer.Body.Close()
	}
	probe := func() (int, error) {
		client := http.Client{Timeout: 5 * time.Second, Transport: dialFrom("127.0.0.1")}
		answer, err := client.Get(fmt.Sprint("http://127.0.0.1:", port, "/livez"))
		if err != nil {
			return 0, err
		}
		return answer.StatusCode, answer.Body.Close()
	}
	begin := hello(t)
	for _, c := range []struct {
		name string
		says []byte
	}{{"silent strangers", nil}, {"halves of hellos", begin[:len(begin)/2]}} {
		t.Run(c.name, func(t *testing.T) {
			crowd := newCrowd(t, x.address, "127.0.0.2", c.says)
			callAmong(t, "certified calls, "+c.name, filter, crowd)
			callAmong(t, "probes beside, "+c.name, probe, crowd)
		})
	}
	t.Run("silent ones at the probes' port", func(t *testing.T) {
		crowd := newCrowd(t, fmt.Sprint("127.0.0.1:", port), "127.0.0.1", nil)
		callAmong(t, "probes", probe, crowd)
		callAmong(t, "certified calls beside", filter, crowd)
	})
	// Each whole hello costs a handshake's arithmetic, and there are as many as the processor can do:
	// how long a call takes then is printed, and that is all.
	t.Run("whole hellos", func(t *testing.T) {
		crowd := newCrowd(t, x.address, "127.0.0.2", begin)
		answered := 0
		for range crowdCalls / 10 {
			if status, err := filter(); err == nil && status == http.StatusOK {
				answered++
			}
		}
		t.Logf("figure: among %d whole hellos %d of %d certified calls were answered within 5 s", crowd.renewed.Load(),
			answered, crowdCalls/10)
	})
}
