// Package upstream is what the programs that ask real scheduler plugins have in common: a question
// is a line of JSON, as `numafit score` takes it, and so is the answer.
package upstream

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
)

// Question asks a plugin about a pod and some nodes; objects are the API server's.
type Question struct {
	Plugin string          `json:"plugin"`
	Args   json.RawMessage `json:"args"`
	Nodes  []Candidate     `json:"nodes"`
	Pod    json.RawMessage `json:"pod"`
	// Whole: amounts that Kubernetes keeps as decimal fractions are made whole numbers first, which
	// nobody can change by changing a copy.
	Whole bool `json:"whole"`
	// Unfiltered: nodes that do not fit are scored, too.
	Unfiltered bool `json:"unfiltered"`
}

// Candidate is a node.
type Candidate struct {
	Node     json.RawMessage   `json:"node"`
	Topology json.RawMessage   `json:"topology"`
	Pods     []json.RawMessage `json:"pods"`
}

// Answer is what the plugin says.
type Answer struct {
	Error    string `json:"error,omitempty"`
	PreScore string `json:"prescore,omitempty"`
	Nodes    []Node `json:"nodes,omitempty"`
}

// Node is what it says of one node.
type Node struct {
	Name  string   `json:"name"`
	Fits  bool     `json:"fits"`
	Code  string   `json:"code"`
	Why   []string `json:"why"`
	Score *int64   `json:"score"`
	Raw   *int64   `json:"raw,omitempty"`
	// Zones that are assumed for each container, or for the pod, "*".
	Zones  map[string][]int `json:"zones,omitempty"`
	Panics string           `json:"panics,omitempty"` // instead of the rest
}

const lineBytesMax = 64 << 20

// Serve answers each line, in order, and does not survive what it cannot read.
func Serve(in io.Reader, out io.Writer, answer func(*Question) Answer) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, lineBytesMax)
	for lines.Scan() {
		var q Question
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			fail(err)
		}
		text, err := json.Marshal(answer(&q))
		if err != nil {
			fail(err)
		}
		_, _ = out.Write(append(text, '\n'))
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// Must reads what the question holds, which is ours.
func Must[T any](text []byte) *T {
	var v T
	if err := json.Unmarshal(text, &v); err != nil {
		fail(fmt.Errorf("%w in %s", err, text))
	}
	return &v
}

// TypedArgs is args as the configuration's file has them, with their type.
func TypedArgs(args json.RawMessage, kind string) []byte {
	text := strings.TrimSpace(string(args))
	if text == "" || text == "null" {
		text = "{}"
	}
	head := fmt.Sprintf(`{"apiVersion":"kubescheduler.config.k8s.io/v1","kind":%q`, kind)
	if rest := strings.TrimSpace(text[1:]); rest != "}" {
		head += ","
	}
	return []byte(head + text[1:])
}

// Try asks about one node, and takes a panic of the plugin's for its answer.
func Try(name string, ask func(n *Node)) (n Node) {
	n = Node{Name: name, Why: []string{}}
	defer func() {
		if why := recover(); why != nil {
			n = Node{Name: name, Why: []string{}, Panics: fmt.Sprintf("%v at %s", why, place())}
		}
	}()
	ask(&n)
	return n
}

// place finds where it was: the first line of the plugins' in the stack.
func place() string {
	for _, line := range strings.Split(string(debug.Stack()), "\n") {
		for _, module := range []string{"sigs.k8s.io/scheduler-plugins@", "k8s.io/kubernetes@"} {
			if _, place, ok := strings.Cut(line, module); ok {
				place, _, _ = strings.Cut(place, " ")
				return place
			}
		}
	}
	return "an unknown place"
}

// SortReasons puts those of a Go map's order, which stand last, by name.
func SortReasons(why []string) []string {
	fixed := []string{"Too many pods", "Insufficient cpu", "Insufficient memory",
		"Insufficient ephemeral-storage"}
	i := 0
	for i < len(why) && slices.Contains(fixed, why[i]) {
		i++
	}
	slices.Sort(why[i:])
	return why
}
