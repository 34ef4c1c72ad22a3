#!/usr/bin/env bash
# Sets up a bare machine with an NVIDIA GPU as a kernelgate runner; docs/runner.md explains each step.
#
#     sudo .ci/runner/prepare.sh RUNNER_VERSION RUNNER_SHA256
#
# https://github.com/actions/runner/releases lists versions and checksums. Run this script again to update.
set -euo pipefail

version=${1:?give the version of actions/runner, such as 2.338.1}
version=${version#v}
checksum=${2:?give the sha256 of actions-runner-linux-x64-VERSION.tar.gz}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
runner=/opt/kernelgate/actions-runner

if [[ $(id -u) -ne 0 ]]; then
    echo "prepare.sh: run this with sudo" >&2
    exit 1
fi

# Download and verify first, so that a wrong download changes nothing.
archive=$(mktemp)
trap 'rm -f "$archive"' EXIT
curl --fail --silent --show-error --location --output "$archive" \
    "https://github.com/actions/runner/releases/download/v$version/actions-runner-linux-x64-$version.tar.gz" || {
    echo "prepare.sh: version $version could not be downloaded" >&2
    exit 1
}
echo "$checksum  $archive" | sha256sum --check --status || {
    echo "prepare.sh: the download does not have the checksum $checksum" >&2
    exit 1
}

# The user that jobs run as: no password, no sudo, no persistent home.
if ! id kernelgate >/dev/null 2>&1; then
    useradd --system --user-group --no-create-home --shell /usr/sbin/nologin kernelgate
fi

# ncu reads the hardware counters; without this setting only root may. It takes effect when the driver is reloaded.
counters=/etc/modprobe.d/kernelgate.conf
wanted="options nvidia NVreg_RestrictProfilingToAdminUsers=0"
if [[ ! -e $counters || $(<"$counters") != "$wanted" ]]; then
    echo "$wanted" >"$counters"
    update-initramfs -u
    echo "prepare.sh: restart the machine, so that the driver opens its counters"
fi

# A kernel's process is kept apart from the runner by bubblewrap.
if ! "$here/bubblewrap.sh"; then
    echo "prepare.sh: bubblewrap could not be installed; kernels will have all rights of the user kernelgate" >&2
fi

# The runner program is read-only; each job gets a copy. The old version is kept until the new one is complete.
rm -rf "$runner.new"
install -d "$runner.new" /etc/kernelgate
tar --extract --gzip --file "$archive" --directory "$runner.new" --no-same-owner
"$runner.new/bin/installdependencies.sh"
rm -rf "$runner"
mv "$runner.new" "$runner"

install -m 0755 "$here/serve.sh" "$here/job-started.sh" "$here/job-completed.sh" /opt/kernelgate/
install -m 0644 "$here/kernelgate-runner.service" /etc/systemd/system/
if [[ ! -e /etc/kernelgate/runner.conf ]]; then
    install -m 0644 "$here/runner.conf" /etc/kernelgate/
    echo "prepare.sh: fill in /etc/kernelgate/runner.conf"
fi
if [[ ! -s /etc/kernelgate/token ]]; then
    install -m 0600 /dev/null /etc/kernelgate/token
    echo "prepare.sh: put a token that may register runners into /etc/kernelgate/token"
fi
chmod 0600 /etc/kernelgate/token
systemctl daemon-reload
echo "prepare.sh: done; start it with: systemctl enable --now kernelgate-runner"
