package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/openclawssy/openclawssy/internal/graphview"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/graph"
)

// viewing is what graph view prints: where to look.
type viewing struct {
	Agent memory.AgentID `json:"agent"`
	URL   string         `json:"url"`
}

// Text is the address alone, for other programs to open.
func (v viewing) Text() string { return v.URL + "\n" }

// GraphView serves the viewer of the command's agent on this machine until it is
// interrupted. page makes it; newToken makes the session's secret.
func GraphView(page func(memory.AgentID) http.Handler, newToken func() string) Command {
	return func(r *Runner) *cobra.Command {
		port := 0
		c := &cobra.Command{
			Use: "graph/view", Short: "Look at the graph in a browser", Args: cobra.NoArgs,
			Long: "Serve a page that shows the agent's graph, on this machine only, until Ctrl-C. The address that is printed holds the session's secret:\n" +
				"whoever has it can read the graph as long as the command runs.",
			Example: "  openclawssy graph view\n  openclawssy graph view --port 8765 --agent studio",
			RunE: func(c *cobra.Command, _ []string) error {
				l, err := listenLocal(c.Context(), port)
				if err != nil {
					return err
				}
				session := graphview.Session{Token: newToken(), Addr: l.Addr().String()}
				if err := r.Print(viewing{r.Agent(), session.URL()}); err != nil {
					return errors.Join(err, l.Close())
				}
				r.note("open this address in a browser; Ctrl-C ends")
				return graphview.Serve(c.Context(), l, session.Guard(page(r.Agent())))
			},
		}
		c.Flags().IntVar(&port, "port", 0, "port to listen on; 0 takes a free one")
		return c
	}
}

// listenLocal listens on the loopback address.
func listenLocal(ctx context.Context, port int) (net.Listener, error) {
	if port < 0 || port > 65535 {
		return nil, &memory.FieldError{Field: "port", Reason: "must be between 0 and 65535"}
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, memory.WithHint(memory.Errorf(memory.ErrConflict, "port %d is in use", port), "--port 0 takes a free one")
	case errors.Is(err, syscall.EACCES):
		return nil, memory.WithHint(memory.Errorf(memory.ErrDenied, "port %d is not yours to use", port), "--port 0 takes a free one")
	case err != nil:
		return nil, memory.Errorf(memory.ErrUnavailable, "listen: %w", err)
	}
	return l, nil
}

// GraphDemo walks through the graph memory on invented data. scratch lends a
// graph that is thrown away.
func GraphDemo(scratch memory.Borrow[*graph.Store]) Command {
	return func(r *Runner) *cobra.Command {
		return &cobra.Command{
			Use: "graph/demo", Short: "Walk through all types of nodes, on invented data that is thrown away", Args: cobra.NoArgs,
			Long:    "Build a small graph in a scratch directory: episodes, facts, a contradiction, a pattern, its patch, a persona; then search it, walk it and draw it.\nYour own memory is not touched.",
			Example: "  openclawssy graph demo\n  openclawssy graph demo --json > demo.json",
			RunE: func(c *cobra.Command, _ []string) error {
				store, release, err := scratch(c.Context(), r.Agent())
				if err != nil {
					return err
				}
				defer release()
				d := &demo{store: store}
				if err := d.run(c.Context()); err != nil {
					return fmt.Errorf("graph demo: %w", err)
				}
				return r.Print(d)
			},
		}
	}
}
