#!/bin/sh
# Reads the tables of facts again, with what is generated from them, and writes the text of a pull request to .cache/refresh.md: the rows that changed, the
# golden findings that changed, and what could not be read. TABLES names some of the scripts; REF is what the rows are compared with.
set -u
bin=$1
tables=${TABLES:-torch transformers packages cuda cuda_wheels numpy source_only tensorflow jax models windows vertex}
old=$(mktemp -d) || exit 2
trap 'rm -rf "$old"' EXIT
git archive "${REF:-HEAD}" src/provision/facts | tar -x -C "$old" || exit 2
mkdir -p .cache
text=.cache/refresh.md

# Prints at most 200 lines of a file between fences, with how many were left out.
fenced() {
	printf '```%s\n' "$2"
	head -n 200 "$1"
	printf '```\n'
	lines=$(wc -l <"$1")
	[ "$lines" -le 200 ] || printf '%s more lines are in the change itself.\n' "$((lines - 200))"
}

: >"$old/unread"
for table in $tables; do
	"$bin/python" "support/remake_$table.py" --write >"$old/out" 2>"$old/err"
	case $? in
		0) ;;
		1) grep '^MISSING' "$old/out" | sed 's/^MISSING: /- /' >>"$old/unread" ;;
		*) printf -- '- %s: %s\n' "$table" "$(tail -n 1 "$old/err")" >>"$old/unread" ;;
	esac
	tail -n 1 "$old/err"
done
"$bin/python" support/compile_facts.py && "$bin/python" support/render_docs.py || exit 2
UPDATE_GOLDEN=1 "$bin/python" -m pytest -q tests/test_golden.py >"$old/golden" 2>&1 || {
	tail -n 20 "$old/golden" >&2
	printf -- '- the golden findings could not be written again\n' >>"$old/unread"
}
"$bin/provision" facts diff "$old/src/provision/facts/compiled.json" >"$old/all" || exit 2
# A row that was read again and is the same has a new date only.
grep -v ': as_of$' "$old/all" >"$old/rows"
git diff -U0 -- tests/golden >"$old/findings"

{
	printf 'The tables that scripts read, read again on %s.\n\n## Rows\n\n' "$(date -u +%F)"
	if [ -s "$old/rows" ]; then fenced "$old/rows" diff; else printf 'None changed.\n'; fi
	printf '\n## Golden findings\n\n'
	if [ -s "$old/findings" ]; then fenced "$old/findings" diff; else printf 'None changed.\n'; fi
	if [ -s "$old/unread" ]; then
		printf '\n## Not read\n\n'
		cat "$old/unread"
	fi
} >"$text"
cat "$text"
