#!/usr/bin/env bash
# What an image's 97-run-post-startup-script.sh does with the metadata key post-startup-script: reads it, downloads the object, runs it as root, and says
# DONE whether it worked or not. Written anew from descriptions of that script; behaviour run_once, run_every_start and download_and_run_every_start.
set -u
metadata=http://169.254.169.254/computeMetadata/v1/instance
storage=${PROVISION_STORAGE:-https://storage.googleapis.com}
script=/opt/c2d/post_start.sh

get() {
	curl --silent --fail --noproxy '*' --header 'Metadata-Flavor: Google' "$metadata/$1"
}

address=$(get attributes/post-startup-script) || exit 0
[[ -n $address ]] || exit 0
behavior=$(get attributes/post-startup-script-behavior) || behavior=run_once
if [[ ! -e $script || $behavior == download_and_run_every_start ]]; then
	token=$(get service-accounts/default/token | sed 's/.*"access_token": *"\([^"]*\)".*/\1/')
	path=${address#gs://}
	object=${path#*/}
	curl --silent --show-error --fail --header "Authorization: Bearer $token" --output "$script" \
		"$storage/storage/v1/b/${path%%/*}/o/${object//\//%2F}?alt=media" && chmod 755 "$script"
elif [[ $behavior == run_once ]]; then
	exit 0
fi
[[ ! -x $script ]] || "$script"
curl --silent --noproxy '*' --request PUT --header 'Metadata-Flavor: Google' --data DONE "$metadata/guest-attributes/notebooks/handle_post_startup_script"
