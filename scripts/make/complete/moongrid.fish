# SPDX-License-Identifier: MIT
#
# Completion of moongrid in fish. `moongrid complete` prints the candidates.

function __moongrid_complete
    set -l words (commandline -opc)
    set -l program $words[1]
    set -e words[1]
    set -l words (string replace -r '^~/' $HOME/ -- $words)
    set -l last (commandline -ct | string unescape)
    if string match -q '~/*' -- $last
        $program complete $words "$(string replace '~' $HOME -- $last)" 2>/dev/null | string replace $HOME '~'
    else
        $program complete $words "$last" 2>/dev/null
    end
end
complete -c moongrid -f -k -a '(__moongrid_complete)'
