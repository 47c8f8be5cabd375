package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/topology"
	"k8s.io/utils/cpuset"
)

// Upstream's bugs that numafit does not repeat, each told by a predicate: a difference that none of
// them explains fails the run.
const (
	bugHang  = "distributed: its loop for the remainder does not end (kubernetes PR 140730)"
	bugTwice = "packed: a socket or core counts as whole by the machine's average, and CPUs that are " +
		"not free are taken"
	bugFewer = "packed: what crosses NUMA nodes or sockets is listed once for each, is taken twice, and " +
		"fewer CPUs are given than were asked for"
	bugListed = "distributed: a NUMA node with CPUs of several sockets is listed, and chosen, once for each"
	bugSlices = "distributed: a remembered combination of nodes is overwritten (kubernetes PR 141238)"
	bugLuck   = "which of several devices is taken is the order of a Go map, and 200 tries did not " +
		"give the lowest each time"
)

func knownCPU(q *cpuQuestion, upstream, ours value) string {
	switch {
	case member(upstream, "upstream_hangs") != nil:
		if q.distributes() {
			return bugHang
		}
		return ""
	case !cpusOf(upstream).IsSubsetOf(q.free(upstream)):
		return bugTwice
	case q.PolicyQuestion == nil && q.givesFewer(upstream):
		return bugFewer
	case q.PolicyQuestion != nil && len(q.ReservedCPUs) == 0 && startsWrongly(upstream):
		return bugOfReserving(q.topology(), cpuset.New(q.all()...), q.ReservedCount, q.Options, q.crosses())
	case q.PolicyQuestion != nil:
		if bug := bugOfTaking(q.topology(), q.free(upstream), q.Affinity, q.Want, q.Options); bug != "" {
			return bug
		}
		return knownPolicy(q, ours)
	case q.Mode == "distributed":
		return knownSlices(q, upstream, ours)
	}
	return ""
}

// givesFewer: fewer CPUs come out than were asked for, or, where it looks, upstream finds so itself.
func (q *cpuQuestion) givesFewer(upstream value) bool {
	why, refused := member(upstream, "error").(string)
	return strings.HasPrefix(why, "accounting error, not enough") && q.crosses() ||
		!refused && cpusOf(upstream).Size() < q.Want
}

// startsWrongly: not as many CPUs came out to be reserved as were asked for.
func startsWrongly(upstream value) bool {
	why, _ := member(upstream, "error").(string)
	return strings.Contains(why, "unable to reserve the required amount of CPUs")
}

// knownPolicy: of whole policies only what could have touched the answer is known.
func knownPolicy(q *cpuQuestion, ours value) string {
	switch {
	case !q.distributes() || member(ours, "unreadable") != nil:
		return ""
	case len(q.nodes()) >= slicesNodesMin:
		return bugSlices
	case q.crosses():
		return bugListed
	}
	return ""
}

func (q *cpuQuestion) distributes() bool {
	return q.Mode == "distributed" || q.PolicyQuestion != nil && q.Options["distribute-cpus-across-numa"]
}

// A combination of four nodes is the smallest that is overwritten, by the next one.
const slicesNodesMin = 5

// free CPUs, of which the answer may hold some.
func (q *cpuQuestion) free(upstream value) cpuset.CPUSet {
	if q.TakeQuestion != nil {
		return cpuset.New(q.Available...)
	}
	return cpuset.New(q.all()...).Difference(cpuset.New(q.Assigned...)).
		Difference(setOf(member(upstream, "reserved_cpus"))).Union(cpuset.New(q.Reusable...))
}

// bugOfTaking does what the policy does, take from the nodes of its hint and then from all, and tells
// whether either gives CPUs that are not free, or fewer than it was asked for; "": neither. The answer
// does not always show it: a second giving of the same CPU disappears in a set, what is missing of the
// nodes of the hint is taken elsewhere, and a refusal only has another number in its text.
func bugOfTaking(topo *topology.CPUTopology, free cpuset.CPUSet, affinity []int, want int, options map[string]bool) string {
	strategy := cpumanager.CPUSortingStrategyPacked
	if options["distribute-cpus-across-cores"] {
		strategy = cpumanager.CPUSortingStrategySpread
	}
	take := func(from cpuset.CPUSet, count int) (cpus cpuset.CPUSet, bug string) {
		cpus, err := takePacked(klog.Background(), topo, from, count, strategy,
			options["prefer-align-cpus-by-uncorecache"])
		switch {
		case err == nil && !cpus.IsSubsetOf(from):
			bug = bugTwice
		case err == nil && cpus.Size() < count:
			bug = bugFewer
		}
		return cpus, bug
	}
	near := topo.CPUDetails.CPUsInNUMANodes(affinity...)
	if options["align-by-socket"] && len(affinity) > 0 {
		near = topo.CPUDetails.CPUsInSockets(topo.CPUDetails.SocketsInNUMANodes(affinity...).List()...)
	}
	near = near.Intersection(free)
	first, bug := take(near, min(want, near.Size()))
	if bug == "" {
		_, bug = take(free.Difference(first), want-first.Size())
	}
	return bug
}

// bugOfReserving: the policy takes the CPUs to be reserved as it takes a container's, and passes by an error of it.
func bugOfReserving(topo *topology.CPUTopology, all cpuset.CPUSet, count int, options map[string]bool, crosses bool) string {
	if bug := bugOfTaking(topo, all, nil, count, options); bug != "" || !options["distribute-cpus-across-numa"] || !crosses {
		return bug
	}
	return bugListed
}

func cpusOf(answer value) cpuset.CPUSet { return setOf(member(answer, "cpus")) }

func setOf(v value) cpuset.CPUSet {
	var ids []int
	list, _ := v.([]any)
	for _, id := range list {
		var n int
		_, _ = fmt.Sscan(fmt.Sprint(id), &n)
		ids = append(ids, n)
	}
	return cpuset.New(ids...)
}

func knownNode(q *nodeQuestion, upstream, ours value) string {
	if member(upstream, "upstream_gambles") != nil {
		return bugLuck
	}
	distributes := q.Settings.CPUManagerPolicyOptions["distribute-cpus-across-numa"] == "true"
	if distributes && member(upstream, "upstream_hangs") != nil {
		return bugHang
	}
	if q.Settings.ReservedSystemCPUs == "" && startsWrongly(upstream) {
		return bugOfReserving(q.Machine.topology(), cpuset.New(q.Machine.all()...), q.reservedCount(),
			optionsOf(q.Settings.CPUManagerPolicyOptions), q.Machine.crosses())
	}
	theirs, _ := member(upstream, "steps").([]any)
	mine, _ := member(ours, "steps").([]any)
	for _, marked := range []struct{ key, bug string }{{"takes_unavailable", bugTwice}, {"gives_fewer", bugFewer}} {
		at := slices.IndexFunc(theirs, func(step any) bool { return member(step, marked.key) != nil })
		if at >= 0 && (ours == nil || len(mine) == len(theirs) && difference("", theirs[:at], mine[:at]) == "") {
			return marked.bug
		}
	}
	if distributes && member(ours, "unreadable") == nil {
		if len(q.Machine.nodes()) >= slicesNodesMin {
			return bugSlices
		}
		if q.Machine.crosses() {
			return bugListed
		}
	}
	return ""
}

// knownSlices: the model with combinations that share memory gives upstream's answer, the one with
// copies numafit's (or, when ours is nil, another one). Where upstream lists a node twice the second
// is enough; and where that one ends in the packed way, which gives fewer CPUs than were asked for
// (bugFewer), numafit's answer cannot be either's.
func knownSlices(q *cpuQuestion, upstream, ours value) string {
	d := distribution{topo: q.topology(), q: q}
	copied := d.take(true)
	if d.bug != "" {
		return d.bug
	}
	if q.crosses() {
		if !copied.Equals(cpusOf(upstream)) &&
			(ours == nil || copied.Equals(cpusOf(ours)) || copied.Size() < q.Want) {
			return bugListed
		}
		return ""
	}
	shared := d.take(false)
	if shared.Equals(copied) || !shared.Equals(cpusOf(upstream)) {
		return ""
	}
	if ours != nil && !copied.Equals(cpusOf(ours)) {
		return ""
	}
	return bugSlices
}

// distribution is KEP-2902 as the kubelet means it, and, without copies, as it does it: slices that
// are remembered, but not copied, when append() had room behind them.
type distribution struct {
	topo *topology.CPUTopology
	q    *cpuQuestion
	copy bool
	free map[int]int // node -> CPUs
	bug  string      // of the packed way, where a node's CPUs are taken by it
}

type split struct {
	balance        float64
	inSocket       bool // with align_by_socket, where the kubelet does that
	nodes, surplus []int
}

// better: nodes of one socket before any others, then what leaves the machine more even.
func (s split) better(than split) bool {
	if s.inSocket != than.inSocket {
		return s.inSocket
	}
	return s.balance < than.balance
}

func (d *distribution) take(copies bool) cpuset.CPUSet {
	want, group := d.q.Want, d.q.CPUGroupSize
	available := cpuset.New(d.q.Available...)
	d.copy, d.free = copies, map[int]int{}
	for _, cpu := range d.q.Available {
		d.free[d.topo.CPUDetails[cpu].NUMANodeID]++
	}
	packed, err := takePacked(klog.Background(), d.topo, available, want, d.q.strategy(), false)
	if err != nil || want%group != 0 || want == 0 {
		return packed
	}
	groups := roundUp(len(d.q.CPUs), group)
	perNode := roundUp(groups, d.topo.NumNUMANodes)
	wanted := roundUp(want, group)
	for k := roundUp(wanted, perNode); k <= min(wanted, len(d.free)); k++ {
		if best := d.best(k); best.nodes != nil {
			return d.give(available, best)
		}
	}
	return packed
}

func roundUp(a, b int) int { return (a + b - 1) / b }

// bySocket: the rule of kubernetes 1.37.
func (d *distribution) bySocket() bool { return d.q.AlignBySocket && kubernetesVersion != "1.36" }

func (d *distribution) share(nodes []int) int {
	group := d.q.CPUGroupSize
	share := d.q.Want / len(nodes) / group * group
	for _, node := range nodes {
		if d.bySocket() {
			share = min(share, d.free[node]/group*group)
		}
	}
	return share
}

func (d *distribution) best(k int) split {
	best := split{balance: math.Inf(1)}
	d.combinations(d.nodesInOrder(), k, func(nodes []int) bool {
		if best.balance == 0 && (!d.bySocket() || best.inSocket) {
			return false
		}
		one := d.splitOver(nodes)
		one.inSocket = d.bySocket() && one.nodes != nil && d.topo.CPUDetails.SocketsInNUMANodes(nodes...).Size() <= 1
		if one.better(best) {
			best = one
		}
		return true
	})
	return best
}

func (d *distribution) splitOver(nodes []int) split {
	group, share := d.q.CPUGroupSize, d.share(nodes)
	none := split{balance: math.Inf(1)}
	sum, groups := 0, 0
	for _, node := range nodes {
		sum += d.free[node]
		groups += d.free[node] / group
		if d.free[node] < share {
			return none
		}
	}
	if sum < d.q.Want || groups*group < d.q.Want {
		return none
	}
	after := map[int]int{}
	for node, free := range d.free {
		after[node] = free
	}
	var roomy []int
	for _, node := range nodes {
		if after[node] -= share; after[node] >= group {
			roomy = append(roomy, node)
		}
	}
	rest := d.q.Want - share*len(nodes)
	if rest == 0 {
		return split{balance: deviation(after), nodes: nodes}
	}
	best := none
	for k := len(roomy); k >= 1; k-- {
		d.combinations(roomy, k, func(some []int) bool {
			if b := balanceAfter(after, some, rest, group); b < best.balance {
				best = split{balance: b, nodes: nodes, surplus: some}
			}
			return true
		})
	}
	return best
}

func balanceAfter(after map[int]int, some []int, rest, group int) float64 {
	left, sum := map[int]int{}, 0
	for node, free := range after {
		left[node] = free
	}
	for _, node := range some {
		sum += left[node]
	}
	if sum < rest {
		return math.Inf(1)
	}
	for progress := true; rest > 0 && progress; {
		progress = false
		for _, node := range some {
			if rest > 0 && left[node] >= group {
				left[node] -= group
				rest -= group
				progress = true
			}
		}
	}
	if rest > 0 { // here upstream does not end
		return math.Inf(1)
	}
	return deviation(left)
}

func deviation(counts map[int]int) float64 {
	const digits = 1000
	round := func(x float64) float64 { return math.Round(x*digits) / digits }
	sum, squares := 0.0, 0.0
	for _, count := range counts {
		sum += float64(count)
	}
	mean := round(sum / float64(len(counts)))
	for _, node := range sortedKeys(counts) {
		squares += (float64(counts[node]) - mean) * (float64(counts[node]) - mean)
	}
	return round(math.Sqrt(squares / float64(len(counts))))
}

// combinations of k of from; each shares what append() lets it share unless copies are wanted.
func (d *distribution) combinations(from []int, k int, f func([]int) bool) {
	var extend func(chosen []int, start int) bool
	extend = func(chosen []int, start int) bool {
		if len(chosen) == k {
			if d.copy {
				chosen = slices.Clone(chosen)
			}
			return f(chosen)
		}
		for i := start; i <= len(from)-(k-len(chosen)); i++ {
			if !extend(append(chosen, from[i]), i+1) {
				return false
			}
		}
		return true
	}
	extend([]int{}, 0)
}

// nodesInOrder: those with fewer free CPUs first, within each socket where sockets hold several.
func (d *distribution) nodesInOrder() (nodes []int) {
	details := d.topo.CPUDetails.KeepOnly(cpuset.New(d.q.Available...))
	sorted := func(ids []int, count func(id int) int) []int {
		slices.SortStableFunc(ids, func(a, b int) int { return count(a) - count(b) })
		return ids
	}
	free := func(id int) int { return details.CPUsInNUMANodes(id).Size() }
	if d.topo.NumSockets >= d.topo.NumNUMANodes {
		return sorted(details.NUMANodes().List(), free)
	}
	for _, socket := range sorted(details.Sockets().List(), func(id int) int { return details.CPUsInSockets(id).Size() }) {
		for _, node := range sorted(details.NUMANodesInSockets(socket).List(), free) {
			if !slices.Contains(nodes, node) {
				nodes = append(nodes, node)
			}
		}
	}
	return nodes
}

func (d *distribution) give(available cpuset.CPUSet, s split) cpuset.CPUSet {
	given := cpuset.New()
	takeFrom := func(node, count int) {
		free := available.Difference(given).Intersection(d.topo.CPUDetails.CPUsInNUMANodes(node))
		cpus, err := takePacked(klog.Background(), d.topo, free, count, d.q.strategy(), false)
		if err == nil && !cpus.IsSubsetOf(free) {
			d.bug = bugTwice
		}
		given = given.Union(cpus)
		d.free[node] -= cpus.Size()
	}
	share := d.share(s.nodes)
	for _, node := range s.nodes {
		takeFrom(node, share)
	}
	rest := d.q.Want - share*len(s.nodes)
	for progress := true; rest > 0 && progress; {
		progress = false
		for _, node := range s.surplus {
			if rest > 0 && d.free[node] >= d.q.CPUGroupSize {
				takeFrom(node, d.q.CPUGroupSize)
				rest -= d.q.CPUGroupSize
				progress = true
			}
		}
	}
	return given
}
