package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

const (
	answerTimeout = 2 * time.Minute // far beyond any answer, also on a busy machine
	// A plugin's cache has a loop that never ends: start over before there are too many.
	answersMax = 1000
)

// peer is a child that answers each line with a line. It is started when it is first asked, and
// again after it ended.
type peer struct {
	argv    []string
	cmd     *exec.Cmd
	in      io.WriteCloser
	pipe    *os.File
	out     *bufio.Reader
	answers int
}

func (p *peer) start() error {
	out, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirs.Close()
	cmd := exec.Command(p.argv[0], p.argv[1:]...)
	cmd.Stdout, cmd.Stderr = theirs, os.Stderr
	if p.in, err = cmd.StdinPipe(); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		out.Close()
		return err
	}
	p.cmd, p.pipe, p.out, p.answers = cmd, out, bufio.NewReaderSize(out, 64<<10), 0
	return nil
}

// ask for the answer to a question, into v.
func (p *peer) ask(question, v any) error {
	if p.answers == answersMax {
		p.stop()
	}
	if p.cmd == nil {
		if err := p.start(); err != nil {
			return err
		}
	}
	text, err := json.Marshal(question)
	if err != nil {
		return err
	}
	_ = p.pipe.SetReadDeadline(time.Now().Add(answerTimeout))
	if _, err = p.in.Write(append(text, '\n')); err == nil {
		if text, err = p.out.ReadBytes('\n'); err == nil {
			p.answers++
			return json.Unmarshal(text, v)
		}
	}
	p.stop()
	return fmt.Errorf("%s: no answer: %w", p.argv[0], err)
}

func (p *peer) stop() {
	if p.cmd == nil {
		return
	}
	p.in.Close()
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	p.pipe.Close()
	p.cmd = nil
}
