package main

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"

	nri "github.com/containerd/nri/pkg/adaptation"
)

// What the kubelet would have the runtime run: containers of the size that they have on a node, with
// the labels, annotations, environment and mounts that all of them carry.

const gi = 1 << 30

// id is 64 hex digits without a pattern, as containerd's are.
func id(kind string, i int) string { return fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, kind, i))) }

func pod(kind, qos string, i int) *nri.PodSandbox {
	name := fmt.Sprintf("%s-7d9c6b5f4d-%05d", kind, i)
	random := id(kind, i)
	uid := fmt.Sprintf("%s-%s-%s-%s-%s", random[:8], random[8:12], random[12:16], random[16:20], random[20:32])
	return &nri.PodSandbox{Id: id(kind+" sandbox ", i), Name: name, Uid: uid, Namespace: "production",
		Labels: map[string]string{"app": kind, "pod-template-hash": "7d9c6b5f4d", "io.kubernetes.pod.name": name,
			"io.kubernetes.pod.namespace": "production", "io.kubernetes.pod.uid": uid},
		Annotations: map[string]string{"kubernetes.io/config.seen": "2026-01-01T00:00:00.000000000Z",
			"kubernetes.io/config.source": "api"},
		Linux: &nri.LinuxPodSandbox{CgroupParent: filepath.Join("/kubepods", qos, "pod"+uid)}}
}

func container(kind string, p *nri.PodSandbox, i int, cpu *nri.LinuxCPU, memory *nri.LinuxMemory) *nri.Container {
	c := &nri.Container{Id: id(kind+" container ", i), PodSandboxId: p.Id, Name: "main", State: nri.ContainerState_CONTAINER_RUNNING,
		Labels: map[string]string{"io.kubernetes.container.name": "main", "io.kubernetes.pod.name": p.Name,
			"io.kubernetes.pod.namespace": p.Namespace, "io.kubernetes.pod.uid": p.Uid},
		Annotations: map[string]string{"io.kubernetes.container.hash": "5d0f1c7a", "io.kubernetes.container.restartCount": "0",
			"io.kubernetes.container.terminationMessagePath":   "/dev/termination-log",
			"io.kubernetes.container.terminationMessagePolicy": "File", "io.kubernetes.pod.terminationGracePeriod": "30"},
		Args: []string{"/usr/local/bin/server", "--listen=:8080", "--config=/etc/server/config.yaml"},
		Linux: &nri.LinuxContainer{Resources: &nri.LinuxResources{Cpu: cpu, Memory: memory},
			OomScoreAdj: nri.Int(900), CgroupsPath: p.Linux.CgroupParent + "/" + id(kind+" container ", i)}}
	for _, service := range []string{"KUBERNETES", "DATABASE", "CACHE", "QUEUE"} {
		c.Env = append(c.Env, service+"_SERVICE_HOST=10.96.0.1", service+"_SERVICE_PORT=443",
			service+"_PORT_443_TCP=tcp://10.96.0.1:443", service+"_PORT_443_TCP_ADDR=10.96.0.1")
	}
	for _, to := range []string{"/etc/hosts", "/dev/termination-log", "/var/run/secrets/kubernetes.io/serviceaccount", "/etc/server"} {
		c.Mounts = append(c.Mounts, &nri.Mount{Destination: to, Type: "bind", Options: []string{"rbind", "rprivate", "rw"},
			Source: "/var/lib/kubelet/pods/" + p.Uid + "/volumes" + to})
	}
	return c
}

// shared is a burstable container of half a CPU.
func shared(kind string, i int) (*nri.PodSandbox, *nri.Container) {
	p := pod(kind, "burstable", i)
	return p, container(kind, p, i, &nri.LinuxCPU{Shares: nri.UInt64(uint64(512))}, &nri.LinuxMemory{})
}

// exclusive is a Guaranteed container of two CPUs.
func exclusive(kind string, i int) (*nri.PodSandbox, *nri.Container) {
	p := pod(kind, "", i)
	return p, container(kind, p, i, &nri.LinuxCPU{Shares: nri.UInt64(uint64(exclusiveCPUs * 1024)),
		Quota: nri.Int64(exclusiveCPUs * 100000), Period: nri.UInt64(uint64(100000))}, &nri.LinuxMemory{Limit: nri.Int64(gi)})
}

const wishes = "cpus,cores,isolated,numa-nodes,spread,memory-policy,rdt-class,blockio-class,quiet"

// wishing is an exclusive one whose pod has all wishes that leave it CPUs of its own alone.
func wishing(kind string, i int) (*nri.PodSandbox, *nri.Container) {
	p, c := exclusive(kind, i)
	for name, value := range map[string]string{"cpus": "own", "cores": "whole", "isolated": "prefer", "numa-nodes": "0-3",
		"memory-policy": "bind", "rdt-class": "gold", "blockio-class": "slow", "quiet": "irq"} {
		p.Annotations["numafit.io/"+name] = value
	}
	return p, c
}

// sharedContainers are those that run already, where they were put.
func sharedContainers(n int, given map[string]*nri.LinuxCPU) (pods []*nri.PodSandbox, containers []*nri.Container) {
	for i := range n {
		p, c := shared("present", i)
		c.Linux.Resources.Cpu.Cpus, c.Linux.Resources.Cpu.Mems = given[c.Id].GetCpus(), given[c.Id].GetMems()
		pods, containers = append(pods, p), append(containers, c)
	}
	return pods, containers
}
