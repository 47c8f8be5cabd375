package interop

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// cpuSet has a bit for each CPU of the machine; sets of NUMA nodes are kept in one, too.
type cpuSet [nrNodes * perNode / 64]uint64

var everyCPU = mustSet(fmt.Sprintf("0-%d", nrNodes*perNode-1))

// parseSet reads a kernel list, such as "0-3,8".
func parseSet(list string) (s cpuSet, err error) {
	for _, part := range strings.Split(list, ",") {
		if list == "" {
			break
		}
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		lo, err := strconv.Atoi(first)
		hi, err2 := strconv.Atoi(last)
		if err != nil || err2 != nil || lo < 0 || hi < lo || hi >= nrNodes*perNode {
			return s, fmt.Errorf("%q is not a list of this machine", list)
		}
		for i := lo; i <= hi; i++ {
			s[i/64] |= 1 << (i % 64)
		}
	}
	return s, nil
}

func mustSet(list string) cpuSet {
	s, err := parseSet(list)
	if err != nil {
		panic(err)
	}
	return s
}

func (s cpuSet) count() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

func (s cpuSet) and(o cpuSet) cpuSet {
	for i := range s {
		s[i] &= o[i]
	}
	return s
}

func (s cpuSet) or(o cpuSet) cpuSet {
	for i := range s {
		s[i] |= o[i]
	}
	return s
}

func (s cpuSet) minus(o cpuSet) cpuSet {
	for i := range s {
		s[i] &^= o[i]
	}
	return s
}

func (s cpuSet) empty() bool { return s == cpuSet{} }

func (s cpuSet) members() (list []int) {
	for i := range len(s) * 64 {
		if s[i/64]>>(i%64)&1 == 1 {
			list = append(list, i)
		}
	}
	return list
}

func (s cpuSet) String() string {
	var parts []string
	members := s.members()
	for i := 0; i < len(members); i++ {
		from := i
		for i+1 < len(members) && members[i+1] == members[i]+1 {
			i++
		}
		part := strconv.Itoa(members[from])
		if i > from {
			part += "-" + strconv.Itoa(members[i])
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ",")
}
