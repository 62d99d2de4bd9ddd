#!/bin/sh
# Makes .venv from requirements.lock, and adds the packages of groups: bootstrap.sh [cluster] [docs] [tests]. It takes the
# first Python that is new enough; PYTHON=... names another, and where there is none, uv brings one. With PIP_NO_INDEX, of
# wheels in the folders that PIP_FIND_LINKS names and of that Python's own packages.
# Does nothing when all stands already. What an interrupt leaves half made lacks the stamp, and is made again.
CDPATH= cd "$(dirname "$0")/../../../.." || exit 1
# Of the user's shell: another Python's packages and folders.
unset PYTHONPATH PYTHONHOME PYTHONINSPECT PIP_TARGET PIP_PREFIX PIP_ROOT PIP_DRY_RUN
export PIP_USER=0
stamp=.venv/.steptime-lock
# With the folder, since the commands in .venv/bin do not survive a move.
made_of="$(cksum <requirements.lock) $PWD"
groups=$*

stands() {
    [ "$(cat $stamp 2>/dev/null)" = "$made_of" ] && .venv/bin/python -c '' 2>/dev/null
}

all_stands() {
    for group in $groups; do [ -e ".venv/.steptime-with-$group" ] || return 1; done
    stands
}

fail() {
    echo "$1" >&2
    exit 1
}

sums_of_uv() {
    sed -n '/^uv==/,/[^\\]$/p' requirements.sums
}

# Prints the path of a Python that uv brings: the machine's uv, or one that the pip of an older Python installs.
bring() {
    uv=$(command -v uv)
    if [ -z "$uv" ]; then
        mkdir -p .cache && sums_of_uv >.cache/uv.txt
        for older in python3 python python3.10 python3.9 python3.8; do
            command -v "$older" >/dev/null || continue
            "$older" -m pip install -qq --no-deps --require-hashes --target .cache/uv-program -r .cache/uv.txt >&2 &&
                uv=.cache/uv-program/bin/uv && break
        done
    fi
    [ -n "$uv" ] && export UV_PYTHON_INSTALL_DIR="$PWD/.cache/python" &&
        "$uv" --no-progress python install --no-bin 3.11 >&2 && "$uv" python find --managed-python 3.11
}

# Installs what standard input pins, as it is in requirements.sums, and nothing that it needs besides.
install() {
    sed '/^#/d; s/ .*//' >.venv/pins.txt && [ -s .venv/pins.txt ] &&
        PYTHONPATH=workflow/scripts .venv/bin/python -m steptime.environments.installer pip install --quiet \
            --compile-bytecode --no-deps --require-hashes --constraint requirements.sums --python .venv/bin/python \
            -r .venv/pins.txt
}

all_stands && exit 0
# Several jobs may come here at once.
if command -v flock >/dev/null; then
    mkdir -p .cache
    exec 9>.cache/venv.lock
    flock 9
    all_stands && exit 0
fi
broken=".venv could not be made: see what was printed above, mend it, and run the same command again."

if ! stands; then
    if [ -n "$PYTHON" ]; then set -- "$PYTHON"; else
        # Of pyenv also those that are not active; last, that of a Snakemake that was installed by itself.
        set -- python3 python python3.13 python3.12 python3.11 \
            "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[123]*/bin/python ${STEPTIME_PLANNER:+"$STEPTIME_PLANNER"}
    fi
    for python in "$@" ""; do
        [ -n "$python" ] || break
        "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null && break
    done
    if [ -z "$python$PYTHON$PIP_NO_INDEX" ]; then
        echo "No Python here is 3.11, 3.12 or 3.13: uv brings one"
        python=$(bring)
    fi
    [ -n "$python" ] || fail "${PYTHON:-python3} is not a Python 3.11, 3.12 or 3.13$([ -n "$PYTHON$PIP_NO_INDEX" ] ||
        echo " and uv could not bring one, as said above"): install one, or uv, or name it with \`make PYTHON=/path/to/python3.11\`."
    # Without an index, that Python's own pip will do.
    needed=ensurepip
    [ -z "$PIP_NO_INDEX" ] || needed=venv
    "$python" -c "import venv, $needed" 2>/dev/null ||
        fail "$python cannot make virtual environments: install its module venv (on Debian and Ubuntu: apt install python3-venv)."

    echo "Making .venv from requirements.lock"
    groups="$groups $(cd .venv 2>/dev/null && ls -a | sed -n 's/^.steptime-with-//p')"
    rm -rf .venv
    if [ -n "$PIP_NO_INDEX" ]; then
        PYTHONPATH=workflow/scripts "$python" -m steptime.environments.offline .venv || fail "$broken"
        # What the folder has of the groups is there too.
        for group in $(sed -n 's/^# Group \([a-z]*\).*/\1/p' requirements.lock); do : >".venv/.steptime-with-$group"; done
    else
        {
            "$python" -m venv .venv && sums_of_uv >.venv/uv.txt &&
                .venv/bin/python -m pip install -qq --no-deps --require-hashes -r .venv/uv.txt &&
                sed '/^# Group/,$d' requirements.lock | install
        } || fail "$broken"
    fi
    echo "$made_of" >$stamp
fi
for group in $groups; do
    [ ! -e ".venv/.steptime-with-$group" ] || continue
    grep -q "^# Group $group:" requirements.lock || fail "There is no group '$group' in requirements.lock: write cluster, docs or tests."
    echo "Adding the packages of the group $group to .venv"
    sed -n "/^# Group $group:/,/^# Group/p" requirements.lock | install || fail "$broken"
    : >".venv/.steptime-with-$group"
done
