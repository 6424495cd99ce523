package main

import (
	"math"
	"strings"

	"github.com/anishathalye/porcupine"
)

// none is the value before the first write.
const none = math.MinInt

type access struct {
	verb     byte // read, write, compare-and-set
	from, to int
}

type answer struct {
	value   int
	set     bool
	unknown bool
}

// registerModel is a register with compare-and-set. A compare-and-set that says no saw another value.
var registerModel = porcupine.Model{
	Init: func() interface{} { return none },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		held, asked, told := state.(int), input.(access), output.(answer)
		switch asked.verb {
		case 'r':
			return told.unknown || told.value == held, held
		case 'w':
			return true, asked.to
		default:
			next := held
			if held == asked.from {
				next = asked.to
			}
			return told.unknown || told.set == (held == asked.from), next
		}
	},
	Hash: func(state interface{}) uint64 { return mix(uint64(state.(int))) },
}

// mix spreads the bits of a number (splitmix64).
func mix(z uint64) uint64 {
	z += 0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// parseJepsen reads a log of Jepsen's etcd tests. What has no answer at the end, or ends in :info, is unknown.
func parseJepsen(text string) []porcupine.Event {
	var events []porcupine.Event
	open := map[int]int{}
	id := 0
	for _, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 7 || fields[0] != "INFO" || fields[1] != "jepsen.util" {
			continue
		}
		process, kind, verb, value := number(fields[3]), fields[4], fields[5], fields[6]
		if kind == ":invoke" {
			asked := access{verb: verb[1]}
			switch verb {
			case ":write":
				asked.to = number(value)
			case ":cas":
				asked.from = number(strings.Trim(value, "[]"))
				asked.to = number(strings.Trim(fields[7], "[]"))
			}
			events = append(events, porcupine.Event{ClientId: process, Kind: porcupine.CallEvent, Value: asked, Id: id})
			open[process] = id
			id++
			continue
		}
		call, found := open[process]
		if !found {
			continue
		}
		told := answer{value: none}
		switch {
		case kind == ":info" && verb != ":read":
			continue // may still happen: answered at the end
		case value == ":timed-out":
			told.unknown = true
		case kind == ":ok" && verb == ":read" && value != "nil":
			told.value = number(value)
		case verb == ":cas":
			told.set = kind == ":ok"
		}
		delete(open, process)
		events = append(events, porcupine.Event{ClientId: process, Kind: porcupine.ReturnEvent, Value: told, Id: call})
	}
	for process, call := range open {
		events = append(events, porcupine.Event{
			ClientId: process, Kind: porcupine.ReturnEvent, Value: answer{unknown: true}, Id: call,
		})
	}
	return events
}
