// Command peers checks one history with porcupine and prints what it came to, how long that took and what it held.
//
//	peers -model register|kv|kv-whole [-runs 5] [-limit 30s] [-memory 4096] FILE
//
// One line on standard output, separated by tabs: verdict (holds, violated, time, memory), operations, milliseconds of the
// check, milliseconds of reading and check (medians of the runs; a run that ends at a limit ends them), peak memory in MB.
package main

import (
	"flag"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

func main() {
	kind := flag.String("model", "register", "register (Jepsen log), kv (by key), kv-whole (all keys as one state)")
	runs := flag.Int("runs", 5, "how often at least; more often for 50 ms, unless it is 1")
	limit := flag.Duration("limit", 30*time.Second, "time limit of one check")
	memory := flag.Int("memory", 4096, "limit of resident memory, in MB")
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	parse, model := parseKv, kvModel
	switch *kind {
	case "register":
		parse, model = parseJepsen, registerModel
	case "kv":
	case "kv-whole":
		model = kvWholeModel
	default:
		flag.Usage()
		os.Exit(2)
	}
	var checks, totals []float64
	operations := 0
	report := func(verdict string) {
		fmt.Printf("%s\t%d\t%.6f\t%.6f\t%.1f\n", verdict, operations, median(checks), median(totals), status("VmHWM:"))
	}
	go func() {
		// A check cannot be stopped for the memory it holds, so the process ends here.
		for ; ; time.Sleep(20 * time.Millisecond) {
			if status("VmRSS:") > float64(*memory) {
				report("memory")
				os.Exit(0)
			}
		}
	}()
	verdict := ""
	first := time.Now()
	// Short checks are repeated for a while, so that their median means something.
	for run := 0; run < *runs || *runs > 1 && run < 500 && time.Since(first) < 50*time.Millisecond; run++ {
		begin := time.Now()
		text, err := os.ReadFile(flag.Arg(0))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		events := parse(string(text))
		operations = len(events) / 2
		parsed := time.Now()
		result := porcupine.CheckEventsTimeout(model, events, *limit)
		end := time.Now()
		checks = append(checks, end.Sub(parsed).Seconds()*1000)
		totals = append(totals, end.Sub(begin).Seconds()*1000)
		verdict = map[porcupine.CheckResult]string{
			porcupine.Ok: "holds", porcupine.Illegal: "violated", porcupine.Unknown: "time",
		}[result]
		if result == porcupine.Unknown {
			break
		}
	}
	report(verdict)
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := append([]float64(nil), values...)
	sort.Float64s(sorted)
	return sorted[len(sorted)/2]
}

// status reads a field of this process, in MB.
func status(field string) float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for _, line := range strings.Split(string(text), "\n") {
		if rest, found := strings.CutPrefix(line, field); found {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024
		}
	}
	return 0
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%q is no number\n", text)
		os.Exit(2)
	}
	return n
}
