package launch

import (
	"encoding/json"
	"errors"
	"fmt"

	"lazaret/internal/proc"
	"lazaret/internal/step"
)

// The conversation between lazaret and its helper: JSON values on a socket
// pair that only the two have.

// request asks the helper for one thing: an operation, the removal of a
// container, or the end of an earlier request.
type request struct {
	ID     int             `json:"id"`
	Kind   string          `json:"kind"` // opKinds, or one of the below
	Op     json.RawMessage `json:"op,omitempty"`
	In     step.Values     `json:"in,omitempty"`
	Name   string          `json:"name,omitempty"`   // kindRemove: the container; kindUnmount: the overlay's key
	Cancel int             `json:"cancel,omitempty"` // kindCancel: the request
}

const (
	kindRemove  = "remove"
	kindUnmount = "unmount"
	kindCancel  = "cancel"
	kindBye     = "bye" // lazaret ends, in order
)

// reply answers one request. Reply 0 says that the helper is there.
type reply struct {
	ID  int         `json:"id"`
	Out step.Values `json:"out,omitempty"`
	Err *wireError  `json:"err,omitempty"`
	// Ran tells of a program that ended; then it is no reply at all.
	Ran *proc.Ran `json:"ran,omitempty"`
	// Over tells that nothing runs in the sandbox any more; it is no reply either.
	Over bool `json:"over,omitempty"`
}

// wireError is an error that crosses the socket with its hint.
type wireError struct {
	Msg string `json:"msg"`
	Do  string `json:"do,omitempty"`
}

func (e *wireError) Error() string { return e.Msg }

// Hint is the next command.
func (e *wireError) Hint() string { return e.Do }

func toWire(err error) *wireError {
	if err == nil {
		return nil
	}
	w := &wireError{Msg: err.Error()}
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		w.Do = h.Hint()
	}
	return w
}

// opKind names the operations that the helper performs.
func opKind(op step.Op) (string, error) {
	switch op.(type) {
	case Bind:
		return "bind", nil
	case Image:
		return "image", nil
	case GitShadow:
		return "git-shadow", nil
	case Sandbox:
		return "sandbox", nil
	case HostNetwork:
		return "host-network", nil
	case SidecarImage:
		return "sidecar-image", nil
	case Router:
		return "router", nil
	case Netns:
		return "box", nil
	case Gate:
		return "gate", nil
	case Cable:
		return "cable", nil
	case Publish:
		return "publish", nil
	case Certificates:
		return "certificates", nil
	case EscalateClient:
		return "escalate-client", nil
	case Still:
		return "still", nil
	case ImageRoot:
		return "image-root", nil
	case ImageLayers:
		return "image-layers", nil
	case ImageUnmount:
		return "image-unmount", nil
	case Overlay:
		return "overlay", nil
	case Discard:
		return "discard", nil
	case Sweep:
		return "sweep", nil
	case Setup:
		return "setup", nil
	case KeepSetup:
		return "keep-setup", nil
	case HideSockets:
		return "hide-sockets", nil
	}
	return "", fmt.Errorf("%T is not an operation of the helper", op)
}

func decodeOp(kind string, raw json.RawMessage) (step.Op, error) {
	switch kind {
	case "bind":
		return decode[Bind](raw)
	case "image":
		return decode[Image](raw)
	case "git-shadow":
		return decode[GitShadow](raw)
	case "sandbox":
		return decode[Sandbox](raw)
	case "host-network":
		return decode[HostNetwork](raw)
	case "sidecar-image":
		return decode[SidecarImage](raw)
	case "router":
		return decode[Router](raw)
	case "box":
		return decode[Netns](raw)
	case "gate":
		return decode[Gate](raw)
	case "cable":
		return decode[Cable](raw)
	case "publish":
		return decode[Publish](raw)
	case "certificates":
		return decode[Certificates](raw)
	case "escalate-client":
		return decode[EscalateClient](raw)
	case "still":
		return decode[Still](raw)
	case "image-root":
		return decode[ImageRoot](raw)
	case "image-layers":
		return decode[ImageLayers](raw)
	case "image-unmount":
		return decode[ImageUnmount](raw)
	case "overlay":
		return decode[Overlay](raw)
	case "discard":
		return decode[Discard](raw)
	case "sweep":
		return decode[Sweep](raw)
	case "setup":
		return decode[Setup](raw)
	case "keep-setup":
		return decode[KeepSetup](raw)
	case "hide-sockets":
		return decode[HideSockets](raw)
	}
	return nil, fmt.Errorf("the helper knows no operation %q", kind)
}

func decode[T step.Op](raw json.RawMessage) (step.Op, error) {
	var op T
	err := json.Unmarshal(raw, &op)
	return op, err
}
