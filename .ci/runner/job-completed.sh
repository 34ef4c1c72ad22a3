#!/usr/bin/env bash
# The runner calls this after a job's last step. It ends processes that the job left on the GPU and empties its
# workspace. serve.sh removes the job's systemd unit and folder, even if this script fails.
set -euo pipefail

left=$(timeout 30 nvidia-smi --query-compute-apps=pid --format=csv,noheader || true)
for process in $left; do
    if [[ $(stat --format %u "/proc/$process" 2>/dev/null) == "$EUID" ]]; then
        echo "::warning title=kernelgate::The job left process $process on the GPU; it is ended now."
        kill -KILL "$process" || true
    fi
done

if [[ -n ${GITHUB_WORKSPACE:-} && -d $GITHUB_WORKSPACE ]]; then
    find "$GITHUB_WORKSPACE" -mindepth 1 -delete
fi
