package interop

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// A kubelet restarts numafitd after three probes without an answer.
func TestProbesAreAnsweredAmongIdleConnections(t *testing.T) {
	for _, c := range []struct{ name, from, says string }{
		{"silent ones from elsewhere", "127.0.0.2", ""},
		{"silent ones from here", "127.0.0.1", ""},
		{"halves of requests from here", "127.0.0.1", "GET /metrics HTTP/1.1\r\nHost: x\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := serve(t)
			crowd := newCrowd(t, strings.TrimPrefix(url, "http://"), c.from, []byte(c.says))
			client := http.Client{Timeout: 5 * time.Second, Transport: dialFrom("127.0.0.1")}
			callAmong(t, "probes of numafitd, "+c.name, func() (int, error) {
				answer, err := client.Get(url + "/livez")
				if err != nil {
					return 0, err
				}
				return answer.StatusCode, answer.Body.Close()
			}, crowd)
		})
	}
}
