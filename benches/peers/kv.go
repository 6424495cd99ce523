package main

import (
	"hash/fnv"
	"maps"
	"strings"

	"github.com/anishathalye/porcupine"
)

type request struct {
	verb       string
	key, value string
}

func hash(texts ...string) uint64 {
	sum := fnv.New64a()
	for _, text := range texts {
		sum.Write([]byte(text))
	}
	return sum.Sum64()
}

// kvModel is a store of texts, decided key by key. What is not there reads as the empty text.
var kvModel = porcupine.Model{
	PartitionEvent: func(history []porcupine.Event) [][]porcupine.Event {
		places, keys := map[string]int{}, map[int]string{}
		var parts [][]porcupine.Event
		for _, event := range history {
			if event.Kind == porcupine.CallEvent {
				keys[event.Id] = event.Value.(request).key
			}
			key := keys[event.Id]
			place, found := places[key]
			if !found {
				place = len(parts)
				places[key] = place
				parts = append(parts, nil)
			}
			parts[place] = append(parts[place], event)
		}
		return parts
	},
	Init: func() interface{} { return "" },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		held, asked := state.(string), input.(request)
		switch asked.verb {
		case "get":
			return output.(string) == held, held
		case "put":
			return true, asked.value
		default:
			return true, held + asked.value
		}
	},
	Hash: func(state interface{}) uint64 { return hash(state.(string)) },
}

// kvWholeModel is the same store as one state.
var kvWholeModel = porcupine.Model{
	Init: func() interface{} { return map[string]string{} },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		held, asked := state.(map[string]string), input.(request)
		if asked.verb == "get" {
			return output.(string) == held[asked.key], held
		}
		next := maps.Clone(held)
		if asked.verb == "put" {
			next[asked.key] = asked.value
		} else {
			next[asked.key] += asked.value
		}
		return true, next
	},
	Equal: func(a, b interface{}) bool { return maps.Equal(a.(map[string]string), b.(map[string]string)) },
	Hash: func(state interface{}) uint64 {
		var sum uint64
		for key, value := range state.(map[string]string) {
			sum ^= hash(key, "\x00", value)
		}
		return sum
	},
}

// parseKv reads the logs of key-value stores that porcupine is tested with: {:process 9, :type :invoke, :f :append,
// :key "0", :value "x 9 0 y"}. Every call in them is answered.
func parseKv(text string) []porcupine.Event {
	var events []porcupine.Event
	open := map[int]int{}
	id := 0
	for _, line := range strings.Split(text, "\n") {
		_, rest, found := strings.Cut(line, ":process ")
		if !found {
			continue
		}
		processText, rest, _ := strings.Cut(rest, ",")
		process := number(processText)
		invoked := strings.Contains(rest, ":type :invoke")
		_, rest, _ = strings.Cut(rest, ":f :")
		verb, rest, _ := strings.Cut(rest, ",")
		_, rest, _ = strings.Cut(rest, ":key \"")
		key, rest, _ := strings.Cut(rest, "\"")
		value := ""
		if _, quoted, found := strings.Cut(rest, ":value \""); found {
			value, _, _ = strings.Cut(quoted, "\"")
		}
		if invoked {
			asked := request{verb: verb, key: key, value: value}
			events = append(events, porcupine.Event{ClientId: process, Kind: porcupine.CallEvent, Value: asked, Id: id})
			open[process] = id
			id++
		} else {
			told := porcupine.Event{ClientId: process, Kind: porcupine.ReturnEvent, Value: value, Id: open[process]}
			events = append(events, told)
		}
	}
	return events
}
