# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Completion of moongrid in bash. `moongrid complete` says what may follow; here its words become bash's, which ends
# words at = and : as well.

_moongrid() {
  local line=${COMP_LINE:0:COMP_POINT} words last before i
  read -ra words <<< "${line//[\"\']/}"
  [[ $line != *[[:blank:]] ]] || words+=("")
  while [ ${#words[@]} -gt 1 ] && [ "${words[0]}" != "$1" ]; do words=("${words[@]:1}"); done # NAME=VALUE before it
  mapfile -t COMPREPLY < <("${1/#\~\//$HOME/}" complete "${words[@]:1}" 2> /dev/null | cut -f 1)
  last=${words[-1]}
  before=${last%"${last##*[=:]}"}
  for i in "${!COMPREPLY[@]}"; do printf -v "COMPREPLY[i]" %q "${COMPREPLY[i]#"$before"}"; done
  case ${COMPREPLY[0]-} in
    *[=/]) [ ${#COMPREPLY[@]} -gt 1 ] || compopt -o nospace ;;
  esac
}
complete -o nosort -F _moongrid moongrid
