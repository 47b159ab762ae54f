#!/bin/sh
# Make the repository of the package schedules in a folder, as a team's server would have it.
# Usage: sh make_repository.sh FOLDER
# git then finds it at the address in spec.yaml, by the configuration that is printed at the end.
set -eu
source=$(cd "$(dirname "$0")/dependency" && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
cp -R "$source" "$folder/schedules"
cd "$folder/schedules"
git init --quiet
git add .
git -c user.name=example -c user.email=example@example.com commit --quiet -m "Learning rates"
git tag v1.0
git clone --quiet --bare . "$folder/team/schedules.git"
echo "git config --global url.file://$folder/.insteadOf https://git.example.com/"
