package judge

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Names of the environment in which a test binary runs as a child.
const (
	childPart = "JUDGE_CHILD"
	childDir  = "JUDGE_DIR"
)

// ackFile is the file descriptor on which a child acknowledges.
const ackFile = 3

// Part is what a test binary does when it runs as a child: it works in dir until
// it is killed, and acknowledges what it has made durable. An acknowledgement is
// one line of at most 4096 bytes, so that it arrives whole or not at all.
type Part func(dir string, ack func(line string) error) error

// MaybeChild runs the part that the environment names, and never returns from
// it; in an ordinary run of the test binary it does nothing. Call it first in
// TestMain.
func MaybeChild(parts map[string]Part) {
	name := os.Getenv(childPart)
	if name == "" {
		return
	}
	part, known := parts[name]
	if !known {
		fmt.Fprintf(os.Stderr, "judge: there is no part %q\n", name)
		os.Exit(2)
	}
	acks := os.NewFile(ackFile, "acks")
	err := part(os.Getenv(childDir), func(line string) error {
		_, err := io.WriteString(acks, line+"\n")
		return err
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "judge: child:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Child is this test binary running a Part in a process of its own.
type Child struct {
	t      testing.TB
	cmd    *exec.Cmd
	pipe   *os.File
	acks   *bufio.Reader
	stderr strings.Builder
}

// StartChild starts a part in dir; env adds to the environment.
func StartChild(t testing.TB, part, dir string, env ...string) *Child {
	t.Helper()
	return StartChildUnder(t, nil, part, dir, env...)
}

// StartChildUnder starts a part under a command that runs the command line behind
// its own, such as strace.
func StartChildUnder(t testing.TB, under []string, part, dir string, env ...string) *Child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	line := append(slices.Clone(under), exe, "-test.run=^$")
	c := &Child{t: t, pipe: read, cmd: exec.Command(line[0], line[1:]...), acks: bufio.NewReader(read)}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that what it runs under dies with it
	c.cmd.Env = append(append(os.Environ(), childPart+"="+part, childDir+"="+dir), env...)
	c.cmd.Stderr = &c.stderr
	c.cmd.ExtraFiles = []*os.File{write}
	err = c.cmd.Start()
	if closing := write.Close(); err != nil || closing != nil {
		t.Fatal(errors.Join(err, closing))
	}
	t.Cleanup(func() { // a test that failed in between leaves nothing running
		if err := c.kill(); err != nil {
			t.Error(err)
		}
		if err := read.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// patience is how long a child may go without an acknowledgement before it
// counts as hung.
const patience = time.Minute

// Ack waits for the next acknowledgement; false once there will be none, because
// the child has ended. A child that hangs fails the test, which then shows where
// it hangs.
func (c *Child) Ack() (string, bool) {
	if err := c.pipe.SetReadDeadline(time.Now().Add(patience)); err != nil {
		c.t.Error(err)
		return "", false
	}
	line, err := c.acks.ReadString('\n')
	switch {
	case err == nil:
		return strings.TrimSuffix(line, "\n"), true
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.t.Errorf("the child has acknowledged nothing for %s", patience)
		if err := c.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
			c.t.Error(err)
		}
	}
	return "", false
}

// Kill ends the child as kill -9 does, and returns the acknowledgements that
// have not been read yet. A child that had ended by itself before is an error,
// unless it did so well.
func (c *Child) Kill() []string {
	c.t.Helper()
	if err := c.kill(); err != nil {
		c.t.Fatal(err)
	}
	return c.Wait()
}

// kill kills the child, and with it what it runs under, unless it has ended.
func (c *Child) kill() error {
	if c.cmd.ProcessState != nil {
		return nil
	}
	err := syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// Pid is the number of the child's process, which is that of its group too.
func (c *Child) Pid() int { return c.cmd.Process.Pid }

// Signal sends a signal to the child.
func (c *Child) Signal(s syscall.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// Ended reports whether the child has ended by itself, without an error. It is to
// be asked after Kill, End or Wait only.
func (c *Child) Ended() bool { return c.cmd.ProcessState.Success() }

// Err is what the child has written to its standard error. It is to be read after
// Kill or Wait only.
func (c *Child) Err() string { return c.stderr.String() }

// Wait waits for the child's end, and returns the acknowledgements that have not
// been read yet.
func (c *Child) Wait() []string {
	c.t.Helper()
	var rest []string
	for {
		line, more := c.Ack()
		if !more {
			break
		}
		rest = append(rest, line)
	}
	if err := c.reap(); err != nil {
		c.t.Fatalf("the child ended by itself: %v\n%s", err, c.stderr.String())
	}
	return rest
}

// End kills the child, unless it has ended by itself, and returns the
// acknowledgements that have not been read yet and the error that it ended with
// by itself. It is for children that are given errors to end with.
func (c *Child) End() (rest []string, failed error) {
	c.t.Helper()
	if err := c.kill(); err != nil {
		c.t.Fatal(err)
	}
	for {
		line, more := c.Ack()
		if !more {
			break
		}
		rest = append(rest, line)
	}
	return rest, c.reap()
}

// reap waits for the child's process, and returns the error that it ended with
// unless it was killed.
func (c *Child) reap() error {
	err := c.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status, isUnix := exit.Sys().(syscall.WaitStatus)
		if isUnix && status.Signaled() && status.Signal() == syscall.SIGKILL {
			return nil
		}
	}
	return err
}
