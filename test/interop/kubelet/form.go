package main

import (
	"encoding/json"
	"fmt"
	"time"
)

// patience is far beyond what any case but a loop without end takes.
const patience = 10 * time.Second

// A form of question (see `numafit decide --help`): how to make one, what upstream answers, and
// which differences are upstream's own, known bugs.
type form struct {
	name, key string // key: only questions of this form have it
	generate  func(r *random) any
	answer    func(question []byte) (any, error)
	// known names upstream's bug that explains why the answers differ; "" when none does.
	known func(question []byte, upstream, ours value) string
	// describe sorts a case, as generate made it, into the histogram: axis, class.
	describe func(question any, upstream value, count func(axis, class string))
	// shrinks lists what may be left out of a question, outermost first: patterns of JSON paths,
	// where * is every element or member.
	shrinks []string
	// patience is the processor time after which upstream is held to hang.
	patience time.Duration

	// Of some forms; nil or empty of the others:
	purpose string // of forms that not every version answers: what the flag's help says
	short   int    // so many questions are enough unless ALL=1 asks for all; 0: all
	// settle makes of a question one that can be asked, by asking numafit.
	settle func(question []byte, numafit func([]byte) (value, error)) ([]byte, error)
	// comparable is what of both answers is compared.
	comparable func(question []byte, upstream, ours value) (value, value)
	// wanted classes: a run of many cases without one of them proves nothing of it, and fails.
	wanted []class
}

type class struct{ axis, name string }

func read[Q any](question []byte) (q *Q) {
	if err := json.Unmarshal(question, &q); err != nil {
		panic(fmt.Sprintf("question: %v", err))
	}
	return q
}

// formOf makes a form of functions that take the question as the struct Q.
func formOf[Q any](name, key string, generate func(*random) *Q, answer func(*Q) any,
	known func(q *Q, upstream, ours value) string,
	describe func(q *Q, upstream value, count func(axis, class string)), shrinks ...string) *form {
	return &form{
		name:     name,
		patience: patience,
		key:      key,
		shrinks:  shrinks,
		generate: func(r *random) any { return generate(r) },
		answer: func(question []byte) (any, error) {
			var q *Q
			if err := json.Unmarshal(question, &q); err != nil {
				return nil, err
			}
			return answer(q), nil
		},
		known: func(question []byte, upstream, ours value) string {
			return known(read[Q](question), upstream, ours)
		},
		describe: func(question any, upstream value, count func(axis, class string)) {
			describe(question.(*Q), upstream, count)
		},
	}
}

// refusal is the answer when something does not start or cannot be had.
type refusal struct {
	Error string `json:"error"`
}
