// Command robustness decides one report directory with the validator of etcd's own robustness suite and prints what it came to.
//
//	robustness [-limit 300s] [-memory 8192] DIRECTORY
//
// One line on standard output, separated by tabs: verdict (holds, violated, time, memory), what failed, operations, milliseconds
// of reading, milliseconds of deciding, peak memory in MB. The write-ahead logs are those of DIRECTORY/server-*; the validator
// repairs torn ones, so it is given a copy.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/tests/v3/robustness/report"
	"go.etcd.io/etcd/tests/v3/robustness/validate"
	"go.uber.org/zap"
)

func main() {
	limit := flag.Duration("limit", 300*time.Second, "time limit of deciding")
	memory := flag.Int("memory", 8192, "limit of resident memory, in MB")
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	directory := flag.Arg(0)
	log := zap.NewNop()
	begun := time.Now()
	clients, err := report.LoadClientReports(directory)
	stop(err)
	operations := 0
	for _, client := range clients {
		operations += len(client.KeyValue)
	}
	logs := copied(directory)
	defer os.RemoveAll(logs)
	persisted, err := report.LoadClusterPersistedRequests(log, logs)
	if err != nil {
		fmt.Fprintln(os.Stderr, "no write-ahead log:", err)
	}
	traffic, err := report.LoadTrafficDetail(directory)
	if err != nil {
		fmt.Fprintln(os.Stderr, "no traffic.json:", err)
	}
	read := time.Since(begun)
	say := func(verdict, failed string, took time.Duration) {
		fmt.Printf("%s\t%s\t%d\t%d\t%d\t%d\n", verdict, failed, operations, read.Milliseconds(), took.Milliseconds(), resident("VmHWM"))
	}
	done := make(chan validate.RobustnessResult, 1)
	begun = time.Now()
	go func() {
		config := validate.Config{ExpectRevisionUnique: traffic.ExpectUniqueRevision}
		done <- validate.ValidateAndReturnVisualize(log, config, clients, persisted, *limit)
	}()
	for {
		select {
		case result := <-done:
			verdict, failed := "holds", ""
			if err := result.Error(); err != nil {
				verdict, failed = "violated", strings.ReplaceAll(err.Error(), "\n", " ")
			}
			switch result.Linearization.Status {
			case validate.Timeout, validate.DeadlineExceeded:
				verdict = "time"
			}
			say(verdict, failed, time.Since(begun))
			return
		case <-time.After(20 * time.Millisecond):
			took := time.Since(begun)
			if resident("VmRSS") > *memory {
				say("memory", "", took)
				return
			}
			if took > *limit+5*time.Second {
				say("time", "", took)
				return
			}
		}
	}
}

// copied is a directory with copies of the members' data.
func copied(directory string) string {
	to, err := os.MkdirTemp("", "robustness")
	stop(err)
	members, err := filepath.Glob(filepath.Join(directory, "server-*"))
	stop(err)
	for _, member := range members {
		stop(os.CopyFS(filepath.Join(to, filepath.Base(member)), os.DirFS(member)))
	}
	return to
}

// resident is a figure of this process in MB (Linux).
func resident(field string) int {
	status, err := os.ReadFile("/proc/self/status")
	stop(err)
	for _, line := range strings.Split(string(status), "\n") {
		if rest, found := strings.CutPrefix(line, field+":"); found {
			kb, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(rest, "kB")))
			stop(err)
			return kb / 1024
		}
	}
	return 0
}

func stop(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}
