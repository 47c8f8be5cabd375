package interop

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// proxy stands between numafitd and the API server, with that one's own certificate: it keeps account
// of what is asked, and is where the network and the server go wrong.
type proxy struct {
	url     string
	forward *httputil.ReverseProxy
	server  *http.Server
	lock    sync.Mutex
	changed *sync.Cond
	silent  bool // nothing goes through, and nobody is told
	conns   map[net.Conn]bool
	rule    func(r *http.Request) *fault
	seen    []request
}

// request is one that has come.
type request struct {
	at           time.Time
	method, path string
	query        url.Values
	agent        string
	status       int // of the answer; 0: none yet
}

func (r request) isWatch() bool { return r.query.Has("watch") }

// fault is what becomes of a request.
type fault struct {
	delay  time.Duration
	cut    bool   // the connection breaks off
	status int    // is answered in the server's place
	again  int    // Retry-After, in seconds
	body   string // then; "": a Status
	// instead of all that: anything
	serve http.HandlerFunc
}

func newProxy(t testing.TB, c *controlPlane) *proxy {
	target, err := url.Parse(c.admin.Host)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(c.ca.certificate)
	p := &proxy{conns: map[net.Conn]bool{}}
	p.changed = sync.NewCond(&p.lock)
	p.forward = httputil.NewSingleHostReverseProxy(target)
	p.forward.FlushInterval = -1 // a watch's events, as they come
	p.forward.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	p.forward.ErrorLog = quiet
	p.forward.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	pair, err := tls.X509KeyPair(c.certificate, c.serverKey)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.url = "https://" + listener.Addr().String()
	p.server = &http.Server{Handler: p, ErrorLog: quiet, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}}}
	go p.server.ServeTLS(gate{listener, p}, "", "")
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(p.account())
		}
		p.partition(false)
		p.server.Close()
		p.forward.Transport.(*http.Transport).CloseIdleConnections()
	})
	return p
}

// partition makes all go nowhere, or go on where it stopped.
func (p *proxy) partition(on bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.silent = on
	p.changed.Broadcast()
}

// cut breaks all connections off.
func (p *proxy) cut() {
	p.lock.Lock()
	defer p.lock.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

// setRule says what becomes of requests from now on; nil, or a nil fault: nothing.
func (p *proxy) setRule(rule func(r *http.Request) *fault) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.rule = rule
}

// requests are those that came, in order, as far as they are wanted.
func (p *proxy) requests(wanted func(r request) bool) (list []request) {
	p.lock.Lock()
	defer p.lock.Unlock()
	for _, r := range p.seen {
		if wanted(r) {
			list = append(list, r)
		}
	}
	return list
}

// account says what came last, and what became of it.
func (p *proxy) account() string {
	list := p.requests(func(request) bool { return true })
	var b strings.Builder
	for _, r := range list[max(0, len(list)-60):] {
		fmt.Fprintf(&b, "%s %s %s?%s: %d\n", r.at.UTC().Format("15:04:05.000"), r.method, r.path, r.query.Encode(), r.status)
	}
	return b.String()
}

// waitRequests waits until so many have come and been answered.
func (p *proxy) waitRequests(t testing.TB, nr int, wanted func(r request) bool) []request {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if list := p.requests(wanted); len(list) >= nr && list[nr-1].status != 0 {
			return list
		}
	}
	t.Fatalf("%d of %d requests came that were waited for", len(p.requests(wanted)), nr)
	return nil
}

func (p *proxy) note(r *http.Request) (*fault, func(status int)) {
	p.lock.Lock()
	defer p.lock.Unlock()
	at := len(p.seen)
	p.seen = append(p.seen, request{at: time.Now(), method: r.Method, path: r.URL.Path, query: r.URL.Query(),
		agent: r.UserAgent()})
	answered := func(status int) {
		p.lock.Lock()
		defer p.lock.Unlock()
		p.seen[at].status = status
	}
	if p.rule == nil {
		return nil, answered
	}
	return p.rule(r), answered
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, answered := p.note(r)
	if f == nil {
		f = &fault{}
	}
	select {
	case <-time.After(f.delay):
	case <-r.Context().Done():
		return
	}
	if f.cut {
		panic(http.ErrAbortHandler)
	}
	w = &noted{w, answered}
	if f.serve != nil {
		f.serve(w, r)
		return
	}
	if f.status == 0 {
		p.forward.ServeHTTP(w, r)
		return
	}
	if f.again > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(f.again))
	}
	if f.body == "" {
		f.body = fmt.Sprintf(`{"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
			"message": "the test says %d", "reason": %q, "code": %d}`, f.status,
			strings.ReplaceAll(http.StatusText(f.status), " ", ""), f.status)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.status)
	w.Write([]byte(f.body))
}

// noted is an answer whose status is noted.
type noted struct {
	http.ResponseWriter
	answered func(status int)
}

func (n *noted) WriteHeader(status int) {
	n.answered(status)
	n.ResponseWriter.WriteHeader(status)
}
func (n *noted) Unwrap() http.ResponseWriter { return n.ResponseWriter }
func (n *noted) Flush()                      { n.ResponseWriter.(http.Flusher).Flush() }

// gate is a listener whose connections can be held up.
type gate struct {
	net.Listener
	p *proxy
}

func (g gate) Accept() (net.Conn, error) {
	c, err := g.Listener.Accept()
	if err != nil {
		return nil, err
	}
	held := &heldConn{Conn: c, p: g.p}
	g.p.lock.Lock()
	defer g.p.lock.Unlock()
	g.p.conns[held] = true
	return held, nil
}

type heldConn struct {
	net.Conn
	p      *proxy
	closed bool // under p.lock
}

func (c *heldConn) pass() {
	c.p.lock.Lock()
	defer c.p.lock.Unlock()
	for c.p.silent && !c.closed {
		c.p.changed.Wait()
	}
}

func (c *heldConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.pass()
	return n, err
}

func (c *heldConn) Write(b []byte) (int, error) {
	c.pass()
	return c.Conn.Write(b)
}

func (c *heldConn) Close() error {
	go func() { // cut() holds the lock
		c.p.lock.Lock()
		defer c.p.lock.Unlock()
		c.closed = true
		delete(c.p.conns, c)
		c.p.changed.Broadcast()
	}()
	return c.Conn.Close()
}
