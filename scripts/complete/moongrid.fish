# SPDX-License-Identifier: MIT
#
# Completion of moongrid in fish. `moongrid complete` says what may follow.

function __moongrid_complete
    set -l words (commandline -opc)
    set -l program $words[1]
    set -e words[1]
    $program complete $words "$(commandline -ct | string unescape)" 2>/dev/null
end
complete -c moongrid -f -k -a '(__moongrid_complete)'
