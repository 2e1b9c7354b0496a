#!/bin/sh
# Replaces the files of uPlot by those of another version from the npm registry: sh refresh.sh VERSION
set -eu
[ $# -eq 1 ] || { echo "usage: $0 VERSION" >&2; exit 2; }
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
(cd -- "$folder" && npm pack --silent "uplot@$1" && tar xzf "uplot-$1.tgz")
cp -- "$folder/package/dist/uPlot.iife.min.js" "$folder/package/dist/uPlot.min.css" "$folder/package/LICENSE" "$here/"
