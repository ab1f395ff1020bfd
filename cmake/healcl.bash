# Completes command lines of healcl in bash. Commands and options come from `healcl --help`.

_healcl() {
    local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} words=
    case $COMP_CWORD:${COMP_WORDS[COMP_CWORD - 1]}:$word in
    1:*)
        words="help --help --version $("$program" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p')"
        ;;
    *:-d:* | *:--device:*) words="cpu gpu acc reference" ;;
    *:*:-*) words=$("$program" "${COMP_WORDS[1]}" --help | grep -Eo '^  (-., |    )--[a-z-]+' |
        grep -Eo -e '--[a-z-]+') ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o bashdefault -o default -F _healcl healcl
