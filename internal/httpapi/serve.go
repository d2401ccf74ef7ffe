package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"runtime"
	"time"

	"golang.org/x/net/netutil"
)

func (l Limits) withDefaults() Limits {
	fill := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	if l.Body == 0 {
		l.Body = 1 << 20
	}
	if l.Rate == 0 {
		l.Rate = 1000
	}
	if l.Burst == 0 {
		l.Burst = int(2*l.Rate) + 1
	}
	if l.Connections == 0 {
		l.Connections = 2048
	}
	if l.Work == 0 {
		l.Work = 4 * runtime.GOMAXPROCS(0)
	}
	fill(&l.BodyTime, 8*time.Second)
	fill(&l.WriteTime, 30*time.Second)
	fill(&l.HeaderTime, 5*time.Second)
	fill(&l.IdleTime, 50*time.Second)
	return l
}

// drainTime is how long requests under way may take when the server ends.
const drainTime = 10 * time.Second

// Serve answers on l until ctx ends. Then it takes no more connections, lets what
// is being answered finish for ten seconds, breaks off the rest, and returns nil.
// It closes l. With a certificate it speaks TLS.
func (s *Server) Serve(ctx context.Context, l net.Listener, certificate *tls.Certificate) error {
	l = netutil.LimitListener(l, s.Limits.Connections)
	if certificate != nil {
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
	}
	// Requests outlive ctx while they drain; what is left then is told to end.
	base, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: s.Limits.HeaderTime, IdleTimeout: s.Limits.IdleTime, MaxHeaderBytes: 32 << 10,
		BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog:    quiet(s.Log),
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				s.open.Add(1)
			case http.StateClosed, http.StateHijacked:
				s.open.Add(-1)
			}
		},
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(base, drainTime)
	defer cancel()
	err := server.Shutdown(drain)
	end()
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	<-failed
	return err
}
