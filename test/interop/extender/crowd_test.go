package interop

import (
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A crowd holds connections to an address, says the same on each of them and nothing more, and makes
// each anew as soon as it is closed.
type crowd struct {
	address, from string
	says          []byte
	held, renewed atomic.Int64
	over          atomic.Bool
	lock          sync.Mutex
	open          map[net.Conn]bool
	all           sync.WaitGroup
}

const (
	crowdSize  = 2000
	crowdCalls = 100
	crowdLimit = 500 * time.Millisecond
	crowdPause = 50 * time.Millisecond // between calls, so that many are made anew meanwhile
)

func newCrowd(t *testing.T, address, from string, says []byte) *crowd {
	t.Helper()
	c := &crowd{address: address, from: from, says: says, open: map[net.Conn]bool{}}
	for range crowdSize {
		c.all.Add(1)
		go c.hold()
	}
	for end := time.Now().Add(20 * time.Second); c.held.Load()+c.renewed.Load() < crowdSize; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d connections, %d made anew", c.held.Load(), c.renewed.Load())
		}
	}
	t.Cleanup(c.leave)
	return c
}

func (c *crowd) hold() {
	defer c.all.Done()
	dialer := net.Dialer{Timeout: 5 * time.Second, LocalAddr: &net.TCPAddr{IP: net.ParseIP(c.from)}}
	for !c.over.Load() {
		connection, err := dialer.Dial("tcp", c.address)
		if err != nil {
			time.Sleep(time.Millisecond) // no port is left
			continue
		}
		if c.keep(connection, true) {
			c.held.Add(1)
			connection.Write(c.says)
			for buffer := make([]byte, 4096); err == nil; _, err = connection.Read(buffer) {
			}
			c.held.Add(-1)
			c.renewed.Add(1)
		}
		c.keep(connection, false)
		connection.Close()
	}
}

// keep notes the connection for the end, which may have come.
func (c *crowd) keep(connection net.Conn, is bool) bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	if is {
		c.open[connection] = true
	} else {
		delete(c.open, connection)
	}
	return !c.over.Load()
}

func (c *crowd) leave() {
	c.lock.Lock()
	c.over.Store(true)
	for connection := range c.open {
		connection.Close()
	}
	c.lock.Unlock()
	c.all.Wait()
}

// callAmong makes calls one after the other, and insists on the time that each takes.
func callAmong(t *testing.T, what string, call func() (status int, err error), c *crowd) {
	t.Helper()
	var took []time.Duration
	failed := 0
	before := c.renewed.Load()
	for range crowdCalls {
		time.Sleep(crowdPause)
		from := time.Now()
		status, err := call()
		took = append(took, time.Since(from))
		if err != nil || status != http.StatusOK {
			failed++
			t.Logf("%s: %d %v", what, status, err)
		}
	}
	slices.Sort(took)
	t.Logf("figure: %s, %d connections held, %d made anew meanwhile: %d failed, p50 %v, p99 %v, most %v", what,
		c.held.Load(), c.renewed.Load()-before, failed, took[len(took)/2].Round(time.Microsecond),
		took[len(took)-2].Round(time.Microsecond), took[len(took)-1].Round(time.Microsecond))
	if failed > 0 || took[len(took)-1] >= crowdLimit {
		t.Errorf("%s: %d of %d failed, the slowest took %v", what, failed, crowdCalls, took[len(took)-1])
	}
}

// dialFrom is the transport of clients at that address; each call has a connection of its own.
func dialFrom(from string) *http.Transport {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	return &http.Transport{DisableKeepAlives: true, DialContext: dialer.DialContext}
}
