#!/bin/sh
# An nvidia-smi that answers what FAKE_SMI says, as "field=value;field=value"; "{i}" in a value is the number of the card. FAKE_SMI_EXIT ends it as a driver that does not answer does.
[ -z "$FAKE_SMI_EXIT" ] || exit "$FAKE_SMI_EXIT"
fields=$(printf '%s' "$1" | sed 's/^--query-gpu=//; s/,/ /g')
row=
for field in $fields; do
	case ";$FAKE_SMI;" in
	*";$field="*) ;;
	*)
		echo "Field \"$field\" is not a valid field to query."
		exit 2
		;;
	esac
	value=$(printf '%s' ";$FAKE_SMI" | tr ';' '\n' | sed -n "s/^$field=//p")
	row="$row${row:+, }$value"
done
i=0
while [ "$i" -lt "${FAKE_SMI_COUNT:-1}" ]; do
	echo "$row" | sed "s/{i}/$i/g"
	i=$((i + 1))
done
