package mcpapi

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// answerTime is how long what was asked may take to be answered once the input has
// ended.
const answerTime = 10 * time.Second

// answering is a transport whose input ends when what came in has been answered: who
// pipes requests in gets the answers, and not those alone that were faster than the
// end of the pipe.
type answering struct{ mcp.Transport }

// Connect implements mcp.Transport.
func (t answering) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &answered{Connection: c, open: map[jsonrpc.ID]bool{}, closed: make(chan struct{})}, nil
}

// answered is a connection that knows what of it was not answered yet.
type answered struct {
	mcp.Connection
	mu     sync.Mutex
	open   map[jsonrpc.ID]bool
	none   chan struct{} // closed when nothing is open; nil while nobody waits for that
	once   sync.Once
	closed chan struct{}
}

// Read implements mcp.Connection.
func (c *answered) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := c.Connection.Read(ctx)
	if errors.Is(err, io.EOF) {
		c.wait(ctx)
		return msg, err
	}
	if call, is := msg.(*jsonrpc.Request); is && err == nil && call.IsCall() {
		c.mu.Lock()
		c.open[call.ID] = true
		c.mu.Unlock()
	}
	return msg, err
}

// wait returns when everything is answered, or will not be.
func (c *answered) wait(ctx context.Context) {
	c.mu.Lock()
	none := make(chan struct{})
	if len(c.open) == 0 {
		close(none)
	} else {
		c.none = none
	}
	c.mu.Unlock()
	enough := time.NewTimer(answerTime)
	defer enough.Stop()
	select {
	case <-none:
	case <-c.closed:
	case <-ctx.Done():
	case <-enough.C:
	}
}

// Write implements mcp.Connection.
func (c *answered) Write(ctx context.Context, msg jsonrpc.Message) error {
	err := c.Connection.Write(ctx, msg)
	if answer, is := msg.(*jsonrpc.Response); is {
		c.mu.Lock()
		delete(c.open, answer.ID)
		if len(c.open) == 0 && c.none != nil {
			close(c.none)
			c.none = nil
		}
		c.mu.Unlock()
	}
	return err
}

// Close implements mcp.Connection.
func (c *answered) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Connection.Close()
}
