package main

import (
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"
)

// ourselves is a command of this program, in a process of its own.
func ourselves(t *testing.T, home string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("openclawssy", append(args, "--home", home)...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	return cmd
}

// timeOf runs the command and says how long it took.
func timeOf(t *testing.T, cmd *exec.Cmd) time.Duration {
	t.Helper()
	begin := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return time.Since(begin)
}

// killBegun starts the command, waits until it has begun its work, and kills it so
// long after. It returns what the process ended with: nil when it was done before.
func killBegun(t *testing.T, cmd *exec.Cmd, begun func() bool, after time.Duration) error {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for len(ended) == 0 && !begun() {
		time.Sleep(100 * time.Microsecond)
	}
	time.Sleep(after)
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	return <-ended
}
