package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	feature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
)

// Upstream's code runs in a child of its own, which may die, or be ended when it does not come
// back.
const answerVerb = "answer-for-upstream"

type upstreamQuestion struct {
	Form     string          `json:"form"`
	Question json.RawMessage `json:"question"`
}

// mishap is upstream's answer where it has none.
type mishap struct {
	Hangs  bool   `json:"upstream_hangs,omitempty"`
	Panics string `json:"upstream_panics,omitempty"`
}

// setUp makes upstream silent, and lets it have all options.
func setUp() {
	klog.SetLogger(logr.Discard())
	must(feature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{
		string(features.CPUManagerPolicyAlphaOptions): true}))
	debug.SetGCPercent(1600) // memory is cheap here, and the heap small
}

func serve(in io.Reader, out io.Writer) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, lineBytesMax)
	for lines.Scan() {
		var q upstreamQuestion
		must(json.Unmarshal(lines.Bytes(), &q))
		openGates(q.Form)
		answer, hangs := answerInTime(formNamed(q.Form), q.Question)
		_, _ = out.Write(append(encode(answer), '\n'))
		if hangs { // it cannot be ended but with the process
			os.Exit(0)
		}
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubelet-diff:", err)
		os.Exit(1)
	}
}

// A loop without end uses a processor all the time; a busy machine or a slow start does not.
const lookAgain = 20 * time.Millisecond

func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func answerInTime(f *form, question []byte) (answer any, hung bool) {
	done := make(chan any, 1)
	go func() { done <- answerOrPanic(f, question) }()
	start := processorTime()
	for {
		select {
		case answer = <-done:
			return answer, false
		case <-time.After(lookAgain):
			if processorTime()-start > f.patience {
				return mishap{Hangs: true}, true
			}
		}
	}
}

func answerOrPanic(f *form, question []byte) (answer any) {
	defer func() {
		if why := recover(); why != nil {
			answer = mishap{Panics: fmt.Sprintf("%v at %s", why, panicPlace())}
		}
	}()
	answer, err := f.answer(question)
	if err != nil {
		return mishap{Panics: "the question: " + err.Error()}
	}
	return answer
}

// panicPlace finds the first line of upstream's in the stack.
func panicPlace() string {
	for _, line := range strings.Split(string(debug.Stack()), "\n") {
		if _, place, ok := strings.Cut(line, "k8s.io/kubernetes@"); ok {
			place, _, _ = strings.Cut(place, " ")
			return place
		}
	}
	return "an unknown place"
}
