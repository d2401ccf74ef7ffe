package memory

import "context"

type actorKey struct{}

// WithActor returns a context in which changes of memory are made by o: the
// runtime sets OriginAssistant for the tool calls of a model. It is carried by
// the context, so that no input of an operation can claim it.
func WithActor(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, actorKey{}, o)
}

// Actor returns who makes the changes of ctx: OriginUser where nobody was named.
func Actor(ctx context.Context) Origin {
	o, named := ctx.Value(actorKey{}).(Origin)
	if !named {
		return OriginUser
	}
	return o
}

type sessionKey struct{}

// WithSession returns a context in which operations are called from within a
// session: the runtime sets it for the calls of a turn. It is carried by the
// context, so that no input of an operation can claim another one.
func WithSession(ctx context.Context, s Session) context.Context {
	return context.WithValue(ctx, sessionKey{}, s)
}

// SessionOf returns the session that an operation is called from; false where it
// is called from none, as by the command line or the schedule.
func SessionOf(ctx context.Context) (Session, bool) {
	s, inSession := ctx.Value(sessionKey{}).(Session)
	return s, inSession
}
