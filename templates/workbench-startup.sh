#!/usr/bin/env bash
# Sets up and verifies a Vertex AI Workbench instance at every start. The script is the same for every spec: all values of the spec are in the document
# that the metadata key provision-run names ({"nonce", "digest": sha256 of the document, "document": gs:// address}). Runs as root and logs to
# /var/log/provision-startup.log. The console gets only short lines: Google's script runner stops a script that prints a line of more than 64 KiB.
set -u -o pipefail

export HOME="${HOME:-/root}" LANG=C.UTF-8
export PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
export DEBIAN_FRONTEND=noninteractive PIP_PROGRESS_BAR=off PIP_NO_INPUT=1 UV_NO_PROGRESS=1 HF_HUB_DISABLE_PROGRESS_BARS=1 TQDM_DISABLE=1 NO_COLOR=1
unset PYTHONPATH PYTHONHOME BASH_ENV ENV CDPATH

readonly metadata="${PROVISION_METADATA:-http://169.254.169.254/computeMetadata/v1}"
readonly storage="${PROVISION_STORAGE:-https://storage.googleapis.com}"
readonly secrets="${PROVISION_SECRETS:-https://secretmanager.googleapis.com}"
readonly folder=/var/lib/provision log=/var/log/provision-startup.log
readonly armed=/run/provision/armed
work='' nonce='' python='' phase=start failed_line=0 unguarded=''

say() {
	printf 'provision: %.400s\n' "$1"
	printf '%s\n' "$1" >&2
}

metadata_get() {
	curl --silent --show-error --fail --noproxy '*' --max-time 20 --retry 5 --retry-connrefused --header 'Metadata-Flavor: Google' "$metadata/$1"
}

# attribute NAME SECONDS: prints an attribute of the instance. Returns 1 if it is not set, 2 if the metadata server did not respond for SECONDS.
# It retries after a dropped connection, a 503 and a partial response: curl's own --retry leaves out some of them.
attribute() {
	local until=$((SECONDS + $2)) answer
	while :; do
		if answer=$(curl --silent --noproxy '*' --max-time 20 --header 'Metadata-Flavor: Google' --write-out '\n%{http_code}' "$metadata/instance/attributes/$1"); then
			case ${answer##*$'\n'} in
			200)
				printf '%s' "${answer%$'\n'*}"
				return 0
				;;
			404) return 1 ;;
			esac
		fi
		((SECONDS < until)) || return 2
		sleep 2
	done
}

# Prints fields of a JSON object on stdin, one per line; fails if one is missing or is not a string on one line.
fields() {
	"$python" -I -c '
import json, sys
value = json.load(sys.stdin)
for route in sys.argv[1:]:
    field = value
    for part in route.split("."):
        field = field[part]
    if not isinstance(field, str) or not field.isprintable():
        sys.exit(route + " is not a string on one line")
    print(field)
' "$@"
}

# Percent-encodes its argument, byte by byte.
encoded() {
	local LC_ALL=C text=$1 out='' position character
	for ((position = 0; position < ${#text}; position++)); do
		character=${text:position:1}
		case $character in
		[A-Za-z0-9._~-]) out+=$character ;;
		*)
			printf -v character '%d' "'$character"
			printf -v character '%%%02X' "$((character & 255))"
			out+=$character
			;;
		esac
	done
	printf '%s' "$out"
}

# fetch GS_ADDRESS SHA256 FILE: downloads an object with the instance's own token, which is passed through a pipe, so that no process list and no file
# contains it.
fetch() {
	local address=$1 sha256=$2 file=$3 bucket name token
	if [[ ! $address =~ ^gs://([a-z0-9][a-z0-9._-]+)/(.+)$ ]]; then
		say "not an address of Cloud Storage: $address"
		return 1
	fi
	bucket=${BASH_REMATCH[1]} name=${BASH_REMATCH[2]}
	token=$(metadata_get instance/service-accounts/default/token | fields access_token) || {
		say "the instance has no token: it needs a service account that can read $address"
		return 1
	}
	printf 'header = "Authorization: Bearer %s"\n' "$token" |
		curl --silent --show-error --fail --max-time 300 --retry 5 --retry-connrefused --config - --output "$file.part" \
			"$storage/storage/v1/b/$bucket/o/$(encoded "$name")?alt=media" || {
		say "cannot read $address: the instance's service account needs roles/storage.objectUser on the bucket"
		return 1
	}
	if ! printf '%s  %s\n' "${sha256#sha256:}" "$file.part" | sha256sum --check --strict --status; then
		rm -f "$file.part"
		say "$address does not have the announced sha256 $sha256"
		return 1
	fi
	mv "$file.part" "$file"
}

# Limits the lifetime from the start of the machine, so that a forgotten or hanging instance is powered off. Until the metadata server responds, a background
# process keeps asking for the limit.
arm() {
	local limit status
	limit=$(attribute provision-max-lifetime-seconds "$1")
	status=$?
	if ((status == 2)); then
		say "the metadata server does not respond: reading max_lifetime is retried in the background"
		(trap '' HUP && arm 86400) </dev/null >/dev/null &
	fi
	((status != 0)) || arm_for "$limit"
}

# arm_for SECONDS: powers the machine off after this uptime. Fails if no timer can be set.
arm_for() {
	local limit=$1 up left
	[[ $limit =~ ^[1-9][0-9]{0,8}$ ]] || return 1
	read -r up _ </proc/uptime
	# PROVISION_STARTED: the second of uptime at which this machine started, if that is not 0 (a machine inside a machine).
	left=$((limit - (${up%.*} - ${PROVISION_STARTED:-0})))
	((left >= 1)) || left=1
	mkdir -p /run/provision || return 1
	if [[ -d /run/systemd/system ]] && command -v systemd-run >/dev/null; then
		systemctl stop provision-deadline.timer 2>/dev/null
		systemd-run --quiet --collect --unit=provision-deadline --on-active="${left}s" shutdown -h now && : >"$armed" && return 0
	fi
	[[ ! -s /run/provision/deadline ]] || kill "$(cat /run/provision/deadline)" 2>/dev/null
	(trap '' HUP && sleep "$left" && shutdown -h now) </dev/null >/dev/null 2>&1 &
	printf '%s' "$!" >/run/provision/deadline && : >"$armed"
}

# The document has the limit too: if no timer could be set for it, the machine is powered off.
guard() {
	local limit
	[[ ! -e $armed ]] || return 0
	limit=$("$python" -I -c 'import json, sys; value = json.load(sys.stdin).get("max_lifetime_s"); print(value if type(value) is int else "")' <"$work/document.json")
	[[ -n $limit ]] || return 0
	arm_for "$limit" || {
		say "cannot set a timer for max_lifetime: this instance is powered off"
		phase=deadline unguarded=yes
		return 1
	}
}

# Reports the end if the Python program did not (it was killed, or never started).
finish() {
	local code=$? status
	trap - EXIT
	if ((code != 0)) && [[ -n $nonce && ! -e $work/reported ]]; then
		[[ ! -s $work/phase ]] || phase=$(<"$work/phase")
		status=$(printf '{"n":"%s","s":"error","p":"%s","line":%d,"exit":%d}' "$nonce" "$phase" "$failed_line" "$code")
		curl --silent --fail --noproxy '*' --max-time 20 --retry 3 --request PUT --header 'Metadata-Flavor: Google' --data "$status" \
			"$metadata/instance/guest-attributes/provision/status" >/dev/null || say "cannot write the guest attribute provision/status"
		say "ended in phase $phase, line $failed_line, exit code $code; see $log"
	fi
	[[ -z $unguarded ]] || shutdown -h now
	exit "$code"
}

stop() {
	failed_line=${BASH_LINENO[0]}
	exit "${1:-1}"
}

choose_python() {
	local candidate
	[[ ! -r /etc/profile.d/env.sh ]] || DL_ANACONDA_HOME=$(sed -n 's/^ *export DL_ANACONDA_HOME="\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' /etc/profile.d/env.sh | tail -n 1)
	for candidate in python3 "${DL_ANACONDA_HOME:-/opt/conda}/bin/python3" /opt/conda/bin/python3 /opt/micromamba/bin/python3 \
		/opt/micromamba/envs/*/bin/python3 /opt/conda/envs/*/bin/python3 python3.13 python3.12 python3.11 python3.10; do
		if python=$(command -v "$candidate") && "$python" -I -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
			return 0
		fi
	done
	python=''
	return 1
}

main() {
	local run digest document named
	umask 022
	exec 2>>"$log"
	chmod 600 "$log"
	mkdir -p "$folder"
	printf '== %s provision starts\n' "$(date -u +%FT%TZ)" >&2
	rm -f "$armed"
	arm 60
	exec 9>"$folder/lock"
	if ! flock --nonblock 9; then
		say "another run is already in progress on this instance"
		exit 0
	fi
	trap finish EXIT
	choose_python || {
		say "no Python 3.10 or newer on this image: choose a newer image"
		stop
	}
	run=$(attribute provision-run 600)
	case $? in
	1)
		say "the metadata key provision-run is missing: nothing to do"
		exit 0
		;;
	2)
		say "the metadata server does not respond: cannot read provision-run"
		exit 1
		;;
	esac
	mapfile -t named < <(fields nonce digest document <<<"$run")
	[[ ${#named[@]} == 3 && ${named[0]} =~ ^[A-Za-z0-9_-]{8,128}$ && ${named[1]} =~ ^(sha256:)?[0-9a-f]{64}$ ]] || {
		say "the metadata key provision-run is damaged"
		stop
	}
	nonce=${named[0]} digest=${named[1]} document=${named[2]} work=$folder/runs/${named[0]}
	if [[ -e $work/done ]]; then
		say "run $nonce is already done: nothing to do"
		exit 0
	fi
	mkdir -p "$work"
	rm -f "$work/reported" "$work/phase"
	fetch "$document" "$digest" "$work/document.json" || stop
	guard || stop
	mapfile -t named < <(fields fetch.device.uri fetch.device.sha256 <"$work/document.json")
	[[ ${#named[@]} == 2 && ${named[1]} =~ ^(sha256:)?[0-9a-f]{64}$ ]] || {
		say "the document $document does not name a program"
		stop
	}
	fetch "${named[0]}" "${named[1]}" "$work/device.pyz" || stop
	"$python" -I "$work/device.pyz" run --document "$work/document.json" --work "$work" --nonce "$nonce" \
		--metadata "$metadata" --storage "$storage" --secrets "$secrets" --log "$log" 9>&- || stop $?
}

main "$@"
