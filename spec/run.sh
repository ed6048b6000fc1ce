#!/bin/bash
# Model-checks eos.pml: run.sh [short]. Each row: name ; expected (clean|violation) ; flags.
# JOBS=2 rows at a time, LIMIT=400 seconds each; EXPECT=violation runs the mutations alone.
# Some rows need 3 GB. Needs spin and gcc.
for tool in spin gcc; do
  command -v $tool >/dev/null || { echo "$tool is missing: apt-get install spin gcc"; exit 2; }
done
cd "$(dirname "$0")" || exit 2
H=$PWD; B=$H/build/run; rm -rf "$B"; mkdir -p "$B"
N=0; J=${JOBS:-2}; MODE=${1:-all}
row() { # name expected flags [short]
  [ "$MODE" = short ] && [ "$4" != short ] && return
  [ -n "$EXPECT" ] && [ "$EXPECT" != "$2" ] && return
  N=$((N+1)); while [ "$(jobs -rp | wc -l)" -ge "$J" ]; do wait -n; done
  (one "$@") >"$B/$(printf %03d $N).line" 2>&1 &
}
head_() { N=$((N+1)); echo "-- $1" >"$B/$(printf %03d $N).line"; }
one() {
  d="$B/$(echo "$1" | tr -c 'a-zA-Z0-9' _)"; mkdir -p "$d"; cd "$d" || return
  # shellcheck disable=SC2086  # the flags are words
  spin $3 -a "$H/eos.pml" >spin.out 2>&1 &&
    gcc "$([ "$2" = clean ] && echo -O2 || echo -O0)" -DSAFETY -DCOLLAPSE -DVECTORSZ=2048 -DMEMLIM=7000 -o pan pan.c 2>gcc.out ||
    { echo "$1: BUILD FAILED"; return; }
  nice -n 15 timeout "${LIMIT:-400}" ./pan -m600000 -E -w24 >pan.out 2>&1
  v=$(grep -m1 '^pan:1:' pan.out); s=$(awk '/states, stored/{print $1; exit}' pan.out); t=$(awk '/elapsed time/{print $4; exit}' pan.out)
  if [ -n "$v" ]; then g=violation
  elif grep -q 'Search not completed\|max search depth too small' pan.out; then g=unfinished
  elif [ -n "$s" ]; then g=clean; else g=unfinished; fi
  case "$v" in
    *lost*) w="(4) a transaction is left that holds up readers";;
    *vis*"<2"*) w="(2) two visible copies";; *vis*==1*) w="(3) passed, not visible once";;
    *quiet*) w="(4) a quiet restart fails";; *"res[(i-1)]"*) w="(4) stuck";;
    *"res[id]!=3"*) w="operator stop without need";; *'!(((('*) w="(1) abort after the decision";;
    *lb*) w="(1) commit without the decision";; *) w="$v";; esac
  [ $g = "$2" ] && m=ok || m=UNEXPECTED
  printf '%-52s %-10s %-10s %9s states %6ss %s\n' "$1" $m $g "$s" "$t" "$w"
}
Q="-DQUIETCHK -DNOHUMAN"; F="-DR=2"
head_ "the protocol; every run may crash or live on as a zombie at any step"
row "2 batches" clean "$F -DNB=2 $Q" short
row "3 batches, the middle one empty" clean "$F -DNB=3 -DEMPTYB=1 $Q"
row "3 batches" clean "$F -DNB=3 $Q"
row "2 batches, a time-out" clean "$F -DNB=2 -DNTIMEOUT=1 $Q"
row "2 batches, a session ends" clean "$F -DNB=2 -DNSESSION=1 $Q"
row "commit() interrupted" clean "$F -DNB=1 -DNABANDON=1 $Q"
row "a late task attempt" clean "$F -DNB=1 -DNZTASK=1 $Q"
row "non-deterministic, a time-out" clean "$F -DNB=1 -DNONDET -DNTIMEOUT=1"
row "non-deterministic, a time-out before the vote" clean "$F -DNB=1 -DNONDET -DNTIMEOUT=1 -DEARLYT $Q"
row "a task writes in two requests" clean "$F -DNB=1 -DHALF $Q"
row "a task dies, its transaction open" clean "$F -DNB=1 -DNTDIE=1 $Q"
row "a task dies, then a step of abort or plan raises" clean "$F -DNB=1 -DNTDIE=1 -DNFAIL=1 $Q"
row "a list misses a transaction" clean "$F -DNB=1 -DNHIDE=1 $Q"
row "the log's answer is lost" clean "$F -DNB=1 -DNREPLY=1 $Q"
row "one slot" clean "$F -DNB=2 -DK=1 $Q"
head_ "one rule taken back"
row "plan trusts what it remembers" violation "$F -DNB=1 -DNO_PLANREAD -DNABANDON=1 $Q" short
row "plan trusts what it remembers, no compare" violation "$F -DNB=1 -DNO_PLANREAD -DNO_CAS -DNABANDON=1 -DNOA1" short
row "no compare" violation "$F -DNB=1 -DNO_CAS -DNABANDON=1" short
row "no witness, a late task attempt" violation "$F -DNB=1 -DNO_WITNESS -DNZTASK=1" short
row "no void" violation "$F -DNB=1 -DNO_VOID -DNABANDON=1" short
row "abort what is open instead of what was listed" violation "$F -DNB=1 -DNO_SWEEP" short
row "the same, two requests: silent loss" violation "$F -DNB=1 -DNO_SWEEP -DHALF -DNOA1" short
row "slot by batch number, no witness, an empty batch" violation "$F -DNB=3 -DNO_SLOT -DNO_WITNESS -DEMPTYB=1" short
row "slot by batch number, an empty batch" clean "$F -DNB=3 -DNO_SLOT -DEMPTYB=1"
row "no witness, an empty batch" clean "$F -DNB=3 -DNO_WITNESS -DEMPTYB=1"
row "a recovered planner never lists" violation "$F -DNB=1 -DNTDIE=1 -DNO_REPLAN $Q" short
row "it lists only if the seq has not moved" violation "$F -DNB=1 -DNTDIE=1 -DNFAIL=1 -DM_SEQONLY $Q" short
row "recovery only waits for the stable offset" violation "$F -DNB=1 -DNHIDE=1 -DNO_RELIST $Q" short
row "a fenced write of the log fails at once" clean "$F -DNB=1 -DNO_REOPEN $Q"
row "abort() does not look" violation "$F -DNB=1 -DM_ABORTBLIND" short
row "recovery reads before it inits" violation "$F -DNB=1 -DM_NOINIT" short
row "no sweep" violation "$F -DNB=1 -DM_NOSWEEP" short
row "no vote, deterministic" clean "$F -DNB=1 -DM_NOVOTE -DNTIMEOUT=1"
row "no vote, non-deterministic, early time-out" violation "$F -DNB=1 -DM_NOVOTE -DNONDET -DNTIMEOUT=1 -DEARLYT $Q" short
row "one slot, by batch number, no witness" violation "$F -DNB=2 -DK=1 -DNO_WITNESS -DNO_SLOT" short
row "no witness, no late attempt" clean "$F -DNB=2 -DNO_WITNESS"
row "no member in the decision" clean "$F -DNB=2 -DM_NOMEMBER"
row "no member in the decision, no compare, no void" violation "$F -DNB=1 -DM_NOMEMBER -DNO_CAS -DNO_VOID" short
row "no member anywhere, no compare, no void" violation "$F -DNB=1 -DM_NOMEMBER -DM_NOMEMBER_T -DNO_CAS -DNO_VOID -DNOA1" short
row "no member in tasks" clean "$F -DNB=1 -DM_NOMEMBER_T"
row "no member in tasks, recovery only waits" violation "$F -DNB=1 -DM_NOMEMBER_T -DNO_RELIST" short
wait; cat "$B"/*.line; ! grep -qE 'UNEXPECTED|BUILD FAILED' "$B"/*.line
