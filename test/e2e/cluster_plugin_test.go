package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// kubectl numafit, as somebody who may do nothing, and then what deploy/kubectl-numafit-role.yaml allows.

const developer = "developer"

// plugin runs `kubectl numafit` as the developer, and returns what it printed and its exit code.
func (c *cluster) plugin(args ...string) (string, int) {
	c.Helper()
	kubectl := filepath.Join(os.Getenv("KUBERNETES"), "kubectl")
	cmd := exec.Command(kubectl, append([]string{"numafit"}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+c.dir, "KUBECONFIG="+c.kubeconfig(developer, developer),
		"PATH="+os.Getenv("DEPLOY")+":"+os.Getenv("KUBERNETES")+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		c.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func (c *cluster) pluginSays(wanted int, words []string, args ...string) {
	c.Helper()
	out, code := c.plugin(args...)
	for _, w := range words {
		if !strings.Contains(out, w) {
			c.Errorf("kubectl numafit %s does not say %q:\n%s", strings.Join(args, " "), w, out)
		}
	}
	if code != wanted {
		c.Errorf("kubectl numafit %s ends with %d, not %d:\n%s", strings.Join(args, " "), code, wanted, out)
	}
}

// answersInPlugin goes from no rights to just those that are needed: each that is missing is named.
func (c *cluster) answersInPlugin() {
	c.create("huge", guaranteed, want{name: "main", milli: 20000, memory: 64 * mi})
	c.await("its event", func() bool { return c.event("TopologyAffinityError", "huge") != "" })
	c.pluginSays(3, []string{"get pods in namespace default", "kubectl create rolebinding"}, "explain", "huge", "-n", "default")
	c.kubectl("create", "role", "see-pods", "-n", "default", "--verb=get", "--resource=pods")
	c.kubectl("create", "rolebinding", "see-pods", "-n", "default", "--role=see-pods", "--user="+developer)
	c.pluginSays(3, []string{"list pods in namespace " + numafit}, "explain", "huge")
	c.kubectl("create", "role", "see-pods", "-n", numafit, "--verb=list", "--resource=pods")
	c.kubectl("create", "rolebinding", "see-pods", "-n", numafit, "--role=see-pods", "--user="+developer)
	c.pluginSays(3, []string{"create pods/exec in namespace " + numafit, "get pods in namespace " + numafit}, "explain", "huge")
	c.kubectl("delete", "role,rolebinding", "see-pods", "-n", numafit)
	c.kubectl("apply", "-f", filepath.Join(os.Getenv("DEPLOY"), "kubectl-numafit-role.yaml"))
	c.kubectl("create", "rolebinding", "kubectl-numafit", "-n", numafit, "--role=kubectl-numafit", "--user="+developer)

	c.pluginSays(0, []string{"default/huge (the whole pod): refused", "20 CPUs", "TopologyAffinityError"}, "explain", "huge")
	c.pluginSays(0, []string{"default/stays/db: accepted"}, "explain", "stays/db", "-n", "default")
	c.pluginSays(1, []string{"has nothing of"}, "explain", "--node", nodeName, "nosuch")
	c.pluginSays(3, []string{"there is no pod nosuch"}, "explain", "nosuch")
	c.pluginSays(1, []string{"20 CPUs"}, "whatif", "huge")
	c.pluginSays(0, nil, "whatif", nodeName, "--cpus", "2", "--memory", "64Mi")
	c.pluginSays(0, []string{"policy single-numa-node", "default/stays/db"}, "status", nodeName)
	c.pluginSays(0, []string{"huge", "  policy  ", "policy single-numa-node allows 1 NUMA node"}, "refusals", nodeName)
	c.pluginSays(0, []string{"node " + nodeName + ":", "huge"}, "refusals", "--since", "1h")
	c.pluginSays(0, []string{nodeName, "single-numa-node"}, "top")
	c.pluginSays(3, []string{"no numafitd runs on node elsewhere"}, "status", "node/elsewhere")
	c.kubectl("delete", "-f", filepath.Join(os.Getenv("DEPLOY"), "kubectl-numafit-role.yaml"))
	c.delete("huge")
	c.settled()
}
