package interop

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	authentication "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What goes wrong between a node and its API server. Containers are created meanwhile as ever, and
// when it is over the object is right again.

// meanwhile creates a container, and insists that nobody notices what is wrong with the API server.
func (r *rig) meanwhile(name string) {
	r.Helper()
	start := time.Now()
	r.mustCreate(name, guaranteed(2))
	if took := time.Since(start); took > slowly(500*time.Millisecond) {
		r.Errorf("a create took %v while the API server was not there", took)
	}
}

func TestATokenIsReplacedBeforeAndAfterItEnds(t *testing.T) {
	r := prepareRig(t)
	keeper := r.boundToken("one")
	r.direct()
	r.startRuntime()
	r.startDaemon()
	r.waitConnected()
	r.agrees()
	old, err := os.ReadFile(r.token)
	if err != nil {
		t.Fatal(err)
	}
	second := r.boundToken("two") // as the kubelet does it in time
	r.endToken(keeper)
	if status, _ := asAccount(t, r.tokenFile("old", old), "GET", "/api/v1/nodes/"+r.name, ""); status != http.StatusUnauthorized {
		t.Fatalf("the old token is still worth %d", status)
	}
	r.meanwhile("one")
	r.agrees()
	if bad := line(r.logged(), "apiserver-refused"); bad != "" {
		t.Errorf("a token was there in time, and it says: %s", bad)
	}
	r.endToken(second)
	r.meanwhile("two")
	r.waitLog(1, "apiserver-refused") // and nobody replaced it
	r.boundToken("three")
	r.agrees()
}

// boundToken writes a token that ends with a secret.
func (r *rig) boundToken(name string) *v1.Secret {
	r.Helper()
	secret, err := r.kube.CoreV1().Secrets(account.namespace).Create(background,
		&v1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"}}, metav1.CreateOptions{})
	if err != nil {
		r.Fatal(err)
	}
	r.writeToken(&authentication.BoundObjectReference{Kind: "Secret", APIVersion: "v1", Name: secret.Name, UID: secret.UID})
	return secret
}

// endToken takes the secret away. The server believes a token that it has seen for a while, unless
// it is a new one.
func (r *rig) endToken(s *v1.Secret) {
	r.Helper()
	if err := r.kube.CoreV1().Secrets(account.namespace).Delete(background, s.Name, metav1.DeleteOptions{}); err != nil {
		r.Fatal(err)
	}
	r.killServer()
	r.restartServer(r.T)
}

func (r *rig) tokenFile(name string, text []byte) string {
	path := r.token + "." + name
	if err := os.WriteFile(path, text, 0o600); err != nil {
		r.Fatal(err)
	}
	return path
}

func TestTheServerDiesAndComesBack(t *testing.T) {
	r := prepareRig(t, "podsWatch.enabled=true")
	r.direct()
	r.startRuntime()
	r.startDaemon()
	r.waitConnected()
	r.agrees()
	for i := range 2 {
		r.killServer()
		r.meanwhile(fmt.Sprint("down-", i))
		time.Sleep(300 * time.Millisecond) // it tries, and fails
		r.restartServer(t)
		start := time.Now()
		r.agrees()
		t.Logf("%v after the server was ready", time.Since(start))
	}
}

func TestNothingGoesThrough(t *testing.T) {
	r := newRig(t, "podsWatch.enabled=true")
	r.agrees()
	r.proxy.partition(true)
	r.meanwhile("one")
	time.Sleep(1500 * time.Millisecond) // with a write under way
	r.meanwhile("two")
	r.proxy.partition(false)
	r.agrees()
}

func TestConnectionsBreakOff(t *testing.T) {
	r := newRig(t, "podsWatch.enabled=true")
	r.agrees()
	// The server may have written what the daemon has no answer to yet: with each such cut it waits
	// twice as long, 4 s at the third, and 8 s before a write is answered again.
	for i := range 3 {
		r.proxy.cut()
		r.meanwhile(fmt.Sprint("cut-", i))
		r.agrees()
	}
	r.meanwhile("whole")
	r.agrees()
	broken := 0
	r.proxy.setRule(func(q *http.Request) *fault { // each second request, before it is answered
		if broken++; broken%2 == 1 {
			return &fault{cut: true}
		}
		return nil
	})
	r.meanwhile("half")
	r.agrees()
}

func TestTheServerIsSlow(t *testing.T) {
	r := newRig(t)
	r.agrees()
	r.proxy.setRule(func(*http.Request) *fault { return &fault{delay: time.Second} })
	before := len(r.proxy.requests(r.writes))
	for i := range 3 {
		r.meanwhile(fmt.Sprint("slow-", i))
		r.agrees()
	}
	list := r.proxy.requests(r.writes)[before:]
	for i := 1; i < len(list); i++ {
		if gap := list[i].at.Sub(list[i-1].at); gap < 950*time.Millisecond { // two at a time
			t.Errorf("a write %v after another one that took a second", gap)
		}
	}
}

// onlyOnce has the first request of a kind end so, and none after it.
func (r *rig) onlyOnce(wanted func(q *http.Request) bool, f fault) {
	done := false
	r.proxy.setRule(func(q *http.Request) *fault {
		if done || !wanted(q) {
			return nil
		}
		done = true
		return &f
	})
}

func isWrite(q *http.Request) bool { return q.Method == http.MethodPatch }

func TestAServerThatSaysWhenIsObeyed(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault fault
		wait  time.Duration // at least, before the next attempt
	}{
		{"429", fault{status: 429, again: 2}, 2 * time.Second},
		{"503", fault{status: 503, again: 2}, 2 * time.Second},
		{"500", fault{status: 500}, 50 * time.Millisecond},
		{"502-html", fault{status: 502, body: "<html>no</html>"}, 50 * time.Millisecond},
		{"409-without-details", fault{status: 409}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := prepareRig(t, "nodeResourceTopology.heartbeat=5s")
			r.onlyOnce(isWrite, c.fault)
			r.startRuntime()
			r.startDaemon()
			r.waitConnected()
			r.agrees()
			list := r.proxy.waitRequests(t, 2, r.writes)
			if gap := list[1].at.Sub(list[0].at); list[0].status != c.fault.status || gap < c.wait*95/100 {
				t.Errorf("%d, and again after %v", list[0].status, gap)
			}
		})
	}
}

// Watches

func isPods(q request) bool { return strings.HasSuffix(q.path, "/pods") }

func podsWatches(q request) bool { return isPods(q) && q.isWatch() }

func podsLists(q request) bool { return isPods(q) && !q.isWatch() }

// knowsPods insists that numafitd learns of a pod, by its refusal to run what is too large for any
// one NUMA node before its first container is created.
func (r *rig) knowsPods(name string) {
	r.Helper()
	p := r.pod(name, nil, ask{name: "main", cpus: perNode + 1})
	r.eventually("the pod "+name+" is known", func() bool { return r.refuses(p) })
}

func TestAWatchGoesOnWhereItBrokeOff(t *testing.T) {
	r := newRig(t, "podsWatch.enabled=true")
	r.waitLog(1, "pods-watch-synced")
	r.knowsPods("one")
	lists := len(r.proxy.requests(podsLists))
	for i := range 3 {
		watches := len(r.proxy.requests(podsWatches))
		r.proxy.cut()
		again := r.proxy.waitRequests(t, watches+1, podsWatches)[watches]
		if version := again.query.Get("resourceVersion"); version == "" || version == "0" || again.query.Get("fieldSelector") == "" {
			t.Errorf("it watches by %v", again.query)
		}
		r.knowsPods(fmt.Sprint("after-", i))
	}
	if now := len(r.proxy.requests(podsLists)); now != lists {
		t.Errorf("%d lists more", now-lists)
	}
}

func TestAWatchThatIsTooOldStartsAnew(t *testing.T) {
	r := prepareRig(t, "podsWatch.enabled=true")
	gone := r.pod("gone", nil, ask{name: "main", cpus: perNode + 1})
	r.startRuntime()
	r.startDaemon()
	r.waitConnected()
	r.knowsPods("one")
	if !r.refuses(gone) {
		t.Fatal("a pod that is listed is not known")
	}
	r.proxy.partition(true)
	r.proxy.cut()
	r.killServer()
	r.restartServer(t)
	now := int64(0)
	if err := r.kube.CoreV1().Pods("default").Delete(background, gone.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	later := r.pod("later", nil, ask{name: "main", cpus: perNode + 1})
	if err := r.compact(); err != nil {
		t.Fatal(err)
	}
	r.killServer() // with it goes what it remembers
	r.restartServer(t)
	lists := len(r.proxy.requests(podsLists))
	r.proxy.partition(false)
	r.eventually("the pod that came meanwhile is known", func() bool { return r.refuses(later) })
	if len(r.proxy.requests(podsLists)) == lists {
		t.Error("it was never listed anew")
	}
	if r.refuses(gone) {
		t.Error("the pod that went meanwhile is still known")
	}
}

// anError is a watch that is answered well, with the words that it has failed.
func anError(code int) string {
	return fmt.Sprintf(`{"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "metadata": {},
		"status": "Failure", "message": "the test says %d", "reason": %q, "code": %d}}`+"\n", code,
		map[int]string{410: "Expired", 500: "InternalError"}[code], code)
}

func TestAWatchThatFails(t *testing.T) {
	isWatch := func(q *http.Request) bool {
		return strings.HasSuffix(q.URL.Path, "/pods") && q.URL.Query().Has("watch")
	}
	for _, c := range []struct {
		name  string
		fault fault
		lists int // in all, at least
	}{
		{"429 at the first one", fault{status: 429, again: 1}, 1},
		{"410", fault{status: 410}, 2},
		{"ERROR 410", fault{status: 200, body: anError(410)}, 2},
		{"ERROR 500", fault{status: 200, body: anError(500)}, 2},
		{"no JSON", fault{status: 200, body: "{\"type\": \n\n]"}, 1},
		{"500", fault{status: 500}, 1},
		{"empty", fault{status: 200, body: "\n"}, 1},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			r := prepareRig(t, "podsWatch.enabled=true", "nodeResourceTopology.enabled=false")
			r.onlyOnce(isWatch, c.fault)
			r.startRuntime()
			r.startDaemon()
			r.waitConnected()
			r.proxy.waitRequests(t, 2, podsWatches)
			r.knowsPods("late")
			if lists := len(r.proxy.requests(podsLists)); lists < c.lists {
				t.Errorf("%d lists", lists)
			}
		})
	}
}
