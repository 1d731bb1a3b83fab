# shellcheck shell=bash
# What packaging/run, packaging/test and .ci/run share: system libraries, virtual environment, project.
# Sourced, with `root` set to the repository. Everything it prints goes to stderr, since the program's
# stdout belongs to the program (`--format json` is one JSON object and nothing else).

venv="${root:?}/.venv"

say() { printf '%s\n' "$*" >&2; }

# ldconfig stands in /sbin, which a plain user's PATH lacks on Debian.
PATH="$PATH:/usr/sbin:/sbin"

# library=Debian package. These are what Qt's xcb and wayland plugins and QtGui are linked with, less what
# every system has. libglib2.0-0 is also the name that newer releases keep as an alias.
qt_libraries="
    libEGL.so.1=libegl1
    libGL.so.1=libgl1
    libdbus-1.so.3=libdbus-1-3
    libfontconfig.so.1=libfontconfig1
    libfreetype.so.6=libfreetype6
    libglib-2.0.so.0=libglib2.0-0
    libgssapi_krb5.so.2=libgssapi-krb5-2
    libwayland-client.so.0=libwayland-client0
    libwayland-cursor.so.0=libwayland-cursor0
    libwayland-egl.so.1=libwayland-egl1
    libX11-xcb.so.1=libx11-xcb1
    libxkbcommon.so.0=libxkbcommon0
    libxkbcommon-x11.so.0=libxkbcommon-x11-0
    libxcb-cursor.so.0=libxcb-cursor0
    libxcb-icccm.so.4=libxcb-icccm4
    libxcb-image.so.0=libxcb-image0
    libxcb-keysyms.so.1=libxcb-keysyms1
    libxcb-randr.so.0=libxcb-randr0
    libxcb-render.so.0=libxcb-render0
    libxcb-render-util.so.0=libxcb-render-util0
    libxcb-shape.so.0=libxcb-shape0
    libxcb-shm.so.0=libxcb-shm0
    libxcb-sync.so.1=libxcb-sync1
    libxcb-util.so.1=libxcb-util1
    libxcb-xfixes.so.0=libxcb-xfixes0
    libxcb-xkb.so.1=libxcb-xkb1
"

# Sets `missing` (packages), `missing_names` (libraries) and `wished` (packages that it works without). One call of ldconfig, no dpkg: about 10 ms.
find_missing() {
    local known entry name python
    missing="" missing_names="" wished=""
    [ "$(uname -s)" = Linux ] || return 0
    if command -v ldconfig >/dev/null; then
        known=" $(ldconfig -p 2>/dev/null | awk '{print $1}' | tr '\n' ' ')"
        for entry in $qt_libraries; do
            name="${entry%%=*}"
            case "$known" in
                *" $name "*) ;;
                *) missing="$missing ${entry#*=}" missing_names="$missing_names $name" ;;
            esac
        done
    fi
    if command -v dpkg >/dev/null; then
        # Without any font Qt draws boxes, so one is needed; the two that the window is drawn with are a wish.
        have_font '*' || missing="$missing fonts-dejavu-core" missing_names="$missing_names fonts"
        if [ ! -e "$venv/stamp-fonts" ] && apt_rights >/dev/null; then
            have_font 'Inter*' || wished="$wished fonts-inter"
            have_font 'NotoMono*' || wished="$wished fonts-noto-mono"
        fi
    fi
    # Debian and Ubuntu ship the part of Python that puts pip into an environment as a package of its own.
    if [ ! -x "$venv/bin/python" ] && python="$(find_python 2>/dev/null)" && ! can_make_venv "$python"; then
        name="$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
        missing="$missing $name" missing_names="$missing_names $name"
    fi
}

can_make_venv() { "$1" -c 'import ensurepip, venv' 2>/dev/null; }

have_font() {  # NAME PATTERN
    local folder
    for folder in /usr/share/fonts /usr/local/share/fonts "${HOME:-/nonexistent}/.local/share/fonts"; do
        [ -d "$folder" ] && [ -n "$(find -L "$folder" -name "$1.[ot]tf" -print -quit 2>/dev/null)" ] && return 0
    done
    return 1
}

# Prints the word to put before apt-get; fails where a package may not be installed without asking.
apt_rights() {
    command -v apt-get >/dev/null || return 1
    if [ "$(id -u)" = 0 ]; then
        echo env
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        echo sudo
    else
        return 1
    fi
}

# Installs Debian packages. The package lists are fetched only when the first try shows that they are
# absent or out of date. The wait is for another run, or an unattended upgrade, that holds the lock.
apt_install() {
    local rights
    rights="$(apt_rights)" || return 1
    say "Installing system packages:" "$@"
    local install=("$rights" DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300
        -o Dpkg::Use-Pty=0 install -y --no-install-recommends "$@")
    "${install[@]}" >/dev/null 2>&1 </dev/null && return 0
    "$rights" apt-get -qq -o DPkg::Lock::Timeout=300 update >/dev/null </dev/null || true
    "${install[@]}" >/dev/null </dev/null
}

# The one line that a person with the rights can run.
install_line() {
    if command -v apt-get >/dev/null; then
        echo "Run: sudo apt-get install -y$missing"
    else
        echo "Install with its package manager what provides:$missing_names"
    fi
}

# Sees to the system libraries. Fails, after printing the line to run, where something stays missing.
set_up_system() {
    find_missing
    [ -z "$missing$wished" ] && return 0
    (install_system) 9<"$root/packaging" || true
    find_missing
    [ -z "$missing" ] && return 0
    say "Something is missing on this system. $(install_line)"
    return 1
}

# shellcheck disable=SC2086  # lists of words
install_system() {
    flock_here
    find_missing  # the run that had the lock before this one may have done it
    [ -z "$missing$wished" ] || apt_install $missing $wished || { [ -n "$missing" ] && apt_install $missing; }
    # Wishes are tried once: a system without such packages must not be asked at every start.
    mkdir -p "$venv" && touch "$venv/stamp-fonts"
}

# Two runs at the same time take turns. The lock is on the folder itself: it needs no file and no write right.
flock_here() {
    if command -v flock >/dev/null; then flock 9; fi
}

# Prints the first Python that pyproject.toml allows.
find_python() {
    local name
    for name in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python3.10; do
        if "$name" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' 2>/dev/null; then
            echo "$name"
            return 0
        fi
    done
    say "No Python 3.10 to 3.13 found. Install one, or name it: PYTHON=/path/to/python3 $0"
    return 1
}

# What an installed environment depends on: a change in any of it makes the stamps void. The folder is part
# of it because console scripts hold absolute paths, the interpreter because a system upgrade replaces it.
fingerprint() {
    {
        echo "$root"
        readlink -f "$venv/bin/python"
        cat "$root/pyproject.toml" "$root/packaging/constraints.txt" "$venv/pyvenv.cfg" 2>/dev/null
    } | cksum
}

is_installed() {  # EXTRAS: is the environment as pyproject.toml wants it?
    local wanted extra
    [ -x "$venv/bin/inflight" ] || return 1
    wanted="$(fingerprint)"
    for extra in project ${1//,/ }; do
        [ "$(cat "$venv/stamp-$extra" 2>/dev/null)" = "$wanted" ] || return 1
    done
}

make_venv() {
    local python replace=""
    [ ! -e "$venv/bin" ] || replace=yes  # half made, or made by a Python that is gone
    if [ -x "$venv/bin/python" ] &&
        "$venv/bin/python" -c 'import sys, pip; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' 2>/dev/null; then
        return 0
    fi
    python="$(find_python)" || return 4
    can_make_venv "$python" || return 4  # set_up_system has said what to run
    "$python" -m venv ${replace:+--clear} "$venv" >&2
}

install_project() {  # EXTRAS
    local extra
    flock_here
    is_installed "$1" && return 0
    make_venv || return 4
    say "Setting up the Python packages${1:+ ($1)} in .venv; the first time takes a few minutes."
    # --no-input: a package index that asks for a password must fail, not hang.
    "$venv/bin/python" -m pip install --quiet --no-input --disable-pip-version-check \
        --constraint "$root/packaging/constraints.txt" --editable "$root${1:+[$1]}" >&2 </dev/null || return 4
    for extra in project ${1//,/ }; do fingerprint >"$venv/stamp-$extra"; done
}

# Sees to the environment and the project, editable, with EXTRAS (comma separated, may be empty).
set_up_project() {
    is_installed "${1:-}" && return 0
    (install_project "${1:-}") 9<"$root/packaging"
}

# No screen to draw on, and nobody chose Qt's platform by hand.
no_display() {
    [ "$(uname -s)" = Linux ] && [ -z "${DISPLAY:-}${WAYLAND_DISPLAY:-}${QT_QPA_PLATFORM:-}" ]
}
