package retrograde

import (
	"compress/gzip"
	"io"
)

// unpacker decodes a watch in gzip. Its goroutine ends with the watch.
type unpacker struct {
	packed *io.PipeWriter
	done   chan struct{}
}

// unpackEvents starts an unpacker that gives the events to a receiver. The receiver writes the packed bytes into it.
func unpackEvents(r *receiver) *unpacker {
	packed, to := io.Pipe()
	u := &unpacker{packed: to, done: make(chan struct{})}
	go func() {
		defer close(u.done)
		err := u.unpack(r, packed)
		if err != nil && err != io.ErrUnexpectedEOF {
			r.exchange.capture.journal.Note("expected an answer to %s in its stated encoding, found %w; the rest of the watch is not recorded", r.exchange.uri, err)
			r.giveUp()
		}
		packed.CloseWithError(io.EOF)
	}()
	return u
}

func (u *unpacker) unpack(r *receiver, packed io.Reader) error {
	plain, err := gzip.NewReader(packed)
	if err != nil {
		return err
	}
	buffer := make([]byte, 32<<10)
	for {
		n, err := plain.Read(buffer)
		if n > 0 && r.form != noForm {
			r.events(buffer[:n])
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// write gives packed bytes to the goroutine, and waits until it has taken them.
func (u *unpacker) write(packed []byte) {
	// The pipe fails only after the goroutine gave up.
	_, _ = u.packed.Write(packed)
}

// finish waits until the goroutine has recorded every event.
func (u *unpacker) finish() {
	u.packed.Close()
	<-u.done
}
