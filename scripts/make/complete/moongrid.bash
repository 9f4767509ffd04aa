# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Completion of moongrid in bash. `moongrid complete` prints the candidates; this converts them for bash, which ends
# words at = and : as well.

# _moongrid_words LINE: put its words as the shell splits them into `words`; a quote open at its end into `quote`
_moongrid_words() {
  local i c word='' begun=''
  words=() quote=''
  for ((i = 0; i < ${#1}; i++)); do
    c=${1:i:1}
    case $quote$c in
      "''" | '""') quote='' ;;
      "'"?) word+=$c ;;
      \\ | \"\\) word+=${1:i+1:1} begun=yes && ((i++)) ;;
      '"'?) word+=$c ;;
      "'" | '"') quote=$c begun=yes ;;
      [[:blank:]]) [ -z "$begun" ] || words+=("$word") && word='' begun='' ;;
      '~') [[ -z $begun && ${1:i+1:1} == / ]] && word+=$HOME || word+=$c; begun=yes ;;
      *) word+=$c begun=yes ;;
    esac
  done
  words+=("$word")
}

_moongrid() {
  local words quote last before='' i
  _moongrid_words "${COMP_LINE:0:COMP_POINT}"
  while [ ${#words[@]} -gt 1 ] && [ "${words[0]}" != "$1" ]; do words=("${words[@]:1}"); done # NAME=VALUE before it
  mapfile -t COMPREPLY < <("${1/#\~\//$HOME/}" complete "${words[@]:1}" 2> /dev/null | cut -f 1)
  last=${words[-1]}
  [ -n "$quote" ] || before=${last%"${last##*[=:]}"}
  for i in "${!COMPREPLY[@]}"; do
    COMPREPLY[i]=${COMPREPLY[i]#"$before"}
    [ -n "$quote" ] || printf -v "COMPREPLY[i]" %q "${COMPREPLY[i]}"
  done
  case ${COMPREPLY[0]-} in
    *[=/]) [ ${#COMPREPLY[@]} -gt 1 ] || compopt -o nospace ;;
  esac
}
complete -o nosort -F _moongrid moongrid
