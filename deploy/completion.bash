# Completes commands and options of manage.py and deploy/manage in bash (docs/operations.md, Commands):
#
#   source /opt/identity/deploy/completion.bash
_identity_commands() {
  # Django itself answers; options that take a value end with "=".
  mapfile -t COMPREPLY < <(
    COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD DJANGO_AUTO_COMPLETE=1 ${COMP_WORDS[0]} 2>/dev/null | tr ' ' '\n' | grep .
  )
  [[ ${COMPREPLY[0]} != *= ]] || compopt -o nospace
}
complete -o default -F _identity_commands manage.py manage
