package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// assets is the variable that names the folder of etcd and kube-apiserver.
const assets = "KUBEBUILDER_ASSETS"

// servers returns the folder of the servers. Without it, the test is skipped, or fails if CI is set.
func servers(t *testing.T, programs ...string) string {
	t.Helper()
	folder, err := filepath.Abs(os.Getenv(assets))
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv(assets) == "" {
		missing(t, assets+" is not set")
	}
	for _, program := range programs {
		if _, err := os.Stat(filepath.Join(folder, program)); err != nil {
			missing(t, assets+" has no "+program)
		}
	}
	return folder
}

// checker returns the path of the checker.
func checker(t *testing.T) string {
	t.Helper()
	if program := os.Getenv("RETROGRADE_BIN"); program != "" {
		return program
	}
	program, err := exec.LookPath("retrograde")
	if err != nil {
		missing(t, "RETROGRADE_BIN is not set, and PATH has no retrograde")
	}
	return program
}

func missing(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip("skipped: " + why)
}
