package op

import "context"

// Progress is how far a long call has come.
type Progress struct {
	Done, Total int64  // Total is 0 where it is not known
	Unit        string // what is counted: events, files, …
}

// Failing is a result of a check that may have found something wrong: the call
// itself went well, and the command line ends with status 1 all the same.
type Failing interface{ Failed() bool }

// Texting is a result that knows how a person wants to read it. Text may be of
// several lines and ends with one line break.
type Texting interface{ Text() string }

type progressKey struct{}

// WithProgress returns a context under which Report calls fn. A face that shows
// progress sets it.
func WithProgress(ctx context.Context, fn func(Progress)) context.Context {
	return context.WithValue(ctx, progressKey{}, fn)
}

// Report tells whoever called, if they want to know, how far the work has come.
func Report(ctx context.Context, p Progress) {
	if fn, wanted := ctx.Value(progressKey{}).(func(Progress)); wanted {
		fn(p)
	}
}
