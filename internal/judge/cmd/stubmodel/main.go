// Command stubmodel is an OpenAI-compatible model server for trying things out
// by hand, against real HTTP and without a key:
//
//	go run ./internal/judge/cmd/stubmodel --addr 127.0.0.1:8089
//	OPENCLAWSSY_MODEL_PROVIDER=generic OPENCLAWSSY_MODEL_BASE_URL=http://127.0.0.1:8089/v1 \
//	OPENCLAWSSY_MODEL_NAME=stub openclawssy chat
//
// Asked to distil, it answers one item per event; asked to chat, it says what it
// was asked and how many memories it was shown, and "use NAME {…}" makes it call
// a tool. --always NAME gives every chat request one misbehaviour, --mix SEED a
// random one each; --list names them all.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"

	"github.com/openclawssy/openclawssy/internal/judge"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "stubmodel:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("stubmodel", flag.ContinueOnError)
	addr := flags.String("addr", "127.0.0.1:8089", "where to listen")
	always := flags.String("always", "", "answer every chat request with this behaviour")
	mix := flags.Uint64("mix", 0, "answer each chat request with a random behaviour, by this seed; 0 for none")
	list := flags.Bool("list", false, "list the behaviours and end")
	if err := flags.Parse(args); err != nil {
		return err
	}
	known := *always == ""
	for _, b := range judge.Behaviours() {
		known = known || b.Name == *always
		if !*list {
			continue
		}
		if _, err := fmt.Fprintf(out, "%-20s %-15s %s\n", b.Name, b.Class, b.Help); err != nil {
			return err
		}
	}
	switch {
	case *list:
		return nil
	case !known:
		return fmt.Errorf("there is no behaviour %q; --list names them", *always)
	}
	l, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	s := judge.Serve(l)
	s.RedirectTo("http://192.0.2.1/v1/chat/completions") // an address for documentation: nobody answers there
	s.Always(*always)
	if *mix != 0 {
		s.Mix(*mix)
	}
	if _, err := fmt.Fprintf(out, "listening at %s\nset model.provider=generic, model.base_url=%s and model.name=stub; interrupt to end\n", s.URL, s.URL); err != nil {
		return errors.Join(err, s.Close())
	}
	<-ctx.Done()
	return s.Close()
}
