#!/usr/bin/env bash
# Prints a Homebrew formula of a release: formula.sh VERSION ADDRESS FOLDER. ADDRESS is that of the release's files, and FOLDER
# holds their checksums (NAME.tar.gz.sha256).
set -euo pipefail
version=$1 address=$2 folder=$3

# file TARGET: the lines of the formula for the archive of one system.
file() {
    local name="retrograde-v$version-$1.tar.gz"
    local sum
    sum=$(cut -d ' ' -f 1 <"$folder/$name.sha256")
    printf '      url "%s/%s"\n      sha256 "%s"\n' "$address" "$name" "$sum"
}

cat <<FORMULA
class Retrograde < Formula
  desc "Offline checker for recorded etcd and Kubernetes histories"
  version "$version"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
$(file aarch64-apple-darwin)
    end
    on_intel do
$(file x86_64-apple-darwin)
    end
  end

  on_linux do
    on_arm do
$(file aarch64-unknown-linux-musl)
    end
    on_intel do
$(file x86_64-unknown-linux-musl)
    end
  end

  def install
    bin.install "retrograde"
    man1.install "share/retrograde.1"
    bash_completion.install "share/retrograde.bash" => "retrograde"
    zsh_completion.install "share/_retrograde"
    fish_completion.install "share/retrograde.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/retrograde --version")
  end
end
FORMULA
