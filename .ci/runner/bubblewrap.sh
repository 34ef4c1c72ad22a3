#!/usr/bin/env bash
# Installs bubblewrap, with which kernelgate keeps a pull request's code apart, and lets it make user namespaces, which
# Ubuntu grants only to a program whose profile says so. Exits with 1 where it cannot be installed.
set -euo pipefail

if ! apt-get install --yes --quiet bubblewrap; then
    apt-get update --quiet
    apt-get install --yes --quiet bubblewrap
fi
if [[ -e /proc/sys/kernel/apparmor_restrict_unprivileged_userns && ! -e /etc/apparmor.d/bwrap-userns-restrict ]]; then
    printf '%s\n' 'abi <abi/4.0>,' 'include <tunables/global>' \
        'profile kernelgate-bwrap /usr/bin/bwrap flags=(unconfined) {' '  userns,' '}' >/etc/apparmor.d/kernelgate-bwrap
    apparmor_parser --replace /etc/apparmor.d/kernelgate-bwrap
fi
