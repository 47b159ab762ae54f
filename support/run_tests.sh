#!/bin/sh
# Runs a pytest command with a folder for its files that is removed afterwards. The programs under test sync what they write and make many small files, so the
# folder is in memory if that is possible: root, Linux, and 12 GiB of memory available. It is not below /dev/shm, which some tests mount over, nor below .cache,
# because the tools under test look at what git ignores and at folders with a dot.
set -u
folder=$(mktemp -d /tmp/provision-test-XXXXXX) || exit 2
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM
available=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo 2>/dev/null)
if [ "$(id -u)" = 0 ] && [ "${available:-0}" -ge 12582912 ] && unshare --mount mount -t tmpfs tmpfs "$folder" 2>/dev/null; then
	unshare --mount sh -c 'mount -t tmpfs -o mode=755,size=80% tmpfs "$0" && exec "$@" --basetemp="$0/pytest"' "$folder" "$@" </dev/null
else
	"$@" --basetemp="$folder/pytest" </dev/null
fi
