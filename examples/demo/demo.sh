#!/bin/sh
# A one-minute tour, offline: what in a Colab notebook does not work on Colab today and on Workbench, why a job works on one machine and fails on the other, and the notebook as a spec.
# It runs `provision` from the PATH, or $PROVISION, which `make demo` sets to this checkout's. It writes in a temporary folder only.
trap 'exit 130' INT
cd "$(dirname "$0")" || exit 2
folder=$(mktemp -d) || exit 2
trap 'rm -rf "$folder"' EXIT
cp train.ipynb colab.json workbench.json trace.txt four-pins.yaml "$folder" && cd "$folder" || exit 2

# A command with findings ends with 1, as expected here. Any higher code is a fault and ends the demo.
# Standard error is shown only then: `init` writes there what `lint` prints in the next step.
step() {
	printf '\n# %s\n$ provision' "$1"
	shift
	printf ' %s' "$@"
	printf '\n'
	"${PROVISION:-provision}" "$@" 2>errors.txt
	code=$?
	[ "$code" -le 1 ] || {
		cat errors.txt >&2
		exit "$code"
	}
}

step 'A Colab notebook with versions of 2024. Does it still work on Colab, and on Workbench? Nothing is installed to find out.' check train.ipynb --on colab-t4 --on workbench-t4 --output-format concise
step 'With torch 2.11 it runs on Colab again. On Workbench it ends with an error.
# Each machine has a capture (both are examples). Which difference is the cause?' diff colab.json workbench.json --error trace.txt
step 'Make one spec for both from the notebook.' init --from train.ipynb --gpu T4 --target colab --target workbench
step 'What does not work in the spec?' lint --output-format concise
step 'Four other pins, often recommended for Colab, do not work together. Which similar versions do?' suggest four-pins.yaml --most 1 --no-resolve

cat <<'END'

# Next, from the folder of this checkout: a Workbench instance, in an emulator of Google's services (no account, no cost)
#   make sandbox
# Or a real environment on this machine, locked, created and verified by a training run
#   make apply
# Or this notebook as a job on Workbench, step by step: docs/tutorials/colab-to-workbench.md
# (No machine wrote the two captures: the captures are examples with typical values. See examples/demo/README.md.)
END
