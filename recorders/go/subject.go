package retrograde

import (
	"time"

	"retrograde/internal/journal"
)

// Subject says whose requests a capture has. All fields are optional.
type Subject struct {
	// Client is the user, as the audit log names it: system:serviceaccount:prod:controller.
	Client string
	// Incarnation is any text that changes when the process restarts, such as the name of its pod.
	Incarnation string
	// Server is the API server that the client asks.
	Server string
	// Clock names the clock of the times. Captures of one machine have the same clock.
	Clock string
}

// Limits bound what a recorder costs its process. The zero value has the defaults.
type Limits struct {
	// Memory bounds the bytes that wait for the disk, and those of answers that are being read. The default is
	// 128 MiB. Records beyond it are dropped and counted.
	Memory int
	// Patience bounds the time for which a request waits if the disk is slow and the memory is full. The default is
	// 10 ms. After one such wait, requests do not wait until the disk has caught up.
	Patience time.Duration
}

func (l Limits) options() journal.Options {
	return journal.Options{Memory: l.Memory, Patience: l.Patience}
}

func (s Subject) heading() []byte {
	line := []byte(`{"kind":"capture","version":1`)
	for _, field := range [...]struct{ name, value string }{
		{"client", s.Client}, {"incarnation", s.Incarnation}, {"server", s.Server}, {"clock", s.Clock},
	} {
		if field.value != "" {
			line = append(journal.AppendText(append(line, ','), field.name), ':')
			line = journal.AppendText(line, field.value)
		}
	}
	return append(line, "}\n"...)
}
