#!/usr/bin/env bash
# Installs the servers the tests need from Debian's packages: PostgreSQL, Redis, NATS. Run as root.
#
# Only the programs are wanted: no server is started, none is set to start at boot, no database cluster is made, and
# packages that are installed already are left as they are. Tests start private servers of their own.
#
# Exit codes: 0 everything is there, 1 the installation failed, 2 not root or not a Debian.
set -euo pipefail

POLICY=/usr/sbin/policy-rc.d
CLUSTER_POLICY=/etc/postgresql-common/createcluster.d/colloquy-test.conf
MADE=()

die() {
    printf 'install-test-servers: %s\n' "$1" >&2
    exit "${2:-1}"
}

# shellcheck disable=SC2329  # a trap calls it
clear_up() {
    if ((${#MADE[@]})); then rm -f "${MADE[@]}"; fi
}

installed() { [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

# While packages are configured, the answer to "may this service start?" is no.
forbid_starts() {
    export RUNLEVEL=1
    if [[ ! -e $POLICY ]]; then
        MADE+=("$POLICY")
        printf '#!/bin/sh\nexit 101\n' >"$POLICY"
        chmod 755 "$POLICY"
    fi
    if [[ ! -e $CLUSTER_POLICY ]]; then
        MADE+=("$CLUSTER_POLICY")
        mkdir -p "${CLUSTER_POLICY%/*}"
        printf 'create_main_cluster = false\n' >"$CLUSTER_POLICY"
    fi
}

keep_off_at_boot() {
    command -v systemctl >/dev/null || return 0
    # Without a running systemd there is nothing to disable.
    systemctl disable "$@" >/dev/null 2>&1 || true
}

main() {
    local package wanted=()
    [[ $(id -u) == 0 ]] || die "must be root:  sudo $0" 2
    command -v apt-get >/dev/null || die "needs apt-get; install postgresql, redis and nats-server by hand" 2
    for package in postgresql redis-server nats-server; do
        installed "$package" || wanted+=("$package")
    done
    if ((${#wanted[@]} == 0)); then
        printf 'installed already: postgresql redis-server nats-server\n'
        return 0
    fi
    printf 'installing: %s\n' "${wanted[*]}"
    trap clear_up EXIT
    forbid_starts
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq || die "apt-get update failed"
    apt-get install -y -qq --no-install-recommends "${wanted[@]}" || die "apt-get install failed"
    keep_off_at_boot "${wanted[@]}"
}

main "$@"
