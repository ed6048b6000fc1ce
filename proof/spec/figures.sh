#!/bin/bash
# Puts the rows that run.sh has brought to an end (build/*/*.line, the newest of a name) into README.md. A row that
# was not run keeps its figures, and says "before"; a row that run.sh no longer has goes.
cd "$(dirname "$0")" || exit 2
shopt -s nullglob
lines=(build/*/*.line)
[ ${#lines[@]} -gt 0 ] || { echo "nothing in build/: run run.sh first"; exit 2; }
mapfile -t lines < <(ls -tr "${lines[@]}")
run=$(awk '/ states /{
  row=substr($0,1,58); sub(/ +$/,"",row); $0=substr($0,59); o=$1; s=$2; t=$4; $1=$2=$3=$4=""; sub(/^ +/,""); sub(/s$/,"",t)
  if(!(row in at)) order[++n]=row
  at[row]=sprintf("| %s | %s | %s | %s | %s |",row,o,s,t,$0)
} END{for(i=1;i<=n;i++)print at[order[i]]}' "${lines[@]}")
rows=$(awk -F ' *[|] *' '
  FILENAME=="run.sh" { if(match($0,/^ *row "[^"$]*"/)) {name=substr($0,RSTART,RLENGTH); gsub(/^ *row "|"$/,"",name); has[name]=1}; next }
  FILENAME=="-" { if(NF) {run[$2]=$0; order[++n]=$2}; next }
  /figures: begin/,/figures: end/ {
    if($0 !~ /^\| / || $2=="Row") next
    if($2 in run) {print run[$2]; done[$2]=1}
    else if($2 in has || $2 ~ /^N[A-Z]+ (twice|and N[A-Z]+)$/) {if($6 !~ /before/) $6=($6=="" ? "" : $6 "; ") "before"; printf "| %s | %s | %s | %s | %s |\n",$2,$3,$4,$5,$6}
  }
  END {for(i=1;i<=n;i++) if(!(order[i] in done)) print run[order[i]]}' run.sh - README.md <<<"$run")
total=$(awk -F ' *[|] *' '{s+=$4} END{print s}' <<<"$rows")
{
  sed '/<!-- figures: begin -->/q' README.md
  echo '| Row | Outcome | States stored | Seconds | |'
  echo '|---|---|---|---|---|'
  echo "$rows"
  echo; echo "$(wc -l <<<"$rows") rows, $total states."
  sed -n '/<!-- figures: end -->/,$p' README.md
} >build/README.new && cat build/README.new >README.md
