package fault

import "fmt"

// Inject is a fault that is put into a process's system calls.
type Inject struct {
	Calls string // such as "write,pwrite64" or "fsync"
	What  string // such as "signal=KILL", "error=EIO" or "retval=0"
	When  string // "7" for each thread's seventh call, "7+" for all from then on; "" for all
	Path  string // only of calls that touch this file; "" for any
}

// Command returns the command line that a process is to be started under. It
// needs Strace.
func (i Inject) Command() []string {
	rule := fmt.Sprintf("inject=%s:%s", i.Calls, i.What)
	if i.When != "" {
		rule += ":when=" + i.When
	}
	cmd := []string{"strace", "-f", "-qqq", "-o", "/dev/null", "-e", "trace=" + i.Calls, "-e", rule, "-e", "signal=none"}
	if i.Path != "" {
		cmd = append(cmd, "-P", i.Path)
	}
	return cmd
}
