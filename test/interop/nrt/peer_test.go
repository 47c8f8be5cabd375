package interop

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"testing"
)

// numafit answers questions about scores, a line each.
type numafit struct {
	in  io.WriteCloser
	out *bufio.Reader
}

func newNumafit(t *testing.T) *numafit {
	t.Helper()
	cmd := exec.Command(os.Getenv("NUMAFIT"), "score", "-")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	return &numafit{in, bufio.NewReaderSize(out, 1<<20)}
}

func (n *numafit) ask(t *testing.T, q question) answer {
	t.Helper()
	var line struct {
		Result *struct{ Nodes []answer }
		Error  string
	}
	_, err := n.in.Write(append(asJSON(q), '\n'))
	if err == nil {
		var text []byte
		if text, err = n.out.ReadBytes('\n'); err == nil {
			err = json.Unmarshal(text, &line)
		}
	}
	if err != nil || line.Result == nil || len(line.Result.Nodes) != 1 {
		t.Fatalf("numafit score: %v %s; asked %s", err, line.Error, asJSON(q))
	}
	return line.Result.Nodes[0]
}
