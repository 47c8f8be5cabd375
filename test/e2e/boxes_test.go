package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// How cases of a node in a virtual machine are tried again, with a machine that is a script; and what counts as
// a pod that runs.

// fakeBox is a machine in which the case ends by its plan's word for that machine: the last word of all is for all
// further machines. One that has panicked hangs, or starts anew with what the case has left, so that the case fails there.
const fakeBox = `#!/bin/sh
dir=$1
shift
echo >>"$dir/booted"
nr=$(wc -l <"$dir/booted")
while [ "$nr" -gt 1 ] && [ $# -gt 1 ]; do shift; nr=$((nr - 1)); done
fate=$1
: >"$CONSOLE"
echo 'ready 1'
while read -r verb name variables; do
	echo "$variables" >>"$dir/variables"
	case $fate in
	passes) printf -- '--- PASS: %s (0.00s)\nended %s 0 2\n' "$name" "$name" ;;
	fails) echo "ended $name 1 2" ;;
	faults) echo 'traps: PANIC: double fault, error_code: 0x0' >>"$CONSOLE"; echo 'ready 1'; fate=fails ;;
	hangs) printf 'traps: PANIC: double fault\nKernel panic - not syncing: x\n' >>"$CONSOLE" ;;
	panics) echo 'Kernel panic - not syncing: VFS' >>"$CONSOLE" ;;
	restarts) echo 'ready 1'; fate=passes ;;
	ends) exit ;;
	esac
done
`

func TestSecondTryHasANewMachine(t *testing.T) {
	for _, c := range []struct {
		plan     string
		result   outcome
		machines int
	}{
		{"passes", passed, 1},
		{"fails", failed, 1},
		{"ends", answersNothing, 1},
		{"panics", startedAnew, 1},
		{"restarts", startedAnew, 1},
		{"hangs passes", passed, 2},
		{"faults passes", passed, 2},
		{"faults fails", failed, 2},
		{"faults faults passes", passed, 3},
		{"faults faults faults", doubleFaulted, 3},
	} {
		t.Run(c.plan, func(t *testing.T) {
			dir := t.TempDir()
			script := filepath.Join(dir, "machine")
			if err := os.WriteFile(script, []byte(fakeBox), 0o700); err != nil {
				t.Fatal(err)
			}
			b := boxes{command: append([]string{script, dir}, strings.Fields(c.plan)...)}
			defer b.end()
			if result, text := b.run(t, "TestInsideX"); result != c.result || b.nr != c.machines {
				t.Errorf("outcome %d in %d machines, not %d in %d:\n%s", result, b.nr, c.result, c.machines, text)
			}
			if kept := b.box != nil; kept != (c.result <= failed) {
				t.Errorf("the machine is kept for the next case: %v", kept)
			}
		})
	}
}

// A panic that is asked for is one of the first try.
func TestPanicIsAskedForOnce(t *testing.T) {
	t.Setenv(panicVariable, "there")
	dir := t.TempDir()
	script := filepath.Join(dir, "machine")
	if err := os.WriteFile(script, []byte(strings.ReplaceAll(fakeBox, "traps: PANIC: double fault", askedPanic)), 0o700); err != nil {
		t.Fatal(err)
	}
	b := boxes{command: []string{script, dir, "faults", "passes"}}
	defer b.end()
	result, text := b.run(t, "TestInsideX")
	variables, err := os.ReadFile(dir + "/variables")
	if err != nil || result != passed || string(variables) != "PANIC=there\n\n" {
		t.Errorf("outcome %d, %v, variables %q: %s", result, err, variables, text)
	}
}

func TestWhatRunsIsWhatTheRuntimeRuns(t *testing.T) {
	is := func(phase string, containers ...string) *podStatus { // NAME=ID, or NAME~ID when it is not ready
		s := &podStatus{Phase: phase}
		for _, c := range containers {
			at := strings.IndexAny(c, "=~")
			s.ContainerStatuses = append(s.ContainerStatuses, containerStatus{Name: c[:at], ContainerID: c[at+1:], Ready: c[at] == '='})
		}
		return s
	}
	p := &pod{containers: map[string]string{"main": "new", "side": "two"}}
	for _, c := range []struct {
		words  string
		status *podStatus
		pod    *pod
		runs   bool
	}{
		{"no status", nil, p, false},
		{"a status without containers", is("Running"), p, false},
		{"no sandbox that is ready", is("Running", "main=containerd://new"), nil, false},
		{"the runtime's container", is("Running", "main=containerd://new"), p, true},
		{"CRI-O's", is("Running", "main=cri-o://new", "side=cri-o://two"), p, true},
		{"one of before the node started anew", is("Running", "main=containerd://old"), p, false},
		{"one that has no ID yet", is("Running", "main="), p, false},
		{"one that the runtime does not run", is("Running", "other=containerd://new"), p, false},
		{"one of two that is not ready", is("Running", "main=containerd://new", "side~containerd://two"), p, false},
		{"a pod that is about to run", is("Pending", "main=containerd://new"), p, false},
	} {
		if c.status.runsAs(c.pod) != c.runs {
			t.Errorf("%s: runs is %v", c.words, !c.runs)
		}
	}
}
