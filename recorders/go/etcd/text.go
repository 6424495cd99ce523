package etcd

import (
	"hash/fnv"
	"strconv"
	"unicode/utf8"

	"retrograde/internal/journal"
)

// hashedFrom is the length from which on a report has a value's hash instead of the value.
const hashedFrom = 20

// appendKey appends a member with a key. Each byte is the character of its number, so different keys stay different
// and in their order.
func appendKey(to []byte, name string, key []byte) []byte {
	to = append(appendName(to, name), ':')
	for _, c := range key {
		if c >= 0x80 {
			characters := make([]rune, len(key))
			for at, c := range key {
				characters[at] = rune(c)
			}
			return journal.AppendText(to, string(characters))
		}
	}
	return journal.AppendText(to, key)
}

// appendValue appends a member with a value: a short text, or the hash of anything else.
func appendValue(to []byte, name string, value []byte) []byte {
	to = append(appendName(to, name), ":{"...)
	switch {
	case len(value) == 0:
	case len(value) < hashedFrom && utf8.Valid(value):
		to = journal.AppendText(append(to, `"Value":`...), value)
	default:
		hash := fnv.New32a()
		hash.Write(value)
		// In a report, hash 0 means no hash.
		to = strconv.AppendUint(append(to, `"Hash":`...), uint64(max(hash.Sum32(), 1)), 10)
	}
	return append(to, '}')
}

func appendNumber(to []byte, name string, number int64) []byte {
	to = append(appendName(to, name), ':')
	return strconv.AppendInt(to, number, 10)
}

func appendFlag(to []byte, name string, flag bool) []byte {
	to = append(appendName(to, name), ':')
	return strconv.AppendBool(to, flag)
}

func appendString(to []byte, name, text string) []byte {
	to = append(appendName(to, name), ':')
	return journal.AppendText(to, text)
}

// appendName appends the name of a member, which has only letters and dashes.
func appendName(to []byte, name string) []byte {
	to = append(to, '"')
	to = append(to, name...)
	return append(to, '"')
}
