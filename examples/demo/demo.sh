#!/bin/sh
# A one-minute tour, offline: four pins that do not work together, what an error means, and why a job works on Colab and fails on Workbench.
# It runs `provision` from the PATH, or $PROVISION, which `make demo` sets to this checkout's. It writes nothing.
trap 'exit 130' INT
cd "$(dirname "$0")" || exit 2

# A command with findings ends with 1, as expected here. Any higher code is a fault and ends the demo.
step() {
	printf '\n# %s\n$ provision' "$1"
	shift
	printf ' %s' "$@"
	printf '\n'
	"${PROVISION:-provision}" "$@"
	code=$?
	[ "$code" -le 1 ] || exit "$code"
}

step 'What is wrong with these pins? Nothing is installed to find out.' lint four-pins.yaml --output-format concise
step 'Which similar versions work together?' suggest four-pins.yaml --most 1
step 'Later the job has torch 2.11 for CUDA 13, and runs on Colab.
# The job is moved to Workbench and dies. What does its error mean there?' why trace.txt --report workbench.json
step 'It works on Colab. Which difference matters?' diff colab.json workbench.json

cat <<'END'

# Next, from the folder of this checkout: the same steps for a Workbench instance, in an emulator of Google's services (no account, no cost)
#   .venv/bin/python -m pip install --editable '.[sandbox]'
#   .venv/bin/provision apply specs/workbench-l4.yaml --sandbox
# Or a real environment on this machine, locked, created and verified by a training run
#   make apply
# (colab.json and workbench.json are simulated: the real probe, with made-up packages and a stand-in for the driver. See examples/demo/README.md.)
END
