package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/spf13/cobra"
)

// Serving is what the command serve works with.
type Serving struct {
	// Schedule runs the schedule until its context ends.
	Schedule func(context.Context) error
	// Listen opens the HTTP server at listen; "" is the configured address. Its Face
	// is nil where the configuration switches HTTP off.
	Listen func(ctx context.Context, listen string) (*Face, error)
}

// Face is an HTTP server that listens already.
type Face struct {
	URL        string `json:"url"`
	Admin      string `json:"admin"`                 // the page for people
	FirstToken string `json:"first_token,omitempty"` // the file that holds it, where it was made just now
	// Serve answers until its context ends.
	Serve func(context.Context) error `json:"-"`
}

// Text shows it to a person.
func (f Face) Text() string {
	text := fmt.Sprintf("Listening on %s, the admin page is %s\n", f.URL, f.Admin)
	if f.FirstToken != "" {
		text += fmt.Sprintf("A first token was made; it may everything and stands in %s\n", f.FirstToken)
	}
	return text
}

// Serve answers over HTTP and runs the schedule until a signal.
func Serve(s Serving) Command {
	return func(r *Runner) *cobra.Command {
		var listen string
		var silent bool
		c := &cobra.Command{
			Use: "serve", Short: "Answer over HTTP and run the schedule, until a signal", Args: cobra.NoArgs,
			Long: "Answer over HTTP and run the scheduled jobs of all agents until a signal. Of several processes on one home one runs the jobs; the others take over when it ends.\n" +
				"Every request needs a token: the first start makes one and says where it stands; openclawssy token makes others.",
			Example: "  openclawssy serve\n  openclawssy serve --listen 127.0.0.1:0 --json\n  openclawssy serve --no-http --set log.level=info",
			RunE: func(c *cobra.Command, _ []string) error {
				var face *Face
				if !silent {
					var err error
					if face, err = s.Listen(c.Context(), listen); err != nil {
						return err
					}
				}
				if face != nil {
					if err := r.Print(*face); err != nil {
						return err
					}
				}
				r.note("Running the schedule; Ctrl-C ends it.")
				err := serveBoth(c.Context(), s.Schedule, face)
				if c.Context().Err() != nil {
					return nil
				}
				return err
			},
		}
		c.Flags().StringVar(&listen, "listen", "", "address and port; http.listen if absent; port 0 takes a free one")
		c.Flags().BoolVar(&silent, "no-http", false, "run the schedule only")
		return c
	}
}

// serveBoth runs the schedule and the server; when one fails the other ends too.
func serveBoth(ctx context.Context, schedule func(context.Context) error, face *Face) error {
	if face == nil {
		return schedule(ctx)
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	var both sync.WaitGroup
	var failed error
	both.Go(func() {
		defer end()
		failed = schedule(ctx)
	})
	err := face.Serve(ctx)
	end()
	both.Wait()
	return errors.Join(err, failed)
}
