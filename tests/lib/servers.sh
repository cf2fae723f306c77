# shellcheck shell=bash
# Private Postgres, Redis and NATS servers for tests; sourced by `tests/run` and `tests/lib/server`.
#
# Each server is a folder under $SERVERS_ROOT: kind, port, url, pid, log, data. It listens on 127.0.0.1 on a free port
# that is its own for as long as the folder is there, so a restart is found under the same URL. Started by root, the
# servers run as user `postgres`: Postgres refuses root, and the others need no rights either.
#
# To add a kind: launch_KIND, url_KIND, ready_KIND, its binary in `missing_servers`.

SERVERS_USER=postgres
READY_LIMIT_S=60
STOP_LIMIT_S=10
# Set by an owner that outlives its servers: they then die with it, whatever ends it.
SERVERS_DIE_WITH_PARENT=

is_root() { [[ $(id -u) == 0 ]]; }

# Debian keeps servers in /usr/sbin, which is not in everybody's PATH.
find_binary() { PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin" command -v "$1"; }

postgres_bin() {
    local found
    found=$(printf '%s\n' "${PG_BIN:+$PG_BIN/postgres}" /usr/lib/postgresql/*/bin/postgres | sort -V |
        while read -r path; do [[ -x $path ]] && printf '%s\n' "${path%/postgres}"; done | tail -n 1)
    if [[ -n ${PG_BIN:-} ]]; then found=$PG_BIN; fi
    if [[ -z $found ]] && found=$(find_binary postgres); then found=${found%/postgres}; fi
    [[ -x $found/initdb ]] && printf '%s\n' "$found"
}

nats_bin() { find_binary "${NATS_SERVER_BIN:-nats-server}"; }

# Prints the kinds that cannot be started here.
missing_servers() {
    postgres_bin >/dev/null || printf 'postgresql\n'
    find_binary redis-server >/dev/null || printf 'redis-server\n'
    nats_bin >/dev/null || printf 'nats-server\n'
}

# A folder the servers' user can enter, short enough for the path of a socket (107 bytes).
make_root() {
    local base=${TMPDIR:-/tmp} probe=() root
    is_root && probe=(setpriv "--reuid=$SERVERS_USER" "--regid=$SERVERS_USER" --init-groups)
    if ((${#base} > 60)) || ! "${probe[@]}" test -x "$base"; then base=/tmp; fi
    root=$(mktemp -d "$base/colloquy-test.XXXXXX") && chmod 711 "$root" && printf '%s\n' "$root"
}

free_port() {
    local port
    while :; do
        # Below the range from which the system gives ports to outgoing connections.
        port=$((RANDOM % 12000 + 20000))
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
    done
    printf '%s\n' "$port"
}

as_servers_user() {
    if is_root; then
        setpriv "--reuid=$SERVERS_USER" "--regid=$SERVERS_USER" --init-groups -- "$@"
    else
        "$@"
    fi
}

# launch HOME COMMAND…: in the background, so that the written pid is the server's own and no wrapper's.
launch() {
    local home=$1 guard=()
    shift
    if [[ -n $SERVERS_DIE_WITH_PARENT ]]; then guard+=(--pdeathsig KILL); fi
    if is_root; then guard+=("--reuid=$SERVERS_USER" "--regid=$SERVERS_USER" --init-groups); fi
    if ((${#guard[@]})); then guard=(setpriv "${guard[@]}" --); fi
    # Of a session of its own: Ctrl-C in a terminal must not reach it before the tests have ended.
    (cd "$home" && exec setsid "${guard[@]}" env LC_ALL=C "$@" </dev/null >>"$home/log" 2>&1) &
    printf '%s\n' "$!" >"$home/pid"
    # Not a job of this shell any more, which would report its death.
    disown "$!"
}

launch_pg() {
    local home=$1 port=$2 bin
    bin=$(postgres_bin)
    [[ -e $home/data/PG_VERSION ]] || create_cluster "$home" "$bin" || return 1
    # The log of writes stays complete (synchronous_commit, full_page_writes): a killed server must keep what it
    # acknowledged. Only the wait for the disk is spared, which no killed process needs.
    launch "$home" "$bin/postgres" -D "$home/data" -p "$port" -c listen_addresses=127.0.0.1 \
        -c "unix_socket_directories=$home" -c fsync=off -c max_connections=400 -c shared_buffers=128MB \
        -c dynamic_shared_memory_type=mmap -c autovacuum_naptime=10s
}

create_cluster() {
    local home=$1 bin=$2
    (umask 077 && od -An -N16 -tx1 /dev/urandom | tr -d ' \n' >"$home/password")
    if is_root; then chown "$SERVERS_USER" "$home/password"; fi
    local options=(-D "$home/data" -U postgres --auth=scram-sha-256 "--pwfile=$home/password" --no-sync -E UTF8)
    (cd "$home" && as_servers_user "$bin/initdb" "${options[@]}" --locale=C.UTF-8 >>"$home/log" 2>&1) ||
        (cd "$home" && as_servers_user "$bin/initdb" "${options[@]}" --locale=C >>"$home/log" 2>&1)
}

url_pg() { printf 'postgres://postgres:%s@127.0.0.1:%s/postgres\n' "$(cat "$1/password")" "$2"; }
ready_pg() { grep -q 'database system is ready to accept connections' "$1/log"; }

launch_redis() {
    launch "$1" "$(find_binary redis-server)" --port "$2" --bind 127.0.0.1 --save '' --appendonly no --dir "$1/data"
}
url_redis() { printf 'redis://127.0.0.1:%s\n' "$2"; }
ready_redis() { grep -q 'Ready to accept connections' "$1/log"; }

launch_nats() { launch "$1" "$(nats_bin)" -js -a 127.0.0.1 -p "$2" -sd "$1/data"; }
url_nats() { printf 'nats://127.0.0.1:%s\n' "$2"; }
ready_nats() { grep -q 'Server is ready' "$1/log"; }

alive() {
    local stat
    { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
    stat=${stat##*) }
    [[ $stat != Z* ]]
}

children() {
    local file stat ppid
    for file in /proc/[0-9]*/stat; do
        { read -r stat <"$file"; } 2>/dev/null || continue
        read -r _ ppid _ <<<"${stat##*) }"
        if [[ $ppid == "$1" ]]; then
            file=${file#/proc/}
            printf '%s\n' "${file%/stat}"
        fi
    done
}

# start_server KIND NAME: starts it, or starts it again with its data and port, and waits until it serves.
start_server() {
    local kind=$1 home=$SERVERS_ROOT/$2 try port
    if [[ -e $home/pid ]] && alive "$(cat "$home/pid")"; then return 0; fi
    mkdir -p "$home" && printf '%s\n' "$kind" >"$home/kind"
    # Postgres makes its own folder.
    [[ $kind == pg ]] || mkdir -p "$home/data"
    if is_root; then chown -R "$SERVERS_USER:$SERVERS_USER" "$home"; fi
    for try in 1 2 3 4 5; do
        port=$(cat "$home/port" 2>/dev/null) || port=$(free_port)
        if [[ -e $home/log ]]; then cat "$home/log" >>"$home/log.before"; fi
        : >"$home/log"
        "launch_$kind" "$home" "$port" || break
        if await_ready "$kind" "$home"; then
            printf '%s\n' "$port" >"$home/port"
            "url_$kind" "$home" "$port" >"$home/url"
            return 0
        fi
        # Most likely somebody was faster to take the port.
        sleep "0.$try"
    done
    printf '%s does not start:\n' "$kind" >&2
    tail -n 20 "$home/log" >&2
    return 1
}

await_ready() {
    local kind=$1 home=$2 pid end=$((SECONDS + READY_LIMIT_S))
    pid=$(cat "$home/pid")
    while ((SECONDS < end)); do
        if "ready_$kind" "$home"; then return 0; fi
        alive "$pid" || return 1
        sleep 0.05
    done
    kill_server "${home##*/}"
    return 1
}

await_gone() {
    local limit=$1 pid end
    end=$((SECONDS + limit))
    shift
    for pid in "$@"; do
        while alive "$pid"; do
            ((SECONDS < end)) || return 1
            sleep 0.05
        done
    done
}

# kill_server NAME: as by a power cut; nothing of it runs when this returns.
kill_server() {
    local home=$SERVERS_ROOT/$1 pid family
    pid=$(cat "$home/pid" 2>/dev/null) || return 0
    if alive "$pid"; then
        # Stopped first, it starts no more children. A child of Postgres that survived would block its restart.
        kill -STOP "$pid" 2>/dev/null
        mapfile -t family < <(children "$pid")
        kill -KILL "$pid" "${family[@]}" 2>/dev/null
        await_gone "$STOP_LIMIT_S" "$pid" "${family[@]}" || return 1
    fi
    rm -f "$home/pid" "$home/data/postmaster.pid"
}

# stop_server NAME: in order, within bounds.
stop_server() {
    local home=$SERVERS_ROOT/$1 pid signal=TERM
    pid=$(cat "$home/pid" 2>/dev/null) || return 0
    [[ $(cat "$home/kind") == pg ]] && signal=INT
    kill "-$signal" "$pid" 2>/dev/null
    # A stopped process takes no other signal.
    kill -CONT "$pid" 2>/dev/null
    await_gone "$STOP_LIMIT_S" "$pid"
    kill_server "$1"
}

# wipe_server NAME: empties a stopped server.
wipe_server() {
    local home=$SERVERS_ROOT/$1
    if [[ -e $home/pid ]] && alive "$(cat "$home/pid")"; then
        printf '%s runs; stop it first\n' "$1" >&2
        return 1
    fi
    rm -rf "${home:?}/data"
}

# Ends every server under the root, and the root.
servers_down() {
    local pid_file
    [[ -n ${SERVERS_ROOT:-} && -d $SERVERS_ROOT ]] || return 0
    for pid_file in "$SERVERS_ROOT"/*/pid; do
        [[ -e $pid_file ]] || continue
        pid_file=${pid_file%/pid}
        kill_server "${pid_file##*/}"
    done
    rm -rf "${SERVERS_ROOT:?}"
}
