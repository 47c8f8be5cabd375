package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A case of a node in a virtual machine: interrupts keep off the CPUs of a container that wishes for it,
// come back when it has ended, and do not come there meanwhile.

const (
	interrupts   = "/proc/irq"
	quietDropIn  = "/etc/systemd/system/numafitd.service.d/quiet.conf"
	quietSetting = "podWishes: {allowed: quiet}\n"
)

// serial is the interrupt of the console, which each line that is printed there raises.
func (n *node) serial() string {
	n.Helper()
	for _, line := range strings.Split(n.read("/proc/interrupts"), "\n") {
		if strings.HasSuffix(line, " ttyS0") {
			number, _, _ := strings.Cut(strings.TrimSpace(line), ":")
			return number
		}
	}
	n.Fatalf("the console has no interrupt:\n%s", n.read("/proc/interrupts"))
	return ""
}

func affinityFile(irq string) string { return filepath.Join(interrupts, irq, "smp_affinity_list") }

// arrived is how often the interrupt has come to that CPU.
func (n *node) arrived(irq string, cpu int) int {
	n.Helper()
	text := n.read("/proc/interrupts")
	column := -1
	for i, name := range strings.Fields(strings.SplitN(text, "\n", 2)[0]) {
		if name == "CPU"+strconv.Itoa(cpu) {
			column = i
		}
	}
	for _, line := range strings.Split(text, "\n") {
		if fields := strings.Fields(line); len(fields) > column+1 && column >= 0 && fields[0] == irq+":" {
			nr, err := strconv.Atoi(fields[column+1])
			n.must(err)
			return nr
		}
	}
	n.Fatalf("interrupt %s at CPU %d:\n%s", irq, cpu, text)
	return 0
}

// arrivedAnywhere is how often it has come to all CPUs.
func (n *node) arrivedAnywhere(irq string) (nr int) {
	n.Helper()
	for cpu := range nrAllCPUs {
		nr += n.arrived(irq, cpu)
	}
	return nr
}

// talk raises the console's interrupt, and is how often it came to that CPU.
func (n *node) talk(irq string, cpu int) int {
	n.Helper()
	before := n.arrived(irq, cpu)
	console, err := os.OpenFile("/dev/ttyS0", os.O_WRONLY, 0)
	n.must(err)
	defer console.Close()
	for i := range 20 {
		_, err := fmt.Fprintf(console, "interrupt %d\n", i)
		n.must(err)
	}
	time.Sleep(time.Second) // until all is sent
	return n.arrived(irq, cpu) - before
}

// affinities are where interrupts may come, by the file that says so.
type affinities map[string]string

// movable are those of interrupts that can be moved: the kernel takes what is written. No container may be quiet
// then, for this writes what it has read.
func (n *node) movable() affinities {
	n.Helper()
	all := affinities{}
	files, _ := filepath.Glob(affinityFile("*"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if list := strings.TrimSpace(string(text)); os.WriteFile(file, []byte(list), 0) == nil {
			all[file] = list
		}
	}
	return all
}

// now are those of the same interrupts at this moment, of those that are still there.
func (a affinities) now() affinities {
	all := affinities{}
	for file := range a {
		if text, err := os.ReadFile(file); err == nil {
			all[file] = strings.TrimSpace(string(text))
		}
	}
	return all
}

// awaitKeptOff waits until none of these interrupts may come to a CPU of the container's.
func (n *node) awaitKeptOff(movable affinities, h held) {
	n.Helper()
	cpu := sortedKeys(n.set(h.CPUs))[0]
	n.awaitOrder("interrupts to keep off CPU "+h.CPUs, func() string {
		for file, list := range movable.now() {
			if n.set(list)[cpu] {
				return file + " has " + list
			}
		}
		if value, err := strconv.ParseUint(n.read(interrupts+"/default_smp_affinity"), 16, 64); err != nil || value&(1<<cpu) != 0 {
			return "default_smp_affinity has " + n.read(interrupts+"/default_smp_affinity")
		}
		return ""
	})
}

func TestInsideQuiet(t *testing.T) {
	n := inside(t)
	n.configure(quietSetting)
	if hasSystemd() { // the unit's sandbox does not let it write there otherwise
		n.must(os.MkdirAll(filepath.Dir(quietDropIn), 0o755))
		n.must(os.WriteFile(quietDropIn, []byte(n.read("/usr/local/share/e2e/quiet.conf")+"\n"), 0o644))
		n.run("systemctl", "daemon-reload")
		n.Cleanup(func() {
			n.must(os.Remove(quietDropIn))
			n.run("systemctl", "daemon-reload")
			n.startAnew()
		})
	}
	n.startAnew()
	before, irq, mask := n.movable(), n.serial(), n.read(interrupts+"/default_smp_affinity")
	if before[affinityFile(irq)] == "" {
		t.Fatalf("the console's interrupt cannot be moved: %v", before)
	}
	main := want{name: "main", milli: 1000, memory: 32 * mi}
	cpu := sortedKeys(n.set(n.putAnnotated("loud", guaranteed, nil, main).CPUs))[0]
	n.dropStatic("loud")
	n.must(os.WriteFile(affinityFile(irq), []byte(strconv.Itoa(cpu)), 0))
	if n.talk(irq, cpu) == 0 {
		t.Fatalf("the console's interrupt does not come to CPU %d:\n%s", cpu, n.read("/proc/interrupts"))
	}
	quiet := n.putAnnotated("quiet", guaranteed, notes{"numafit.io/quiet": "irq"}, main)
	if quiet.CPUs != strconv.Itoa(cpu) {
		t.Fatalf("it has CPU %s, the one before had %d", quiet.CPUs, cpu)
	}
	n.awaitKeptOff(before, quiet)
	n.talk(irq, cpu) // the kernel moves some interrupts when they come to the old CPU once more
	others := n.arrivedAnywhere(irq)
	if came := n.talk(irq, cpu); came != 0 || n.arrivedAnywhere(irq) == others {
		t.Errorf("the console's interrupt came to quiet CPU %d %d times, to all CPUs %d times", cpu, came, n.arrivedAnywhere(irq)-others)
	}
	out := n.run("numafit", "status", "--socket", n.path("run/numafitd.sock"))
	if !strings.Contains(out, "quiet CPUs: no interrupts on "+quiet.CPUs+" (") {
		t.Errorf("numafit status says:\n%s", out)
	}
	n.signal("numafitd", 9)
	n.dropStatic("quiet")
	n.awaitOrder("interrupts to be as before", func() string {
		before[affinityFile(irq)] = quiet.CPUs
		for file, list := range before.now() {
			if list != before[file] {
				return file + " has " + list + ", had " + before[file]
			}
		}
		if now := n.read(interrupts + "/default_smp_affinity"); now != mask {
			return "default_smp_affinity has " + now + ", had " + mask
		}
		return ""
	})
	n.must(os.WriteFile(affinityFile(irq), []byte(allCPUs), 0))
}
