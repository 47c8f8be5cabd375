package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A whole node in a virtual machine: this side boots it and has it run the cases, one after another in
// one boot. The cases are in inside_*_test.go, and run in there, in this same program.

const (
	bootPatience = 10 * time.Minute // real time, on a machine that is busy with other things
	casePatience = 60 * time.Minute
	ticks        = 100 // of a second, in /proc/PID/stat

	maxBoots = 2 // that fail, one after another, before the rest of the cases is not tried
	// An emulated processor's fault: QEMU 7.2 has Linux 6.12 panic so once in some twenty boots. Any other panic fails the case.
	doubleFault     = "double fault"
	kernelPanic     = "Kernel panic - not syncing" // the machine may start anew after that, or hang
	maxDoubleFaults = 2                            // in a part

	// PANIC=POD has the kernel panic once that pod runs, in the first try of each case: to see that the second one is right.
	panicVariable = "PANIC"
	askedPanic    = "sysrq: Trigger a crash"
)

// box is a virtual machine that runs.
type box struct {
	*testing.T
	command []string
	vm      *exec.Cmd
	line    io.WriteCloser // to the cases
	said    chan string    // by them; closed at its end
	began   time.Time
	watched int // where the console's part begins in which a panic ends hear(); -1: nowhere
}

// boot starts the machine; it is ready for cases later.
func boot(t *testing.T, command []string) *box {
	b := &box{T: t, command: command, said: make(chan string, 1024), began: time.Now(), watched: -1}
	b.vm = exec.Command(command[0], command[1:]...)
	b.vm.Env = append(os.Environ(), "CONSOLE="+b.console())
	b.vm.Stderr = os.Stderr
	b.vm.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	out, err := b.vm.StdoutPipe()
	if err == nil {
		b.line, err = b.vm.StdinPipe()
	}
	if err == nil {
		err = b.vm.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(b.said)
		for s := bufio.NewScanner(out); s.Scan(); {
			b.said <- strings.TrimRight(s.Text(), "\r")
		}
	}()
	return b
}

func (b *box) console() string { return os.TempDir() + "/console" }

func (b *box) consoleSize() int { return len(b.consoleFrom(0)) }

// consoleFrom is what the console has printed after its first so many bytes.
func (b *box) consoleFrom(bytes int) string {
	text, _ := os.ReadFile(b.console())
	return string(text[min(bytes, len(text)):])
}

func (b *box) end() {
	syscall.Kill(-b.vm.Process.Pid, syscall.SIGTERM)
	b.line.Close()
	for range b.said { // its output is read to the end
	}
	b.vm.Wait()
}

// hear is the next line from within that begins with one of the words, and all lines before it; kernelPanic when the
// console says so where it is watched; "" when it is late or the machine has ended.
func (b *box) hear(late time.Duration, words ...string) (line, before string) {
	var text strings.Builder
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for timer := time.After(late); ; {
		select {
		case line, ok := <-b.said:
			if !ok {
				return "", text.String()
			}
			for _, word := range words {
				if strings.HasPrefix(line, word) {
					return line, text.String()
				}
			}
			if _, figure, ok := strings.Cut(line, "figure: "); ok {
				fmt.Printf("figure: %s, %.0f s after power-on\n", figure, time.Since(b.began).Seconds())
				continue
			}
			if row, ok := strings.CutPrefix(line, "row: "); ok {
				b.keepRow(row)
			}
			text.WriteString("| " + line + "\n") // else a case would be counted twice, in there and here
		case <-ticker.C:
			if b.watched >= 0 && strings.Contains(b.consoleFrom(b.watched), kernelPanic) {
				return kernelPanic, text.String()
			}
		case <-timer:
			return "", text.String()
		}
	}
}

// keepRow adds a line to the file that JSON names, as make bench does.
func (b *box) keepRow(row string) {
	name := os.Getenv("JSON")
	if name == "" {
		return
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = fmt.Fprintln(file, row)
		file.Close()
	}
	if err != nil {
		b.Error(err)
	}
}

// ready waits until it is ready for cases.
func (b *box) ready() bool {
	b.Helper()
	ready, before := b.hear(bootPatience, "ready ")
	if ready == "" {
		b.Errorf("the node does not start:\n%s\nconsole:\n%s", before, tail(b.console()))
		return false
	}
	fmt.Printf("figure: ready for cases, %.0f s after power-on, %.0f s of a processor\n", time.Since(b.began).Seconds(), b.used())
	return true
}

// used is the processor time that the machine has used so far, in seconds.
func (b *box) used() (seconds float64) {
	pid := b.vm.Process.Pid
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, child := range strings.Fields(string(children)) { // the one that is QEMU has all of it
		text, _ := os.ReadFile("/proc/" + child + "/stat")
		_, text, _ = bytes.Cut(text, []byte(") ")) // the third field and on
		if fields := strings.Fields(string(text)); len(fields) > 12 {
			user, _ := strconv.ParseFloat(fields[11], 64)
			system, _ := strconv.ParseFloat(fields[12], 64)
			seconds += (user + system) / ticks
		}
	}
	return seconds
}

// outcome is how the try of a case has ended.
type outcome int

const (
	passed outcome = iota
	failed
	startedAnew    // the machine has, by itself
	doubleFaulted  // likewise, as the emulated processor does at times
	answersNothing // the machine has ended or hangs
)

// try has a case run, with these variables beside those of the command line. The text is what the case has printed.
func (b *box) try(name string, variables ...string) (result outcome, text string) {
	began := b.used()
	defer func() { fmt.Printf("figure: %s took %.0f s of a processor\n", name, b.used()-began) }()
	order := strings.Join(append([]string{"run", name}, variables...), " ")
	for _, variable := range []string{"SEED", "STEPS", "CROWD"} {
		if value := os.Getenv(variable); value != "" {
			order += " " + variable + "=" + value
		}
	}
	b.watched = b.consoleSize()
	defer func() { b.watched = -1 }()
	fmt.Fprintln(b.line, order)
	for {
		line, before := b.hear(casePatience, "ended ", "ready ")
		text += before
		ended := line == kernelPanic || strings.HasPrefix(line, "ready ")
		switch console := b.consoleFrom(b.watched); {
		case ended && strings.Contains(before, rebootWords) && line != kernelPanic:
			fmt.Fprintln(b.line, order) // its second half
			continue
		case ended && strings.Contains(console, doubleFault):
			return doubleFaulted, fmt.Sprintf("the emulated kernel panicked with a %s:\n%s", doubleFault, text)
		case ended && os.Getenv(panicVariable) != "" && strings.Contains(console, askedPanic):
			return doubleFaulted, fmt.Sprintf("the kernel panicked as it was asked to:\n%s", text)
		case ended:
			return startedAnew, fmt.Sprintf("the node has panicked, or started anew by itself:\n%s\nconsole:\n%s", text, tail(b.console()))
		case line == "":
			return answersNothing, fmt.Sprintf("the node does not answer any more:\n%s\nconsole:\n%s", text, tail(b.console()))
		}
		var status int
		var uptime float64
		text = line + "\n" + text
		if _, err := fmt.Sscanf(line, "ended "+name+" %d %g", &status, &uptime); err != nil || status != 0 || !strings.Contains(text, "--- PASS: "+name) {
			return failed, text
		}
		return passed, text
	}
}

// boxes are the machines that cases run in: many in one boot, and each in a new one after a machine that has
// started anew by itself. What a case had put there is on that one's disk still.
type boxes struct {
	command  []string
	box      *box // nil: none is there
	nr       int  // that were booted
	badBoots int  // one after another
	faults   int  // double faults
}

// run tries a case, and tries it again where only the emulated processor is to blame.
func (b *boxes) run(t *testing.T, name string) (result outcome, text string) {
	variables := b.panic()
	for {
		if !b.ready(t) {
			return answersNothing, "the node does not boot"
		}
		result, text = b.box.try(name, variables...)
		if result > failed {
			b.end()
		}
		if result != doubleFaulted || b.faults == maxDoubleFaults {
			return result, text
		}
		b.faults++
		variables = nil // the panic that was asked for has been
		fmt.Printf("figure: %s is run again, in a new machine: %s\n", name, strings.SplitN(text, ":", 2)[0])
	}
}

// panic is what has the first try of a case panic, if that is asked for.
func (b *boxes) panic() []string {
	if pod := os.Getenv(panicVariable); pod != "" {
		return []string{panicVariable + "=" + pod}
	}
	return nil
}

// ready boots a machine, unless one is there. One that does not boot is an error of the test.
func (b *boxes) ready(t *testing.T) bool {
	if b.box == nil {
		if b.badBoots == maxBoots {
			return false
		}
		b.nr++
		b.box = boot(t, b.command)
		if !b.box.ready() {
			b.badBoots++
			b.end()
			return false
		}
		b.badBoots = 0
	}
	b.box.T = t
	return true
}

func (b *boxes) end() {
	if b.box != nil {
		b.box.end()
		b.box = nil
	}
}

const (
	figures   = "TestInsideFigure" // so begin the names of those that measure
	firstCase = "TestInsidePinsAreInForce"
)

// cases are those that are in this program whose names begin so, on every node or with systemd alone: first the
// one that says how long after power-on a pod runs. Figures are left out unless they are asked for.
func cases(t *testing.T, begin string, systemd bool) (names []string) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	list, err := exec.Command(self, "-test.list", "^"+begin).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(list)) {
		if !systemd && strings.HasPrefix(name, "TestInsideSystemd") || strings.HasPrefix(name, figures) && begin != figures {
			continue
		}
		names = append(names, name)
	}
	if i := slices.Index(names, firstCase); i > 0 {
		names = slices.Insert(slices.Delete(names, i, i+1), 0, firstCase)
	}
	return names
}

// TestNodeVM: NODE_VM is the command that boots the node, its last word the cgroup driver. CASES takes some, or
// the figures. SEED, STEPS and CROWD are the cases' own.
func TestNodeVM(t *testing.T) {
	command := strings.Fields(os.Getenv("NODE_VM"))
	names := strings.Fields(os.Getenv("CASES"))
	systemd := command[len(command)-1] == "systemd"
	switch {
	case len(names) == 0:
		names = cases(t, "TestInside", systemd)
	case slices.Equal(names, []string{"figures"}):
		names = cases(t, figures, systemd)
	default:
		known := slices.Concat(cases(t, "TestInside", systemd), cases(t, figures, systemd))
		for i, name := range names {
			names[i] = "TestInside" + strings.TrimPrefix(name, "TestInside")
			if !slices.Contains(known, names[i]) {
				t.Fatalf("CASES: this node has no case %s; it has %s", name, strings.ReplaceAll(strings.Join(known, " "), "TestInside", ""))
			}
		}
	}
	b := boxes{command: command}
	defer b.end()
	for _, name := range names {
		t.Run(strings.TrimPrefix(name, "TestInside"), func(t *testing.T) {
			if result, text := b.run(t, name); result != passed {
				t.Error(text)
			} else {
				t.Log(text)
			}
		})
	}
}
