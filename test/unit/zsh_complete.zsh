# Print what zsh offers for a command line, one completion on each line: a shell in a terminal of its
# own, in which a TAB is typed.
# usage: zsh -f test/unit/zsh_complete.zsh SCRIPT FOLDER LINE    FOLDER is for zsh's own files
zmodload zsh/zpty
zpty z zsh -f -i
print -r -- "
PROMPT=
autoload -Uz compinit
compinit -u -d $2/zcompdump
source $1
bindkey '^I' complete-word
complete_end() { print -- '>'; exit; }
comppostfuncs=(complete_end)
zstyle ':completion:*' insert-tab false
compadd() {
	if [[ \${@[1,(i)(-|--)]} == *-(O|A|D)\\ * ]]; then
		builtin compadd \"\$@\"
		return
	fi
	local -a hits
	builtin compadd -A hits \"\$@\"
	print -rl -- \"hit \"\${^hits}
	builtin compadd \"\$@\"
}
print ready" >$2/zshrc
zpty -w z "source $2/zshrc"
while zpty -r z line && [[ $line != ready* ]]; do :; done
zpty -w -n z "$3"$'\t'
while zpty -r z line; do
	[[ $line != '>'* ]] || break
	[[ $line != *'hit '* ]] || print -r -- ${${line##*hit }%%[$'\r\n']*}
done
zpty -d z
