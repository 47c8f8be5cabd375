package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"numafit/test/interop/scheduler/upstream"
)

const lineBytesMax = 64 << 20

// recorded is a question of a file, with what upstream is said to have answered.
type recorded struct {
	upstream.Question
	Name     string           `json:"name"`
	Expected *upstream.Answer `json:"expected"`
}

var programs = map[string]string{match: inPlugins, allocatable: inPlugins, fit: inKube, balanced: inKube}

// replay asks upstream the questions of a file and compares with what the file expects. Plugins that
// are not here, and questions that expect nothing, are passed over.
func replay(o options) (exit int) {
	file, err := os.Open(o.replay)
	must(err)
	defer file.Close()
	s := newSides(o)
	defer s.stop()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, lineBytesMax)
	passed, failed, skipped := 0, 0, 0
	for lines.Scan() {
		var q recorded
		must(json.Unmarshal(lines.Bytes(), &q))
		program := programs[q.Plugin]
		if program == "" || q.Expected == nil {
			skipped++
			continue
		}
		q.Whole = true
		var a upstream.Answer
		must(s.program[program].ask(q.Question, &a))
		if a = withoutZones(a); text(a) == text(q.Expected) {
			passed++
			continue
		}
		failed++
		fmt.Printf("%s: upstream %s, expected %s\n", q.Name, text(a), text(q.Expected))
	}
	must(lines.Err())
	fmt.Printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if failed > 0 || passed == 0 {
		return 1
	}
	return 0
}

func withoutZones(a upstream.Answer) upstream.Answer {
	for i := range a.Nodes {
		a.Nodes[i].Zones = nil
	}
	return a
}
