# shellcheck shell=bash
# Named parts of a run, each timed, with one summary at the end; sourced by `tests/run` and `.ci/run`.
#
# A part's command runs in a session of its own, so that an interrupted run can end the whole of it (cargo does not
# pass signals on to the tests it started). The caller sets its traps and calls `end_command` in them.

declare -a PART_LINES=()
PART_FAILED=0
PART_BEGIN=$SECONDS
COMMAND_PID=
# Where the running command's pid is written for others to see, if set.
COMMAND_FILE=

minutes() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

say() { printf '== %s\n' "$*"; }

# run_command COMMAND…: runs it, gives its exit code, and can be interrupted by this shell's traps meanwhile.
run_command() {
    local prefix=()
    # A background command of a script ignores SIGINT, and so would all its children.
    if env --default-signal=INT true 2>/dev/null; then prefix+=(env "--default-signal=INT,QUIT"); fi
    if command -v setpriv >/dev/null; then prefix+=(setpriv --pdeathsig TERM --); fi
    # A person's terminal stays attached: a session of its own could not prompt there.
    if [[ ! -t 0 ]] && command -v setsid >/dev/null; then prefix=(setsid "${prefix[@]}"); fi
    "${prefix[@]}" "$@" <&0 &
    COMMAND_PID=$!
    if [[ -n $COMMAND_FILE ]]; then printf '%s\n' "$COMMAND_PID" >"$COMMAND_FILE"; fi
    local code=0
    wait "$COMMAND_PID" || code=$?
    COMMAND_PID=
    return "$code"
}

# Ends what `run_command` runs, if anything: asked first, forced after 20 s.
end_command() {
    local pid=$COMMAND_PID target=$COMMAND_PID step
    [[ -n $pid ]] || return 0
    COMMAND_PID=
    if kill -0 -- "-$pid" 2>/dev/null; then target=-$pid; fi
    kill -TERM -- "$target" 2>/dev/null
    for ((step = 0; step < 200; step++)); do
        kill -0 -- "$target" 2>/dev/null || return 0
        sleep 0.1
    done
    kill -KILL -- "$target" 2>/dev/null
    return 0
}

# part NAME COMMAND…: COMMAND may be a function (which then must not call `run_command` in a subshell).
part() {
    local name=$1 begin=$SECONDS code=0
    shift
    say "$name"
    if [[ $(type -t "$1") == function ]]; then "$@" || code=$?; else run_command "$@" || code=$?; fi
    part_done "$name" $((SECONDS - begin)) "$code"
    return "$code"
}

part_done() {
    local result=ok
    case $3 in
    0) ;;
    75) result=skipped ;;
    *) result="FAILED ($3)" PART_FAILED=1 ;;
    esac
    PART_LINES+=("$(printf '%-12s %6s  %s' "$1" "$(minutes "$2")" "$result")")
}

# Prints the parts with their times; false when one failed.
parts_summary() {
    printf '\n'
    printf '%s\n' "${PART_LINES[@]}"
    printf '%-12s %6s  %s\n' total "$(minutes $((SECONDS - PART_BEGIN)))" \
        "$([[ $PART_FAILED == 0 ]] && printf ok || printf FAILED)"
    return "$PART_FAILED"
}
