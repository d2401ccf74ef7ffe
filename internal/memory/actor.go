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
