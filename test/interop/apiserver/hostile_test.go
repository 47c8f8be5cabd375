package interop

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A server that is not what it should be. What it gets of numafitd is nothing but requests, and what
// it costs numafitd is bounded.

func TestAServerByAnotherAuthorityIsNotSpokenTo(t *testing.T) {
	r := prepareRig(t, "podsWatch.enabled=true")
	stranger, err := newAuthority("somebody else")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(r.dir, "kubeconfig")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(r.dir, "other.crt")
	if err := os.WriteFile(other, stranger.pem(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), r.path("ca.crt"), other, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	r.startRuntime()
	r.startDaemon()
	r.waitConnected()
	r.waitLog(1, "certificate")
	r.meanwhile("one")
	if list := r.proxy.requests(func(request) bool { return true }); len(list) != 0 {
		t.Errorf("it was sent %v", list)
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	r := prepareRig(t, "podsWatch.enabled=true")
	var came atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { came.Add(1) }))
	defer other.Close()
	r.proxy.setRule(func(*http.Request) *fault {
		return &fault{serve: func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, other.URL+q.URL.Path, http.StatusTemporaryRedirect)
		}}
	})
	r.startRuntime()
	r.startDaemon()
	r.waitConnected()
	r.proxy.waitRequests(t, 2, func(request) bool { return true })
	r.meanwhile("one")
	time.Sleep(100 * time.Millisecond) // that nothing comes cannot be awaited
	if n := came.Load(); n != 0 {
		t.Errorf("%d requests went to another host", n)
	}
	r.proxy.setRule(nil)
	r.agrees()
}

const (
	poured   = 1 << 30  // bytes that such a server has
	takenMax = 96 << 20 // what may be on its way
	grownMax = 96 << 20 // numafitd's memory
)

func TestAnAnswerWithoutEndIsBounded(t *testing.T) {
	for _, c := range []struct{ name, head, block string }{
		{"one string", `{"kind": "Status", "message": "`, strings.Repeat("x", 64<<10)},
		{"deep", "", strings.Repeat("[", 64<<10)},
	} {
		t.Run(objectName(c.name), func(t *testing.T) {
			r := prepareRig(t, "podsWatch.enabled=true")
			var sent, answers atomic.Int64
			r.proxy.setRule(func(*http.Request) *fault {
				return &fault{serve: func(w http.ResponseWriter, q *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					n, err := w.Write([]byte(c.head))
					for all := 0; err == nil && all < poured; all += n {
						n, err = w.Write([]byte(c.block))
						sent.Add(int64(n))
					}
					answers.Add(1)
				}}
			})
			r.startRuntime()
			r.startDaemon()
			r.waitConnected()
			r.eventually("numafitd has hung up on two answers", func() bool { return answers.Load() >= 2 })
			if each := sent.Load() / answers.Load(); each > takenMax {
				t.Errorf("it took %d MiB of each answer", each>>20)
			}
			if peak := r.peak(); peak > grownMax {
				t.Errorf("it grew to %d MiB", peak>>20)
			}
			r.meanwhile("one")
			r.proxy.setRule(nil)
			r.agrees()
		})
	}
}

// peak is the most memory that numafitd has had.
func (r *rig) peak() (bytesOf int64) {
	r.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.daemon.Process.Pid))
	if err != nil {
		r.Fatal(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if kilobytes, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			fmt.Sscan(kilobytes, &bytesOf)
			return bytesOf << 10
		}
	}
	r.Fatal("its memory is not known")
	return 0
}
