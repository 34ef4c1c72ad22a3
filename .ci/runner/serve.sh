#!/usr/bin/env bash
# One job: registers a just-in-time runner, lets it do a single job as the user `kernelgate`, and removes what is left.
# systemd starts it again and again (kernelgate-runner.service). Only this script, as root, ever sees the token.
set -euo pipefail

: "${ORGANISATION:?set it in /etc/kernelgate/runner.conf}" "${RUNNER_GROUP_ID:?}" "${GPU_LABEL:?}" "${REPOSITORIES:?}"
job=/var/lib/kernelgate/job
name="kernelgate-$GPU_LABEL-$(hostname -s)-$(date +%s)"

nvidia-smi --persistence-mode=1 >/dev/null
if [[ -n ${SM_MHZ:-} ]]; then
    nvidia-smi --lock-gpu-clocks="$SM_MHZ,$SM_MHZ" >/dev/null
fi

rm -rf "$job"
install -d -o kernelgate -g kernelgate "$job"
cp -a /opt/kernelgate/actions-runner "$job/runner"
chown -R kernelgate:kernelgate "$job/runner"

# The configuration admits one job, so it is worth nothing to whoever finds it afterwards.
umask 077
curl --fail --silent --show-error --request POST \
    --header @<(printf 'Authorization: Bearer %s\n' "$(<"$CREDENTIALS_DIRECTORY/token")") \
    --header "Accept: application/vnd.github+json" \
    --data "{\"name\": \"$name\", \"runner_group_id\": $RUNNER_GROUP_ID, \"work_folder\": \"_work\",
             \"labels\": [\"self-hosted\", \"linux\", \"x64\", \"gpu\", \"$GPU_LABEL\"]}" \
    "https://api.github.com/orgs/$ORGANISATION/actions/runners/generate-jitconfig" |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["encoded_jit_config"], end="")' >"$job/runner/.jit"
chown kernelgate:kernelgate "$job/runner/.jit"

# Everything that the job starts lives in this unit and dies with it. It sees no home, cannot gain rights, writes only
# to its own folder, and does not reach the cloud's metadata service, which hands out the machine's credentials.
# shellcheck disable=SC2016 # the configuration is read inside the unit
systemd-run --wait --collect --quiet --pipe --unit=kernelgate-job \
    --uid=kernelgate --gid=kernelgate --working-directory="$job/runner" \
    --property=NoNewPrivileges=yes --property=ProtectSystem=strict --property=ProtectHome=yes \
    --property=PrivateTmp=yes --property=ReadWritePaths="$job" \
    --property=IPAddressDeny=169.254.169.254 --property=RuntimeMaxSec=20h \
    --setenv=HOME="$job" --setenv=PIP_FIND_LINKS=/opt/kernelgate/wheels \
    --setenv=KERNELGATE_REPOSITORIES="$REPOSITORIES" \
    --setenv=ACTIONS_RUNNER_HOOK_JOB_STARTED=/opt/kernelgate/job-started.sh \
    --setenv=ACTIONS_RUNNER_HOOK_JOB_COMPLETED=/opt/kernelgate/job-completed.sh \
    /bin/bash -c './run.sh --disableupdate --jitconfig "$(<.jit)"' || echo "serve.sh: the job's unit ended with $?" >&2

rm -rf "$job"
