package main

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// process is one of those measured.
type process struct {
	*exec.Cmd
	title, log string
}

func start(title string, words ...string) *process {
	p := &process{exec.Command(words[0], words[1:]...), title, filepath.Join(*dir, filepath.Base(words[0])+".log")}
	log, err := os.Create(p.log)
	check(err)
	defer log.Close()
	p.Stderr = log
	check(p.Start())
	running = append(running, p)
	return p
}

func (p *process) stop() {
	check(p.Process.Signal(syscall.SIGTERM))
	p.Wait() // a Go program ends by the signal
	running = slices.DeleteFunc(running, func(r *process) bool { return r == p })
}

// footprint is what it costs to be there, idle.
func (p *process) footprint(s series) {
	time.Sleep(settle)
	from := p.wakeups()
	time.Sleep(*idle)
	s.add("wakeups", float64(p.wakeups()-from)/idle.Seconds())
	s.add("rss", p.memory("Rss"))
	s.add("pss", p.memory("Pss"))
	s.add("dirty", p.memory("Private_Dirty"))
	s.add("threads", float64(len(p.threads())))
	s.add("binary", loaded(p.Path))
}

func (p *process) threads() []string {
	paths, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", p.Process.Pid))
	check(err)
	return paths
}

// number is that of the line in a file of /proc that begins with name.
func number(file, name string) int {
	text, err := os.ReadFile(file)
	check(err)
	for _, line := range strings.Split(string(text), "\n") {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name+":" {
			n, err := strconv.Atoi(f[1])
			check(err)
			return n
		}
	}
	check(fmt.Errorf("%s has no %s", file, name))
	return 0
}

// wakeups are the times that any of its threads waited and was woken.
func (p *process) wakeups() (sum int) {
	for _, thread := range p.threads() {
		sum += number(thread+"/status", "voluntary_ctxt_switches")
	}
	return sum
}

// cpuTime is what the process has used up to now, with all its threads, in ns.
func (p *process) cpuTime() float64 {
	const sched = 2 // CPUCLOCK_SCHED: the clock id of a process by its pid, as in <linux/posix-timers.h>
	var ts syscall.Timespec
	clock := ^p.Process.Pid<<3 | sched
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, uintptr(int32(clock)), uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		check(errno)
	}
	return float64(ts.Nano())
}

// memory is a line of smaps_rollup in bytes.
func (p *process) memory(name string) float64 {
	return 1024 * float64(number(fmt.Sprintf("/proc/%d/smaps_rollup", p.Process.Pid), name))
}

// loaded is the size of a program's file without what is there for debuggers alone.
func loaded(path string) (sum float64) {
	file, err := elf.Open(path)
	check(err)
	defer file.Close()
	for _, s := range file.Sections {
		if s.Flags&elf.SHF_ALLOC != 0 && s.Type != elf.SHT_NOBITS {
			sum += float64(s.FileSize)
		}
	}
	return sum
}
