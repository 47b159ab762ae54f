#!/usr/bin/env bash
# Stands in for nvidia-smi on a machine of the sandbox: tells the cards that /etc/provision-sandbox/cards lists, one name a line. No card is there.
set -u
mapfile -t cards </etc/provision-sandbox/cards
driver=580.95.05
fields=''
for word in "$@"; do
	case $word in
	--query-gpu=*) IFS=, read -r -a fields <<<"${word#*=}" ;;
	esac
done
for place in "${!cards[@]}"; do
	if [[ -z ${fields[0]} ]]; then
		printf 'GPU %d: %s (UUID: GPU-00000000-0000-0000-0000-%012d)\n' "$place" "${cards[place]}" "$place"
		continue
	fi
	line=''
	for field in "${fields[@]}"; do
		case $field in
		name | gpu_name) value=${cards[place]} ;;
		driver_version) value=$driver ;;
		index) value=$place ;;
		*) value='[N/A]' ;;
		esac
		line+="${line:+, }$value"
	done
	printf '%s\n' "$line"
done
