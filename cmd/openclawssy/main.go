// Command openclawssy is the memory subsystem in one binary.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"
	_ "time/tzdata" // for machines without zone files

	"golang.org/x/term"

	"github.com/openclawssy/openclawssy/internal/cli"
)

// version is set by the build.
var version = "dev"

func main() { os.Exit(run(os.Args[1:])) }

// run is main with a status to return, so that everything opened is closed.
func run(args []string) int {
	settle := func() {}
	if os.Getenv("GOGC") == "" {
		// Until a command begins everything that is made stays: looking for garbage
		// would take longer than all the rest of a short command.
		debug.SetGCPercent(400)
		// What is open then is small and lives long; a tighter heap costs little and
		// keeps a memory beside an agent modest.
		settle = func() { debug.SetGCPercent(50) }
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	h := newHouse(time.Now, os.Getenv, os.Environ())
	app := h.app()
	setup := app.Setup
	app.Setup = func(o cli.Options) error {
		settle()
		return setup(o)
	}
	status := cli.Run(ctx, app, args, cli.Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Terminal: term.IsTerminal(int(os.Stderr.Fd())), InTTY: term.IsTerminal(int(os.Stdin.Fd())),
	})
	if err := h.close(); err != nil {
		fmt.Fprintln(os.Stderr, "openclawssy:", err)
		if status == 0 {
			status = 1
		}
	}
	return status
}
