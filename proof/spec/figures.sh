#!/bin/bash
# Puts the rows that run.sh has brought to an end (build/*/*.line, the newest of a name) into README.md.
cd "$(dirname "$0")" || exit 2
shopt -s nullglob
lines=(build/*/*.line)
[ ${#lines[@]} -gt 0 ] || { echo "nothing in build/: run run.sh first"; exit 2; }
mapfile -t lines < <(ls -tr "${lines[@]}")
rows=$(awk '/ states /{k=substr($0,1,58); if(!(k in at)){order[++n]=k}; at[k]=$0} END{for(i=1;i<=n;i++)print at[order[i]]}' "${lines[@]}")
total=$(awk '{for(i=1;i<=NF;i++)if($i=="states")s+=$(i-1)}END{print s}' <<<"$rows")
{
  sed '/<!-- figures: begin -->/q' README.md
  echo '| Row | Outcome | States stored | Seconds | |'
  echo '|---|---|---|---|---|'
  awk '{row=substr($0,1,58); sub(/ +$/,"",row); $0=substr($0,59); o=$1; s=$2; t=$4; $1=$2=$3=$4=""; sub(/^ +/,""); sub(/s$/,"",t); printf "| %s | %s | %s | %s | %s |\n",row,o,s,t,$0}' <<<"$rows"
  echo; echo "$(wc -l <<<"$rows") rows, $total states."
  sed -n '/<!-- figures: end -->/,$p' README.md
} >build/README.new && cat build/README.new >README.md
