#!/bin/bash
# Run a command with a separate Docker engine, as root, without network rules; nothing of it is
# left afterwards. For machines (and CI) on which Docker is installed but not running.
#
#   integration/with-docker.sh COMMAND...
set -euo pipefail

home=$(mktemp -d)
export DOCKER_HOST="unix://$home/docker.sock"
export TESTCONTAINERS_RYUK_DISABLED=true  # its image cannot be pulled, and the engine goes anyway

dockerd --host "$DOCKER_HOST" --data-root "$home/data" --exec-root "$home/exec" \
    --pidfile "$home/docker.pid" --iptables=false --bridge=none > "$home/log" 2>&1 &
engine=$!
finish() {
    docker ps --all --quiet | xargs --no-run-if-empty docker rm --force --volumes > /dev/null || true
    kill "$engine" && wait "$engine" || true
    umount "$home"/exec/netns/* 2> /dev/null || true  # dockerd leaves the host's one mounted
    rm -rf "$home"
}
trap finish EXIT

until docker info > /dev/null 2>&1; do
    kill -0 "$engine" 2> /dev/null || { tail -20 "$home/log"; exit 1; }
    sleep 0.2
done
"$@"
