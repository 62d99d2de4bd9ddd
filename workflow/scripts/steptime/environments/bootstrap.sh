#!/bin/sh
# Makes .venv from requirements.lock, with the first Python that is new enough; PYTHON=... names another. With PIP_NO_INDEX,
# of wheels in the folders that PIP_FIND_LINKS names and of that Python's own packages. Does nothing when it stands already. What an interrupt leaves half made lacks the stamp, and is made again.
CDPATH= cd "$(dirname "$0")/../../../.." || exit 1
# Of the user's shell: another Python's packages and folders.
unset PYTHONPATH PYTHONHOME PYTHONINSPECT PIP_TARGET PIP_PREFIX PIP_ROOT PIP_DRY_RUN
export PIP_USER=0
stamp=.venv/.steptime-lock
# With the folder, since the commands in .venv/bin do not survive a move.
made_of="$(cksum <requirements.lock) $PWD"

stands() {
    [ "$(cat $stamp 2>/dev/null)" = "$made_of" ] && .venv/bin/python -c '' 2>/dev/null
}

fail() {
    echo "$1" >&2
    exit 1
}

stands && exit 0
# Several jobs may come here at once.
if command -v flock >/dev/null; then
    mkdir -p .cache
    exec 9>.cache/venv.lock
    flock 9
    stands && exit 0
fi

if [ -n "$PYTHON" ]; then set -- "$PYTHON"; else
    # Last, that of a Snakemake that was installed by itself.
    set -- python3 python python3.13 python3.12 python3.11 ${STEPTIME_PLANNER:+"$STEPTIME_PLANNER"}
fi
for python in "$@" ""; do
    [ -n "$python" ] || break
    "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null && break
done
[ -n "$python" ] ||
    fail "${PYTHON:-python3} is not a Python 3.11, 3.12 or 3.13: install one, or name it with \`make PYTHON=/path/to/python3.11\`."
# Without an index, that Python's own pip will do.
needed=ensurepip
[ -z "$PIP_NO_INDEX" ] || needed=venv
"$python" -c "import venv, $needed" 2>/dev/null ||
    fail "$python cannot make virtual environments: install its module venv (on Debian and Ubuntu: apt install python3-venv)."

echo "Making .venv from requirements.lock"
rm -rf .venv
{
    if [ -n "$PIP_NO_INDEX" ]; then
        PYTHONPATH=workflow/scripts "$python" -m steptime.environments.offline .venv
    else
        "$python" -m venv .venv && .venv/bin/python -m pip install -qq "$(grep -o '^uv==[^ ]*' requirements.lock)" &&
            PYTHONPATH=workflow/scripts .venv/bin/python -m steptime.environments.installer pip install \
                --quiet --compile-bytecode --python .venv/bin/python -r requirements.lock
    fi
} || fail ".venv could not be made: see what was printed above, mend it, and run the same command again."
echo "$made_of" >$stamp
