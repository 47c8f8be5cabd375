package interop

import (
	"crypto/tls"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

// What goes wrong around the extender, and several of it.

// once insists that every pod is bound, to one node for ever.
func (r *rig) once(list []*v1.Pod) {
	r.Helper()
	r.await("every pod is bound", func() bool { return r.countBound(list) == len(list) }, func() string { return r.waiting(list) })
	r.lock.Lock()
	defer r.lock.Unlock()
	for _, p := range list {
		if nodes := r.nodesOf[p.UID]; len(nodes) != 1 {
			r.Errorf("%s is on %v", p.Name, nodes)
		}
	}
}

// waiting are those that are not bound, and why. It needs r.lock.
func (r *rig) waiting(list []*v1.Pod) (text string) {
	for _, p := range list {
		now := r.pods[p.UID]
		if now == nil {
			text += p.Name + " is gone\n"
		} else if now.Spec.NodeName == "" {
			text += p.Name + " " + asJSON(now.Status.Conditions) + "\n"
		}
	}
	return text
}

// wave creates pods without waiting for them.
func (r *rig) wave(pods int) (list []*v1.Pod) {
	r.Helper()
	for i := range pods {
		list = append(list, r.create(guaranteed(fmt.Sprint("wave-", i), 1+int64(i%3))))
	}
	return list
}

// room is more than a wave needs, and little more.
func (r *rig) room(nodes int) {
	r.Helper()
	for i := range nodes {
		r.machine(fmt.Sprint("n", i), zonesOf(8, amounts{"cpu": 16, "memory": 64 * gi}), func(m *machine) { m.delay = 50 * time.Millisecond })
	}
}

func TestKilledInTheMiddleOf1000Pods(t *testing.T) {
	const pods, nodes, kills = 1000, 18, 5 // of 2,304 CPUs it takes 2,000
	r := newRig(t)
	x := r.withExtender(strategy("LeastAllocated"), nil)
	r.room(nodes)
	start := time.Now()
	ended := make(chan bool)
	go func() {
		defer close(ended)
		for k := range kills {
			r.await("more pods are bound", func() bool { return len(r.nodesOf) >= (k+1)*pods/(kills+2) })
			x.kill()
			x.start()
		}
	}()
	list := r.wave(pods)
	<-ended
	x.waitReady()
	r.once(list)
	r.nothingWasRefused()
	figure("%d pods through %d deaths of the extender in %v", pods, kills, time.Since(start).Round(time.Millisecond))
}

func TestTwoReplicasBehindOneAddress(t *testing.T) {
	const pods, nodes = 200, 4 // of 512 CPUs it takes 399
	r := newRig(t)
	one, two := r.extender(strategy("LeastAllocated")), r.extender(strategy("LeastAllocated"))
	r.scheduler(r.balancer(one.address, two.address), nil)
	r.room(nodes)
	list := r.wave(pods / 2)
	r.await("half of these are bound", func() bool { return r.countBound(list) >= pods/4 })
	one.kill()
	for i := range pods / 2 {
		list = append(list, r.create(guaranteed(fmt.Sprint("second-", i), 1+int64(i%3))))
	}
	r.once(list)
	for _, p := range list {
		if now := r.now(p); now.Annotations[hintKey] == "" {
			t.Fatalf("%s has no hint", now.Name)
		}
	}
	// both may give one zone away in the same moment; the node sees to it
	figure("%d of %d pods through two replicas, connection by connection, had hints that did not fit", len(r.repaired()), pods)
}

func TestTheServerDiesAndComesBack(t *testing.T) {
	r := newRig(t)
	x := r.withExtender(strategy("LeastAllocated"), nil)
	r.room(4)
	list := r.wave(60)
	r.killServer()
	time.Sleep(300 * time.Millisecond) // it tries, and fails
	r.restartServer(t)
	list = append(list, r.create(guaranteed("last", 1)))
	r.once(list)
	r.nothingWasRefused()
	x.waitReady()
}

func TestHistoryIsForgotten(t *testing.T) {
	r := newRig(t)
	x := r.withExtender(strategy("LeastAllocated"), nil)
	r.room(2)
	r.once(r.wave(10))
	r.nothingWasRefused()
	r.killServer()
	if err := r.compact(); err != nil {
		t.Fatal(err)
	}
	r.restartServer(t)
	r.eventually("it places pods again", func() bool {
		p := r.create(guaranteed(fmt.Sprint("p", time.Now().UnixNano()), 1))
		return r.bound(p).Annotations[hintKey] != ""
	})
	r.nothingWasRefused()
	x.waitReady()
}

func TestTheExtenderIsDown(t *testing.T) {
	for _, ignorable := range []bool{true, false} {
		t.Run(fmt.Sprint("ignorable-", ignorable), func(t *testing.T) {
			r := newRig(t)
			x := r.withExtender(strategy("LeastAllocated"), way{"ignorable": ignorable})
			r.machine("n", zonesOf(2, amounts{"cpu": 8, "memory": 32 * gi}), nil)
			r.said(r.bound(r.create(guaranteed("first", 2))))
			x.kill()
			p := r.create(guaranteed("second", 2))
			if ignorable {
				if p = r.bound(p); p.Annotations[hintKey] != "" {
					t.Errorf("who has written %s?", p.Annotations[hintKey])
				}
				return
			}
			r.await("the scheduler says so", func() bool {
				return r.pods[p.UID] != nil && len(r.pods[p.UID].Status.Conditions) > 0
			})
			if node := r.now(p).Spec.NodeName; node != "" {
				t.Fatalf("it is on %s", node)
			}
			x.start()
			if p = r.bound(p); p.Annotations[hintKey] == "" {
				t.Error("it has no hint")
			}
		})
	}
}

// certificates are files of one that the control plane's authority has signed.
func (r *rig) certificates(name string) (cert, key string) {
	r.Helper()
	c, k, err := r.ca.issue(pkix.Name{CommonName: name}, net.IPv4(127, 0, 0, 1))
	cert, key = filepath.Join(r.dir, name+".crt"), filepath.Join(r.dir, name+".key")
	if err == nil {
		err = os.WriteFile(cert, c, 0o600)
	}
	if err == nil {
		err = os.WriteFile(key, k, 0o600)
	}
	if err != nil {
		r.Fatal(err)
	}
	return cert, key
}

// secureExtender is one that wants certificates of its clients, not yet started, and kube-scheduler's.
func (r *rig) secureExtender(more settings) (x *extender, clientCert, clientKey string) {
	r.Helper()
	cert, key := r.certificates("extender")
	clientCert, clientKey = r.certificates("kube-scheduler")
	pair, err := tls.LoadX509KeyPair(clientCert, clientKey)
	if err != nil {
		r.Fatal(err)
	}
	x = r.prepareExtender(strategy("LeastAllocated").with(settings{"tls": map[string]any{"certFile": cert, "keyFile": key,
		"clientCAFile": r.path("ca.crt")}}).with(more))
	x.secure = &tls.Config{RootCAs: authorityPool(), Certificates: []tls.Certificate{pair}}
	return x, clientCert, clientKey
}

func TestTLSWithClientCertificates(t *testing.T) {
	r := newRig(t)
	x, clientCert, clientKey := r.secureExtender(settings{})
	x.start()
	x.waitReady()
	r.scheduler(x.url(), way{"enableHTTPS": true, "tlsConfig": map[string]any{"caFile": r.path("ca.crt"),
		"certFile": clientCert, "keyFile": clientKey}})
	r.room(1)
	if p := r.bound(r.create(guaranteed("p", 2))); p.Annotations[hintKey] == "" {
		t.Error("it has no hint")
	}
	for name, config := range map[string]*tls.Config{
		"without a certificate": {RootCAs: authorityPool()},
		"with somebody else's":  {RootCAs: authorityPool(), Certificates: []tls.Certificate{strangers(t)}}} {
		stranger := *x
		stranger.secure = config
		if status, text, err := stranger.get("/metrics"); err == nil {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	plain := *x
	plain.secure = nil
	if status, _, err := plain.get("/metrics"); err == nil && status == 200 {
		t.Error("without TLS it answers, too")
	}
	if strings.Contains(x.logged(), "PRIVATE") {
		t.Error("its log has a key")
	}
}

func strangers(t *testing.T) tls.Certificate {
	other, err := newAuthority("somebody else")
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := other.issue(pkix.Name{CommonName: "kube-scheduler"})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}
