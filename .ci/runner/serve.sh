#!/usr/bin/env bash
# Runs one job: registers a just-in-time runner, runs a single job as the user `kernelgate`, and cleans up. systemd
# restarts it in a loop (kernelgate-runner.service). Only this script, as root, can read the token.
set -euo pipefail

: "${GPU_LABEL:?set it in /etc/kernelgate/runner.conf}" "${REPOSITORIES:?set it in /etc/kernelgate/runner.conf}"
if [[ -z ${ORGANISATION:-}${RUNNER_GROUP_ID:-} && $REPOSITORIES =~ ^[[:alnum:]-]+/[[:alnum:]._-]+$ ]]; then
    # The one repository's own runner. A repository has no groups but the default one.
    RUNNER_GROUP_ID=1 owner="repos/$REPOSITORIES"
    faults="REPOSITORIES; 422: GPU_LABEL"
else
    : "${ORGANISATION:?set it in /etc/kernelgate/runner.conf, unless REPOSITORIES is the one repository of a person}"
    : "${RUNNER_GROUP_ID:?set it in /etc/kernelgate/runner.conf}"
    owner="orgs/$ORGANISATION"
    faults="ORGANISATION; 422: RUNNER_GROUP_ID"
fi
job=/var/lib/kernelgate/job
host=$(hostname -s)
name="kernelgate-$GPU_LABEL-${host:0:24}-$(date +%s)"

# systemd restarts this script after a few seconds. A fix takes longer, and GitHub lists each runner that registers and
# never connects for a day. So wait before failing.
give_up() {
    echo "serve.sh: $1" >&2
    sleep 60
    exit 1
}

# A spot machine's cloud says that it takes the machine away: Google by TRUE, Amazon by an action. A job cannot reach who
# says so. kernelgate gets SIGTERM, finishes what it times if it can, and the job hands over what there is.
watch_for_notice() {
    local from=${METADATA:-http://169.254.169.254} token
    ask() { command -p curl --fail --silent --max-time 2 "$@"; }
    until [[ $(ask --header "Metadata-Flavor: Google" "$from/computeMetadata/v1/instance/preempted") == TRUE ]] ||
        { token=$(ask --request PUT --header "X-aws-ec2-metadata-token-ttl-seconds: 60" "$from/latest/api/token") &&
            ask --header "X-aws-ec2-metadata-token: $token" "$from/latest/meta-data/spot/instance-action" >/dev/null; }; do
        command -p sleep 5
    done
    pkill --signal TERM --uid kernelgate --full "/bin/kernelgate "
}

clean_up() {
    [[ -z ${watching:-} ]] || kill "$watching" 2>/dev/null || true
    systemctl stop kernelgate-job.service 2>/dev/null || true
    rm -rf "$job"
}
trap clean_up EXIT
clean_up

timeout 60 nvidia-smi --persistence-mode=1 >/dev/null || give_up "the GPU does not answer: see nvidia-smi"
if [[ -n ${SM_MHZ:-} ]]; then
    timeout 60 nvidia-smi --lock-gpu-clocks="$SM_MHZ,$SM_MHZ" >/dev/null ||
        give_up "the GPU's clock cannot be held at SM_MHZ=$SM_MHZ: see nvidia-smi --query-supported-clocks=gr --format=csv"
fi

install -d "$job"
cp -a /opt/kernelgate/actions-runner "$job/runner"

# This shell reads the token, and curl reads the header from a file descriptor: no command line contains the token.
answer=$(
    curl --fail --silent --show-error --connect-timeout 10 --max-time 60 --request POST \
        --header @<(printf 'Authorization: Bearer %s\n' "$(<"$CREDENTIALS_DIRECTORY/token")") \
        --header "Accept: application/vnd.github+json" \
        --data "{\"name\": \"$name\", \"runner_group_id\": $RUNNER_GROUP_ID, \"work_folder\": \"_work\",
                 \"labels\": [\"self-hosted\", \"linux\", \"x64\", \"gpu\", \"$GPU_LABEL\"]}" \
        "https://api.github.com/$owner/actions/runners/generate-jitconfig"
) || give_up "GitHub registered no runner. 401: the token; 403 or 404: its rights, or $faults"

# The folder belongs to root until it is complete, so that no other process can tamper with what root writes. The
# configuration is valid for one job and useless afterwards.
umask 077
python3 -c 'import json, sys; print(json.load(sys.stdin)["encoded_jit_config"], end="")' \
    <<<"$answer" >"$job/runner/.jit" 2>/dev/null || give_up "GitHub's answer holds no configuration of a runner"
chown -R kernelgate:kernelgate "$job"

watch_for_notice >/dev/null 2>&1 &
watching=$!

# All processes of the job run in this unit and end with it. The unit has no home, cannot gain privileges, writes only
# to the job's folder and a private /tmp, leaves no shared memory, and cannot reach the cloud's metadata service, which
# provides the machine's credentials. The runner reads its configuration from the environment and removes it there.
# shellcheck disable=SC2016 # the configuration is read inside the unit
systemd-run --wait --collect --quiet --pipe --unit=kernelgate-job \
    --uid=kernelgate --gid=kernelgate --working-directory="$job/runner" \
    --property=NoNewPrivileges=yes --property=ProtectSystem=strict --property=ProtectHome=yes \
    --property=PrivateTmp=yes --property=RemoveIPC=yes --property=ReadWritePaths="$job" \
    --property=IPAddressDeny="169.254.0.0/16 fd00:ec2::254 fd20:ce::254" --property=RuntimeMaxSec=20h \
    --setenv=HOME="$job" --setenv=PIP_FIND_LINKS=/opt/kernelgate/wheels \
    --setenv=KERNELGATE_REPOSITORIES="$REPOSITORIES" \
    --setenv=ACTIONS_RUNNER_HOOK_JOB_STARTED=/opt/kernelgate/job-started.sh \
    --setenv=ACTIONS_RUNNER_HOOK_JOB_COMPLETED=/opt/kernelgate/job-completed.sh \
    /bin/bash -c 'ACTIONS_RUNNER_INPUT_JITCONFIG=$(<.jit) exec ./run.sh' ||
    echo "serve.sh: the job's unit ended with $?" >&2

((SECONDS >= 60)) || give_up "the runner ended after $SECONDS s, too soon for a job: what it said stands above"
