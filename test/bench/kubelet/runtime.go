package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	nri "github.com/containerd/nri/pkg/adaptation"
)

// listener is the runtime side's logger: it shows in no other way that a plugin is in its chain.
type listener chan string

func (l listener) Infof(_ context.Context, format string, args ...any) {
	if text := fmt.Sprintf(format, args...); strings.Contains(text, `plugin "`) && strings.Contains(text, `" connected`) {
		l <- text
	}
}
func (listener) Debugf(context.Context, string, ...any) {}
func (listener) Warnf(context.Context, string, ...any)  {}
func (listener) Errorf(context.Context, string, ...any) {}

// runtimeSide is the part of NRI that containerd and CRI-O embed.
type runtimeSide struct {
	*nri.Adaptation
	socket    string
	connected listener
}

func startRuntime(socket string, connected listener) *runtimeSide {
	none := filepath.Join(filepath.Dir(socket), "none")
	side, err := nri.New("bench", "1",
		func(ctx context.Context, ask nri.SyncCB) error { _, err := ask(ctx, nil, nil); return err },
		func(context.Context, []*nri.ContainerUpdate) ([]*nri.ContainerUpdate, error) { return nil, nil },
		nri.WithSocketPath(socket), nri.WithPluginPath(none), nri.WithPluginConfigPath(none))
	check(err)
	check(side.Start())
	return &runtimeSide{side, socket, connected}
}

func (r *runtimeSide) await() {
	select {
	case <-r.connected:
	case <-time.After(patience):
		check(fmt.Errorf("numafitd is not connected to the runtime"))
	}
}

// exclusive is a Guaranteed pod with one container.
func exclusive(i int) (*nri.PodSandbox, *nri.Container) {
	id := fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, i)))
	uid := fmt.Sprintf("%s-%s-%s-%s-%s", id[:8], id[8:12], id[12:16], id[16:20], id[20:32])
	pod := &nri.PodSandbox{Id: "a" + id[1:], Name: fmt.Sprint("own-", i), Uid: uid, Namespace: "production",
		Linux: &nri.LinuxPodSandbox{CgroupParent: "/kubepods/pod" + uid}}
	return pod, &nri.Container{Id: "b" + id[1:], PodSandboxId: pod.Id, Name: "main",
		Linux: &nri.LinuxContainer{CgroupsPath: pod.Linux.CgroupParent + "/b" + id[1:], OomScoreAdj: nri.Int(-997),
			Resources: &nri.LinuxResources{Memory: &nri.LinuxMemory{Limit: nri.Int64(1 << 30)},
				Cpu: &nri.LinuxCPU{Shares: nri.UInt64(uint64(cpusAsked * 1024)),
					Quota: nri.Int64(cpusAsked * 100000), Period: nri.UInt64(uint64(100000))}}}}
}

// create takes a container to where its CPUs are decided.
func (r *runtimeSide) create(pod *nri.PodSandbox, c *nri.Container) {
	check(r.RunPodSandbox(background, &nri.RunPodSandboxRequest{Pod: pod}))
	reply, err := r.CreateContainer(background, &nri.CreateContainerRequest{Pod: pod, Container: c})
	check(err)
	if reply.GetAdjust().GetLinux().GetResources().GetCpu().GetCpus() == "" {
		check(fmt.Errorf("pod %s is created without a cpuset", pod.Name))
	}
}

func (r *runtimeSide) remove(pod *nri.PodSandbox, c *nri.Container) {
	_, err := r.StopContainer(background, &nri.StopContainerRequest{Pod: pod, Container: c})
	check(err)
	check(r.RemoveContainer(background, &nri.RemoveContainerRequest{Pod: pod, Container: c}))
	check(r.StopPodSandbox(background, &nri.StopPodSandboxRequest{Pod: pod}))
	check(r.RemovePodSandbox(background, &nri.RemovePodSandboxRequest{Pod: pod}))
}
