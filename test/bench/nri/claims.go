package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"

	nri "github.com/containerd/nri/pkg/adaptation"
)

// Claims as they are once the kubelet has prepared them. What a Prepare leaves is a record of
// numafitd's journal: it is written there while numafitd is away, so that neither a kubelet nor an
// API server is needed.

func claimUID(i int) string { return id("claim ", i)[:32] }

// claiming is an exclusive container that comes with its claim.
func claiming(kind string, i int) (*nri.PodSandbox, *nri.Container) {
	p, c := exclusive(kind, i)
	c.CDIDevices = append(c.CDIDevices, &nri.CDIDevice{Name: "numafit.io/claim=" + claimUID(i) + "-0"})
	return p, c
}

// text is the list of the CPUs.
func (s cpuSet) text() string {
	var list []string
	for cpu, has := range s {
		if has {
			list = append(list, fmt.Sprint(cpu))
		}
	}
	return strings.Join(list, ",")
}

// record is what the journal has of a claim of one core for that pod. The pool is without the core.
func record(seq, i int, pod *nri.PodSandbox, core int, pool cpuSet) string {
	uid := claimUID(i)
	return fmt.Sprintf(`{"seq":%d,"time_ms":1,"op":"hold","cause":"prepare","container_id":"%s/0","parts":[{"request":{"container_name":"0",`+
		`"kind":"app","place":0,"sandbox_id":"%s/0","pod_uid":"%s","pod_namespace":"%s","pod_name":"%s","qos":"Guaranteed","created_at_ns":0,`+
		`"cpu_milli":%d,"cpu_limit_milli":%d,"memory":[],"cpus":"","mems":"","for_pods":"%s","guaranteed":true,"share_of":"%d"},`+
		`"decision":{"admit":true,"source":"held","policy":"single-numa-node","exclusive":true,"cpus":"%d,%d","mems":"0-%d","nodes":"%d",`+
		`"preferred":true,"blocks":[],"message":""}}],"pool":"%s"}`,
		seq, uid, uid, uid, pod.Namespace, uid, exclusiveCPUs*1000, exclusiveCPUs*1000, pod.Uid, nodeOf(core), core, core+nrCores,
		nrNodes-1, nodeOf(core), pool.text())
}

// lastOf is the last record of the journal, in what matters here.
func lastOf(journal []byte) (seq int, pool cpuSet) {
	lines := bytes.Split(bytes.TrimSpace(journal), []byte("\n"))
	_, text, _ := bytes.Cut(lines[len(lines)-1], []byte(" "))
	var last struct {
		Seq  int
		Pool string
	}
	check(json.Unmarshal(text, &last))
	return last.Seq, parseCPUs(last.Pool)
}

// prepare has a claim for each of these containers of createExclusive. Of the plugins that decide
// nothing, none knows of claims.
func (p *plugin) prepare(present int, containers []int) {
	p.stop()
	if p.decides() {
		path := filepath.Join(p.journal, "journal")
		journal, err := os.ReadFile(path)
		check(err)
		seq, pool := lastOf(journal)
		core := 1 // CPU 0 is reserved
		for _, i := range containers {
			for ; !pool[core] || !pool[core+nrCores]; core++ {
			}
			pool[core], pool[core+nrCores] = false, false
			seq++
			pod, _ := exclusive("own", i)
			text := record(seq, i, pod, core, pool)
			sum := crc32.Checksum([]byte(text), crc32.MakeTable(crc32.Castagnoli))
			journal = fmt.Appendf(journal, "%08x %s\n", sum, text)
		}
		check(os.WriteFile(path, journal, 0o600))
	}
	p.claims = true
	p.start(present, false)
}

// driver is what has numafitd keep claims; neither a kubelet nor an API server is there.
func (p *plugin) driver() (settings []string) {
	for _, s := range []string{"claims.enabled=true", "claims.cdiDirectory=" + p.run + "/cdi", "kubeletRootDirectory=" + p.run} {
		settings = append(settings, "--set", s)
	}
	return settings
}

// createWithClaims compares containers with claims and without, in turns.
func createWithClaims(present int) {
	kinds := []kind{{"claims", claiming}, {"without-claims", exclusive}}
	var with []int
	for i := 0; i < *nrOwn; i += len(kinds) {
		with = append(with, i)
	}
	for _, p := range plugins {
		p.prepare(present, with)
	}
	createExclusive(present, kinds...)
}
