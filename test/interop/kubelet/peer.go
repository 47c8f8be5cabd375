package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

const (
	answerTimeout = 2 * time.Minute // far beyond any answer, also on a busy machine
	lineBytesMax  = 16 << 20
)

// peer is a child that answers each line with a line. It is started when it is first asked, and
// again after it ended.
type peer struct {
	argv []string
	cmd  *exec.Cmd
	in   io.WriteCloser
	pipe *os.File
	out  *bufio.Reader
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
	p.cmd, p.pipe, p.out = cmd, out, bufio.NewReaderSize(out, 64<<10)
	return nil
}

func (p *peer) tell(line []byte) error {
	if p.cmd == nil {
		if err := p.start(); err != nil {
			return err
		}
	}
	_, err := p.in.Write(append(line, '\n'))
	return err
}

func (p *peer) hear() ([]byte, error) {
	if p.cmd == nil {
		return nil, fmt.Errorf("%s does not run", p.argv[0])
	}
	_ = p.pipe.SetReadDeadline(time.Now().Add(answerTimeout))
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		p.stop()
		return nil, fmt.Errorf("%s: no answer: %w", p.argv[0], err)
	}
	return line, nil
}

func (p *peer) ask(line []byte) ([]byte, error) {
	if err := p.tell(line); err != nil {
		p.stop()
		return nil, err
	}
	return p.hear()
}

// stop ends the child: at its end of input, or at once when it does not read.
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
