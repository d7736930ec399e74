#!/usr/bin/env bash
# Shows memlane doing its main job in a throwaway folder. `make demo` runs it.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export HOME="$folder/home" NO_COLOR=1
mkdir -p "$HOME" project/src && cd project

say() { printf '\n# %s\n' "$1"; }
run() {
  printf '$'
  for word in "$@"; do case $word in *' '*) printf ' "%s"' "$word" ;; *) printf ' %s' "$word" ;; esac; done
  printf '\n'
  "$@" 2>&1 || printf '(exit code %s)\n' "$?"
}

say "A project becomes a bank of plain files."
run memlane init

say "Remember something. It is on the disk when the command returns."
run memlane add "Deploys go out on Tuesdays, never before a holiday." --title "Deploy day" --tag release
say "It is a Markdown file that you can read, edit and commit."
run cat .memories/deploy-day.md

say "Short facts go to the vault: one JSON line each, guarded against noise and near-duplicates."
run memlane vault add "The mission is to keep the runtime stable." --category mission
run memlane vault add "Our mission: keep the runtime stable" --category mission

say "What went wrong and how it was fixed goes to a topic; the newest entry comes first."
run memlane topics store auth/oauth2 --title "Refresh fails" --problem "Sessions end after an hour." --solution "Use sliding expiry."

say "A secret never reaches the disk, whichever way it comes in."
fake="ghp_$(printf 'R4nd0mV4lue%.0s' 1 2 3)abc"
printf '$ memlane add "Deploy with ghp_…"\n'
memlane add "Deploy with $fake" 2>&1 || printf '(exit code %s)\n' "$?"

say "Any subfolder sees the same bank, the newest first."
cd src
run memlane list

say "Find it again in other words; no model is downloaded and no server runs."
run memlane search "when is the release?" -n 1

say "Nothing is deleted without a way back."
run memlane rm notes:deploy-day
run memlane restore notes:deploy-day

say "Damage in one file is reported and hides nothing else."
printf -- '---\ntags: [unfinished\n---\nStill readable.\n' > ../.memories/damaged.md
run memlane doctor --only damage
run memlane get damaged

say "That was all: the folder is gone now. Start your own with: memlane init"
