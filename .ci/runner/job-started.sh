#!/usr/bin/env bash
# The runner calls this before a job's first step. If the exit code is not 0, the job fails without running.
set -euo pipefail

refuse() {
    echo "::error title=kernelgate::This runner does not take the job: $1"
    exit 1
}

case " ${KERNELGATE_REPOSITORIES:-} " in
*" ${GITHUB_REPOSITORY:-none} "*) ;;
*) refuse "${GITHUB_REPOSITORY:-the repository} is not one that it serves" ;;
esac

# A job has the first GPU alone (docs/runner.md); what runs on another one is no reason to refuse it.
busy=$(timeout 30 nvidia-smi --query-compute-apps=pid --format=csv,noheader --id=0) ||
    refuse "nvidia-smi does not answer; a person must look at the machine"
[[ -z $busy ]] || refuse "another process is on the GPU: ${busy//$'\n'/ }"

timeout 30 nvidia-smi --query-gpu=name,driver_version,temperature.gpu,clocks.sm,power.draw --format=csv,noheader --id=0
